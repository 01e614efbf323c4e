//! Touching remotes' windows: writes, reads and updates on their way out, and their answers.
use super::ends::{Context, End, What};
use super::ledger::Entry;
use super::parts::{PART_MAX, PartPlace, SHORT_MAX, copy_part, zeros};
use super::send::Sent;
use super::streams::Stream;
use super::touching::{Spot, Touching, key_of, name_of};
use super::{Endpoint, RemoteId};
use crate::error::{Busy, Fault, PostError};
use crate::mem::span::Spans;
use arrayvec::ArrayVec;
use ayre_proto::combine::{Combine, Number};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::touch::{Calculation, Touch};
use ayre_proto::units::PeerId;

/// A write to be posted.
#[derive(Clone, Debug)]
pub struct Write {
    /// What is written.
    pub bytes: Spans,
    /// Immediate data for the target.
    pub data: Option<u64>,
    /// Comes back with its end.
    pub context: Context,
    /// Whether its memory is the program's again as soon as it is posted; then it has at most
    /// [`Endpoint::inject_max`] bytes.
    pub inject: bool,
}

/// An update to be posted: each number in memory is combined with one of the operands. Nothing that
/// touches the same windows by way of an endpoint comes in between.
#[derive(Clone, Debug)]
pub struct Update {
    /// What becomes of each number.
    pub op: Combine,
    /// What they are.
    pub number: Number,
    /// The operands, none where the operation has none.
    pub operand: Spans,
    /// The comparands, none where the operation has none.
    pub compare: Spans,
    /// Where what was there before goes, if it is wanted.
    pub result: Option<Spans>,
    /// Immediate data for the target.
    pub data: Option<u64>,
    /// Comes back with its end.
    pub context: Context,
}

impl Update {
    fn calculation(&self) -> Result<Calculation, Fault> {
        let Self { op, number, operand, compare, result, .. } = self;
        let result_len = result.as_ref().map_or(0, Spans::len);
        let len = if op.has_operand() { operand.len() } else { result_len };
        let count = u16::try_from(len / number.size()).map_err(|_| Fault::TooLong)?;
        let what = Calculation { op: *op, number: *number, count, tells: result.is_some() };
        let is_sound = op.is_defined(*number) && (op.has_operand() || what.tells);
        let lens = (operand.len(), compare.len(), result_len);
        let told_len = if what.tells { what.len() } else { 0 };
        if !is_sound || lens != (what.operand_len(), what.comparand_len(), told_len) {
            return Err(Fault::Malformed);
        }
        if usize::from(count) > Calculation::count_max(*op, *number) {
            return Err(Fault::TooLong);
        }
        Ok(what)
    }

    /// Operands, then comparands.
    fn staged(&self, what: &Calculation) -> ArrayVec<u8, EAGER_MAX> {
        let mut staged = zeros(what.operand_len() + what.comparand_len());
        let (operand, compare) = staged.split_at_mut(what.operand_len());
        self.operand.read(0, operand);
        self.compare.read(0, compare);
        staged
    }
}

impl Endpoint {
    /// Numbers of the longest update of such a kind.
    pub const fn update_max(op: Combine, number: Number) -> usize {
        Calculation::count_max(op, number)
    }

    /// Bytes of the longest read that is done in its turn, whole: see spec/46.
    pub const fn prompt_read_max() -> usize {
        SHORT_MAX
    }

    /// Writes to a remote's window. Its end is told, as [`What::Written`], when the target has done
    /// it or refused; what is returned says whether its memory is needed until then.
    ///
    /// What is posted to one endpoint, messages included, is done in the order of posting.
    ///
    /// # Errors
    /// As [`Endpoint::send`]; [`Fault::TooLong`] for one that is to be injected and is too long for
    /// that.
    // spec: ENV-24, ENV-25
    pub fn write(&mut self, to: Spot, write: &Write) -> Result<Sent, PostError> {
        let Write { ref bytes, data, context, inject } = *write;
        if inject && bytes.len() > Self::inject_max() {
            return Err(Fault::TooLong.into());
        }
        let peer = self.may_touch(to.remote)?;
        let Spot { remote, key, address } = to;
        if bytes.len() <= SHORT_MAX
            && let Some(whole) = bytes.whole()
        {
            let id = name_of(self.touching.vacant_key());
            let touch = Touch::WriteHere { key, address, id, before: 0, data };
            self.push_touch(peer, &touch, whole)?;
            self.touching.insert(Touching::written(remote, context));
            return Ok(Sent::Gone);
        }
        let key = self.touching.insert(Touching::leaving(to, bytes.clone(), data, context));
        let any = self.push_write(key, peer);
        if self.touching[key].left().is_none() {
            return Ok(Sent::Gone);
        }
        if !any {
            self.touching.free(key);
            return Err(Busy::MessageLaneFull.into());
        }
        if inject {
            self.touching[key].hold();
        }
        // Nothing overtakes it.
        // spec: ENV-30
        self.remotes[remote].hold_back();
        self.streams.push(Stream::Write(key));
        self.stir();
        Ok(if inject { Sent::Gone } else { Sent::UnderWay })
    }

    /// Reads a remote's window, as much of it as there is room for. Its end is told as
    /// [`What::Read`].
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    // spec: ENV-24, ENV-27
    pub fn read(&mut self, from: Spot, into: Spans, context: Context) -> Result<(), PostError> {
        let peer = self.may_touch(from.remote)?;
        let Spot { remote, key, address } = from;
        let len = into.len() as u64;
        let id = name_of(self.touching.vacant_key());
        self.push_touch(peer, &Touch::Read { key, address, id, len }, &[])?;
        self.touching.insert(Touching::asked(remote, What::Read, Some(into), context));
        Ok(())
    }

    /// Updates numbers in a remote's window. Its end is told as [`What::Updated`]; its operands are
    /// the program's again at once.
    ///
    /// # Errors
    /// As [`Endpoint::send`]; [`Fault::Malformed`] where lengths do not agree or the operation is
    /// not defined for such numbers, [`Fault::TooLong`] beyond [`Endpoint::update_max`].
    // spec: ENV-24, ENV-28
    pub fn update(&mut self, at: Spot, update: &Update) -> Result<(), PostError> {
        let what = update.calculation()?;
        let peer = self.may_touch(at.remote)?;
        let Spot { remote, key, address } = at;
        let id = name_of(self.touching.vacant_key());
        let touch = Touch::Update { key, address, id, what, data: update.data };
        match update.operand.whole() {
            Some(operand) if update.compare.is_empty() => self.push_touch(peer, &touch, operand)?,
            _ => self.push_touch(peer, &touch, &update.staged(&what))?,
        }
        let (into, context) = (update.result.clone(), update.context);
        self.touching.insert(Touching::asked(remote, What::Updated, into, context));
        Ok(())
    }

    fn may_touch(&mut self, remote: RemoteId) -> Result<PeerId, PostError> {
        let peer = self.remotes.way(remote).map_or_else(|| self.reach(remote), Ok)?;
        self.check_under_way()?;
        Ok(peer)
    }

    fn push_touch(&mut self, peer: PeerId, touch: &Touch, bytes: &[u8]) -> Result<(), PostError> {
        let (tag, [a, b, c, d, e, f], words) = touch.encode();
        match words {
            4 => self.push(peer, tag, [0, a, b, c, d], bytes),
            5 => self.push(peer, tag, [0, a, b, c, d, e], bytes),
            _ => self.push(peer, tag, [0, a, b, c, d, e, f], bytes),
        }
    }

    /// What there is room for of a write that leaves: whether any has gone.
    fn push_write(&mut self, key: usize, peer: PeerId) -> bool {
        let mut any = false;
        while let Some(is_last) = self.push_write_part(key, peer) {
            any = true;
            if is_last {
                self.touching[key].has_left();
                break;
            }
        }
        any
    }

    /// The same of one that has been waiting for room: whether any has gone, and whether all has.
    pub(super) fn push_write_on(&mut self, key: usize) -> (bool, bool) {
        let to = self.touching[key].to();
        let Some(peer) = self.remotes[to].peer() else { return (false, false) };
        let any = self.push_write(key, peer);
        let is_over = self.touching[key].left().is_none();
        if is_over {
            self.remotes[to].let_through();
        }
        (any, is_over)
    }

    /// The next bytes of a write, if there is room: whether they are the last ones.
    fn push_write_part(&mut self, key: usize, peer: PeerId) -> Option<bool> {
        let leaving = self.touching[key].left()?;
        let (len, left, before) = (leaving.len() as u64, leaving.left(), leaving.gone() as u64);
        let (Spot { remote, key: window, address }, data) = (leaving.spot(), leaving.data());
        let mut staged = [0; SHORT_MAX];
        if left <= SHORT_MAX {
            leaving.read(&mut staged[..left]);
            let id = name_of(key);
            let last = Touch::WriteHere { key: window, address, id, before, data };
            self.push_touch(peer, &last, &staged[..left]).ok()?;
            return Some(true);
        }
        let count = if self.remotes[remote].has_ring_out() {
            self.reserve(peer).ok()?;
            let Self { touching, remotes, .. } = self;
            let ring = remotes[remote].ring_out()?;
            let piece = touching[key].left()?.piece(PART_MAX.min(left).min(ring.longest()));
            let (count, place) = (piece.len() as u64, ring.write(piece)?);
            let part = Touch::WritePart { key: window, address, len, before, count, place };
            self.push_touch(peer, &part, &[]).ok()?;
            count as usize
        } else {
            leaving.read(&mut staged);
            let part = Touch::WritePartHere { key: window, address, len, before };
            self.push_touch(peer, &part, &staged).ok()?;
            SHORT_MAX
        };
        self.touching[key].advance(count);
        Some(false)
    }

    /// What touches a window has been done. False where nothing is to be told so.
    pub(super) fn on_touched(
        &mut self,
        from: RemoteId,
        key: usize,
        tell: &mut impl FnMut(End),
    ) -> bool {
        let is_due = self.touching.get(key).is_some_and(|touching| touching.is_done_by(from));
        if is_due {
            let end = self.touching[key].end(Ok(()));
            self.touching.free(key);
            tell(end);
        }
        is_due
    }

    /// What touches a window has been refused. False where there is none such.
    pub(super) fn on_refused(
        &mut self,
        from: RemoteId,
        (id, why): (u64, Fault),
        tell: &mut impl FnMut(End),
    ) -> bool {
        let Some(key) = key_of(id) else { return false };
        let is_due = self.touching.get(key).is_some_and(|touching| touching.is_refused_by(from));
        if is_due {
            let end = self.touching[key].end(Err(why));
            self.touching.free(key);
            tell(end);
        }
        is_due
    }

    /// The next bytes that were read, or that an update has found.
    pub(super) fn take_answer(
        &mut self,
        source: RemoteId,
        (key, len): (usize, u64),
        (index, place): (usize, PartPlace),
        tell: &mut impl FnMut(End),
    ) -> Result<(), Malformed> {
        let Self { port, touching, remotes, .. } = self;
        let answered = touching.get_mut(key).ok_or(Malformed)?;
        let (into, at, left) = answered.coming(source).ok_or(Malformed)?;
        if len == 0 || len > left as u64 {
            return Err(Malformed);
        }
        let lane = &port.peers.at(index).ok_or(Malformed)?.messages_in;
        let ring = remotes[source].ring_in();
        copy_part((into, at), len as usize, (lane, ring), place)?;
        if answered.take(len as usize) {
            let end = answered.end(Ok(()));
            touching.free(key);
            tell(end);
        }
        Ok(())
    }

    /// Nothing of what touches a remote's windows will be answered.
    pub(super) fn end_touching(&mut self, to: RemoteId, why: Fault) {
        let Self { touching, ended, streams, .. } = self;
        touching.free_all(to, |touching| ended.push(touching.end(Err(why))));
        debug_assert!(touching.has_none(to), "all have ended");
        streams.keep_writes(|key| touching.contains(key));
    }
}

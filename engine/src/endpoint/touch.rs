//! Touching remotes' windows: writes, reads and updates on their way out, and their answers.
use super::ends::{Context, End, What};
use super::ledger::Entry;
use super::parts::{PART_MAX, PartPlace, SHORT_MAX, copy_part, zeros};
use super::send::Sent;
use super::streams::Stream;
use super::{Endpoint, RemoteId};
use crate::error::{Busy, Fault, PostError};
use crate::mem::span::Spans;
use arrayvec::ArrayVec;
use ayre_proto::combine::{Combine, Number};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::touch::{Calculation, Touch};
use ayre_proto::units::PeerId;

/// Memory in a remote's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Whose window it is.
    pub remote: RemoteId,
    /// The window's.
    pub key: u64,
    /// Where it begins, counted as the window's owner does.
    pub address: u64,
}

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

/// What touches a remote's window, and has not been answered.
#[derive(Debug)]
pub(super) struct Touching {
    pub(super) to: RemoteId,
    context: Context,
    what: What,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// A write, part of which is still here.
    Leaving { spot: Spot, bytes: Bytes, data: Option<u64>, gone: usize },
    /// Bytes are due.
    Coming { into: Spans, got: usize },
    /// Only to be told that it is done.
    Answer,
}

/// What a write's bytes are taken from.
#[derive(Debug)]
enum Bytes {
    Lent(Spans),
    Held(Box<[u8]>),
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::Lent(spans) => spans.len(),
            Self::Held(bytes) => bytes.len(),
        }
    }

    fn piece(&self, at: usize, max: usize) -> &[u8] {
        match self {
            Self::Lent(spans) => spans.piece(at, max),
            Self::Held(bytes) => &bytes[at..bytes.len().min(at + max)],
        }
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        match self {
            Self::Lent(spans) => spans.read(at, into),
            Self::Held(bytes) => into.copy_from_slice(&bytes[at..at + into.len()]),
        }
    }
}

/// Set in the names of what touches; messages and their receives have names without.
const TOUCHING: u64 = 1 << 63;

fn name_of(key: usize) -> u64 {
    key as u64 | TOUCHING
}

/// Where what has this name is kept; none of a message's name.
pub(super) fn key_of(name: u64) -> Option<usize> {
    (name & TOUCHING != 0).then_some((name ^ TOUCHING) as usize)
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
        let touching = |stage| Touching { to: remote, context, what: What::Written, stage };
        if bytes.len() <= SHORT_MAX
            && let Some(whole) = bytes.whole()
        {
            let id = name_of(self.touching.vacant_key());
            let touch = Touch::WriteHere { key, address, id, before: 0, data };
            self.push_touch(peer, &touch, whole)?;
            self.touching.insert(touching(Stage::Answer));
            return Ok(Sent::Gone);
        }
        let lent = Bytes::Lent(bytes.clone());
        let stage = Stage::Leaving { spot: to, bytes: lent, data, gone: 0 };
        let key = self.touching.insert(touching(stage));
        let any = self.push_write(key, peer);
        let Stage::Leaving { bytes: held, .. } = &mut self.touching[key].stage else {
            return Ok(Sent::Gone);
        };
        if !any {
            self.touching.free(key);
            return Err(Busy::MessageLaneFull.into());
        }
        if inject {
            let mut copy = vec![0; bytes.len()].into_boxed_slice();
            bytes.read(0, &mut copy);
            *held = Bytes::Held(copy);
        }
        // Nothing overtakes it.
        // spec: ENV-30
        self.remotes[remote.index()].open = None;
        self.streams.push_back(Stream::Write(key));
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
        let stage = if len == 0 { Stage::Answer } else { Stage::Coming { into, got: 0 } };
        self.touching.insert(Touching { to: remote, context, what: What::Read, stage });
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
        let stage = match &update.result {
            Some(into) if !into.is_empty() => Stage::Coming { into: into.clone(), got: 0 },
            _ => Stage::Answer,
        };
        let context = update.context;
        self.touching.insert(Touching { to: remote, context, what: What::Updated, stage });
        Ok(())
    }

    fn may_touch(&mut self, remote: RemoteId) -> Result<PeerId, PostError> {
        let open = self.remotes.get(remote.index()).and_then(|known| known.way(remote));
        let peer = open.map_or_else(|| self.reach(remote), Ok)?;
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
                self.touching[key].stage = Stage::Answer;
                break;
            }
        }
        any
    }

    /// The same of one that has been waiting for room: whether any has gone, and whether all has.
    pub(super) fn push_write_on(&mut self, key: usize) -> (bool, bool) {
        let to = self.touching[key].to;
        let Some(peer) = self.remotes[to.index()].peer else { return (false, false) };
        let any = self.push_write(key, peer);
        let is_over = matches!(self.touching[key].stage, Stage::Answer);
        if is_over {
            let remote = &mut self.remotes[to.index()];
            remote.open = Some(to).filter(|_| remote.shut_out.is_none());
        }
        (any, is_over)
    }

    /// The next bytes of a write, if there is room: whether they are the last ones.
    fn push_write_part(&mut self, key: usize, peer: PeerId) -> Option<bool> {
        let Stage::Leaving { spot, bytes, data, gone } = &self.touching[key].stage else {
            return None;
        };
        let (data, gone, left) = (*data, *gone, bytes.len() - gone);
        let Spot { remote, key: window, address } = *spot;
        let before = gone as u64;
        let mut staged = [0; SHORT_MAX];
        if left <= SHORT_MAX {
            bytes.read(gone, &mut staged[..left]);
            let id = name_of(key);
            let last = Touch::WriteHere { key: window, address, id, before, data };
            self.push_touch(peer, &last, &staged[..left]).ok()?;
            return Some(true);
        }
        let len = bytes.len() as u64;
        let count = if self.remotes[remote.index()].ring_out.is_some() {
            self.reserve(peer).ok()?;
            let Self { touching, remotes, .. } = self;
            let Stage::Leaving { bytes, .. } = &touching[key].stage else { return None };
            let ring = remotes[remote.index()].ring_out.as_mut()?;
            let piece = bytes.piece(gone, PART_MAX.min(left).min(ring.longest()));
            let (count, place) = (piece.len() as u64, ring.write(piece)?);
            let part = Touch::WritePart { key: window, address, len, before, count, place };
            self.push_touch(peer, &part, &[]).ok()?;
            count as usize
        } else {
            bytes.read(gone, &mut staged);
            let part = Touch::WritePartHere { key: window, address, len, before };
            self.push_touch(peer, &part, &staged).ok()?;
            SHORT_MAX
        };
        if let Stage::Leaving { gone, .. } = &mut self.touching[key].stage {
            *gone += count;
        }
        Some(false)
    }

    /// What touches a window has been done. False where nothing is to be told so.
    pub(super) fn on_touched(
        &mut self,
        from: RemoteId,
        key: usize,
        tell: &mut impl FnMut(End),
    ) -> bool {
        let is_due = self
            .touching
            .get(key)
            .is_some_and(|touching| touching.to == from && matches!(touching.stage, Stage::Answer));
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
        let is_due = self.touching.get(key).is_some_and(|touching| {
            touching.to == from && !matches!(touching.stage, Stage::Leaving { .. })
        });
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
        let Stage::Coming { into, got } = &mut answered.stage else { return Err(Malformed) };
        let left = into.len() - *got;
        if answered.to != source || len == 0 || len > left as u64 {
            return Err(Malformed);
        }
        let lane = &port.connections[index].as_ref().ok_or(Malformed)?.messages_in;
        let ring = remotes[source.index()].ring_in.as_mut();
        copy_part((into, *got), len as usize, (lane, ring), place)?;
        *got += len as usize;
        if len == left as u64 {
            let end = answered.end(Ok(()));
            touching.free(key);
            tell(end);
        }
        Ok(())
    }

    /// Nothing of what touches a remote's windows will be answered.
    pub(super) fn end_touching(&mut self, to: RemoteId, why: Fault) {
        let Self { touching, ended, streams, .. } = self;
        touching.free_all(to, |touching| ended.push_back(touching.end(Err(why))));
        streams.retain(|stream| match stream {
            Stream::Write(key) => touching.contains(*key),
            _ => true,
        });
    }
}

impl Entry for Touching {
    #[inline]
    fn to(&self) -> RemoteId {
        self.to
    }
}

impl Touching {
    fn end(&self, result: Result<(), Fault>) -> End {
        End { context: self.context, what: self.what, result }
    }
}

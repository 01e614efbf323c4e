//! Access to remotes' memory regions: own writes, reads and updates, and their replies.
use super::completions::{Completion, CompletionKind, Context};
use super::ledger::Entry;
use super::remote_address::{PendingRma, RemoteAddress, key_of, name_of};
use super::send::Sent;
use super::streams::Stream;
use super::take::Fragment;
use super::transport::{FragmentPlace, Memory, Transport};
use super::{FRAGMENT_MAX, Protocol, RemoteId, SHORT_MAX, zeros};
use crate::combine::{Combine, Number};
use crate::envelope::AHEAD_MIN;
use crate::fault::Fault;
use crate::lane::Malformed;
use crate::limits::EAGER_MAX;
use crate::rma::{Calculation, RmaRecord};
use arrayvec::ArrayVec;

/// A write to be posted.
#[derive(Clone, Debug)]
pub struct RmaWrite<M> {
    /// The bytes to write.
    pub bytes: M,
    /// Immediate data for the target.
    pub data: Option<u64>,
    /// Comes back with its end.
    pub context: Context,
    /// Whether its memory is the program's again as soon as it is posted; then it has at most
    /// [`AHEAD_MIN`] bytes.
    pub inject: bool,
}

/// An update to be posted: each number in memory is combined with one of the operands. Nothing that
/// touches the same windows by way of an endpoint comes in between.
#[derive(Clone, Debug)]
pub struct RmaUpdate<M> {
    /// The operation on each number.
    pub op: Combine,
    /// The type of the numbers.
    pub number: Number,
    /// The operands, none where the operation has none.
    pub operand: M,
    /// The comparands, none where the operation has none.
    pub compare: M,
    /// Where what was there before goes, if it is wanted.
    pub result: Option<M>,
    /// Immediate data for the target.
    pub data: Option<u64>,
    /// Comes back with its end.
    pub context: Context,
}

impl<M: Memory> RmaUpdate<M> {
    fn calculation(&self) -> Result<Calculation, Fault> {
        let Self { op, number, operand, compare, result, .. } = self;
        let result_len = result.as_ref().map_or(0, M::len);
        let len = if op.has_operand() { operand.len() } else { result_len };
        let count = u16::try_from(len / number.size()).map_err(|_| Fault::TooLong)?;
        let what = Calculation { op: *op, number: *number, count, fetches: result.is_some() };
        let is_sound = op.is_defined(*number) && (op.has_operand() || what.fetches);
        let lens = (operand.len(), compare.len(), result_len);
        let told_len = if what.fetches { what.len() } else { 0 };
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

impl<M: Memory + Clone> Protocol<M> {
    /// Writes to a window of a remote that is connected at this lane. Its end is told, as
    /// [`CompletionKind::Written`], when the target has done it or refused; what is returned says
    /// whether its memory is needed until then.
    ///
    /// # Errors
    /// The error of [`Transport::push`]; [`Fault::NoMemory`] where no more operations may be
    /// pending; [`Fault::TooLong`] for an injected write that is too long for that.
    // spec: ENV-24, ENV-25
    #[inline]
    pub fn write<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, to): (W::Lane, RemoteAddress),
        write: &RmaWrite<M>,
    ) -> Result<Sent, W::Error> {
        let RmaWrite { ref bytes, data, context, inject } = *write;
        if inject && bytes.len() > AHEAD_MIN {
            return Err(Fault::TooLong.into());
        }
        self.check_under_way()?;
        let RemoteAddress { remote, key, address } = to;
        if bytes.len() <= SHORT_MAX
            && let Some(whole) = bytes.whole()
        {
            let id = name_of(self.pending_rma.vacant_key());
            let record = RmaRecord::WriteHere { key, address, id, before: 0, data };
            push_rma(transport, lane, &record, whole)?;
            self.pending_rma.insert(PendingRma::written(remote, context));
            return Ok(Sent::Completed);
        }
        let key = self.pending_rma.insert(PendingRma::leaving(to, bytes.clone(), data, context));
        let any = self.push_write(transport, key, lane);
        if self.pending_rma[key].left().is_none() {
            return Ok(Sent::Completed);
        }
        if !any {
            self.pending_rma.free(key);
            return Err(transport.no_room(lane));
        }
        if inject {
            self.pending_rma[key].copy_bytes();
        }
        // Nothing overtakes it.
        // spec: ENV-30
        transport.hold_back(remote);
        self.streams.push(Stream::Write(key));
        transport.request_poll();
        Ok(if inject { Sent::Completed } else { Sent::Pending })
    }

    /// Updates numbers in a window of a remote that is connected at this lane. Its end is told as
    /// [`CompletionKind::Updated`]; its operands are the program's again at once.
    ///
    /// # Errors
    /// As [`Protocol::write`]; [`Fault::Malformed`] where lengths do not agree or the operation is
    /// not defined for such numbers, [`Fault::TooLong`] for more numbers than one update has.
    // spec: ENV-24, ENV-28
    #[inline]
    pub fn update<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, at): (W::Lane, RemoteAddress),
        update: &RmaUpdate<M>,
    ) -> Result<(), W::Error> {
        let what = update.calculation()?;
        self.check_under_way()?;
        let RemoteAddress { remote, key, address } = at;
        let id = name_of(self.pending_rma.vacant_key());
        let record = RmaRecord::Update { key, address, id, what, data: update.data };
        match update.operand.whole() {
            Some(operand) if update.compare.is_empty() => {
                push_rma(transport, lane, &record, operand)?;
            }
            _ => push_rma(transport, lane, &record, &update.staged(&what))?,
        }
        let (into, context) = (update.result.clone(), update.context);
        self.pending_rma.insert(PendingRma::asked(remote, CompletionKind::Updated, into, context));
        Ok(())
    }
}

impl<M: Memory> Protocol<M> {
    /// Reads a window of a remote that is connected at this lane, as much of it as there is room
    /// for. Its end is told as [`CompletionKind::Read`].
    ///
    /// # Errors
    /// As [`Protocol::write`].
    // spec: ENV-24, ENV-27
    #[inline]
    pub fn read<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, from): (W::Lane, RemoteAddress),
        into: M,
        context: Context,
    ) -> Result<(), W::Error> {
        self.check_under_way()?;
        let RemoteAddress { remote, key, address } = from;
        let len = into.len() as u64;
        let id = name_of(self.pending_rma.vacant_key());
        push_rma(transport, lane, &RmaRecord::Read { key, address, id, len }, &[])?;
        self.pending_rma.insert(PendingRma::asked(
            remote,
            CompletionKind::Read,
            Some(into),
            context,
        ));
        Ok(())
    }

    /// Sends as much of a write as there is room for. True if any has gone.
    fn push_write<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        key: usize,
        lane: W::Lane,
    ) -> bool {
        let mut any = false;
        while let Some(is_last) = self.push_write_fragment(transport, key, lane) {
            any = true;
            if is_last {
                self.pending_rma[key].has_left();
                break;
            }
        }
        any
    }

    /// Pushes a write that has been waiting for room: whether any of it has gone, and whether all
    /// has.
    pub(super) fn push_waiting_write(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        key: usize,
    ) -> (bool, bool) {
        let to = self.pending_rma[key].to();
        let Some(lane) = transport.lane(to) else { return (false, false) };
        let any = self.push_write(transport, key, lane);
        let is_over = self.pending_rma[key].left().is_none();
        if is_over {
            transport.let_through(to);
        }
        (any, is_over)
    }

    /// The next bytes of a write, if there is room: whether they are the last ones.
    fn push_write_fragment<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        key: usize,
        lane: W::Lane,
    ) -> Option<bool> {
        let leaving = self.pending_rma[key].left()?;
        let (len, left, before) = (leaving.len() as u64, leaving.left(), leaving.gone() as u64);
        let (RemoteAddress { remote, key: region, address }, data) =
            (leaving.spot(), leaving.data());
        let mut staged = [0; SHORT_MAX];
        if left <= SHORT_MAX {
            leaving.read(&mut staged[..left]);
            let id = name_of(key);
            let last = RmaRecord::WriteHere { key: region, address, id, before, data };
            push_rma(transport, lane, &last, &staged[..left]).ok()?;
            return Some(true);
        }
        let count = if let Some(longest) = transport.longest_piece(remote) {
            transport.reserve(lane).ok()?;
            let piece = leaving.piece(FRAGMENT_MAX.min(left).min(longest));
            let (count, place) = (piece.len() as u64, transport.write_ring(remote, piece)?);
            let fragment = RmaRecord::WritePart { key: region, address, len, before, count, place };
            push_rma(transport, lane, &fragment, &[]).ok()?;
            count as usize
        } else {
            leaving.read(&mut staged);
            let fragment = RmaRecord::WritePartHere { key: region, address, len, before };
            push_rma(transport, lane, &fragment, &staged).ok()?;
            SHORT_MAX
        };
        self.pending_rma[key].advance(count);
        Some(false)
    }

    /// A remote has completed a write, read or update. False where none with this key waits for
    /// that.
    pub(super) fn on_rma_done(
        &mut self,
        from: RemoteId,
        key: usize,
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let is_due = self.pending_rma.get(key).is_some_and(|pending| pending.is_done_by(from));
        if is_due {
            let completion = self.pending_rma[key].completion(Ok(()));
            self.pending_rma.free(key);
            tell(completion);
        }
        is_due
    }

    /// A remote has refused a write, read or update. False where none with this name waits for
    /// that.
    pub(super) fn on_refused(
        &mut self,
        from: RemoteId,
        (id, why): (u64, Fault),
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let Some(key) = key_of(id) else { return false };
        let is_due = self.pending_rma.get(key).is_some_and(|pending| pending.is_refused_by(from));
        if is_due {
            let completion = self.pending_rma[key].completion(Err(why));
            self.pending_rma.free(key);
            tell(completion);
        }
        is_due
    }

    /// The next bytes that were read, or that an update has found.
    pub(super) fn take_answer<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, source): (W::Lane, RemoteId),
        (key, len, place): (usize, u64, FragmentPlace),
        tell: &mut impl FnMut(Completion),
    ) -> Result<(), Malformed> {
        let answered = self.pending_rma.get_mut(key).ok_or(Malformed)?;
        let (into, at, left) = answered.coming(source).ok_or(Malformed)?;
        if len == 0 || len > left as u64 {
            return Err(Malformed);
        }
        let fragment = Fragment { lane, source, place, len: len as usize };
        fragment.check(transport)?;
        fragment.take_to(transport, into, (at, len as usize));
        if answered.take(len as usize) {
            let completion = answered.completion(Ok(()));
            self.pending_rma.free(key);
            tell(completion);
        }
        Ok(())
    }

    /// Nothing of what touches a remote's windows will be answered.
    pub(super) fn end_pending_rma(&mut self, to: RemoteId, why: Fault) {
        let Self { pending_rma, completions, streams, .. } = self;
        pending_rma.free_all(to, |pending| completions.push(pending.completion(Err(why))));
        debug_assert!(pending_rma.has_none(to), "all have ended");
        streams.keep_writes(|key| pending_rma.contains(key));
    }
}

fn push_rma<W: Transport>(
    transport: &mut W,
    lane: W::Lane,
    record: &RmaRecord,
    bytes: &[u8],
) -> Result<(), W::Error> {
    let (tag, [a, b, c, d, e, f], words) = record.encode();
    match words {
        4 => transport.push(lane, tag, [0, a, b, c, d], bytes),
        5 => transport.push(lane, tag, [0, a, b, c, d, e], bytes),
        _ => transport.push(lane, tag, [0, a, b, c, d, e, f], bytes),
    }
}

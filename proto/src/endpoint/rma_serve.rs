//! Service of remotes' access to our memory regions: the accesses and their replies.
use super::completions::{Completion, CompletionKind, RmaEvent, RmaKind};
use super::replies::ANSWER;
use super::rma_target::Reading;
use super::streams::Stream;
use super::take::Head;
use super::transport::{FragmentPlace, Memory, Transport};
use super::{FRAGMENT_MAX, Protocol, RemoteId, SHORT_MAX, zeros};
use crate::envelope::Record;
use crate::fault::Fault;
use crate::lane::Malformed;
use crate::rma::{Calculation, RmaRecord};
use crate::units::{Rights, RmaClaim};

impl<M: Memory> Protocol<M> {
    /// The record at the head of a lane touches a window. All checks of the record come before any
    /// effect; what is wrong with its claims is answered.
    // spec: ENV-2, ENV-23
    pub(super) fn on_rma_record<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, source): (W::Lane, RemoteId),
        head: &Head,
        tell: &mut impl FnMut(Completion),
    ) -> Result<(), Malformed> {
        let (record, words) = RmaRecord::parse(head.tag, head.words, head.len)?;
        let (skip, bytes) = (words + 1, (head.len - words * 8) as u64);
        match record {
            RmaRecord::WriteHere { key, address, id, before, data } => {
                // A length that cannot be leaves any window.
                let len = before.saturating_add(bytes);
                let claim = RmaClaim { key, address, len, rights: Rights::WRITE };
                let fragment = (before, bytes, FragmentPlace::Lane(skip));
                self.take_write(transport, (lane, source), &claim, fragment)?;
                let done = self.peer_mut(source).rma_target.end_write();
                self.answer(transport, source, id, done);
                if done.is_ok() {
                    tell(rma_event((source, RmaKind::Wrote), &claim, data));
                }
            }
            RmaRecord::WritePart { key, address, len, before, count, place } => {
                let claim = RmaClaim { key, address, len, rights: Rights::WRITE };
                let fragment = (before, count, FragmentPlace::Ring(place));
                self.take_write(transport, (lane, source), &claim, fragment)?;
            }
            RmaRecord::WritePartHere { key, address, len, before } => {
                let claim = RmaClaim { key, address, len, rights: Rights::WRITE };
                let fragment = (before, bytes, FragmentPlace::Lane(skip));
                self.take_write(transport, (lane, source), &claim, fragment)?;
            }
            RmaRecord::Read { key, address, id, len } => {
                let claim = RmaClaim { key, address, len, rights: Rights::READ };
                self.take_read(transport, source, (&claim, id), tell);
            }
            RmaRecord::Update { key, address, id, what, data } => {
                let len = what.len() as u64;
                let claim = RmaClaim { key, address, len, rights: what.rights() };
                let done = self.take_update(transport, (lane, source, skip), (&claim, id), &what);
                let kind = if what.fetches { RmaKind::Fetched } else { RmaKind::Updated };
                if done {
                    tell(rma_event((source, kind), &claim, data));
                }
            }
        }
        Ok(())
    }

    /// Bytes of a write: those before them are in their place, or one of them was refused.
    // spec: ENV-25, ENV-26
    fn take_write<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, source): (W::Lane, RemoteId),
        claim: &RmaClaim,
        (before, count, from): (u64, u64, FragmentPlace),
    ) -> Result<(), Malformed> {
        let len = count as usize;
        let Self { peers, staging, .. } = self;
        let rma_target = &mut peers[source.index()].rma_target;
        let refused = match from {
            FragmentPlace::Ring(place) => {
                transport.check_ring(source, place, len)?;
                let so_far = rma_target.begin_fragment(before);
                let piece = (place, len);
                let placed =
                    so_far.and_then(|()| transport.ring_to_region(source, piece, claim, before));
                if placed.is_err() {
                    transport.take_ring(source, piece, &mut []);
                }
                placed.err()
            }
            FragmentPlace::Lane(skip) => {
                let bytes = staging.get_mut(..len).ok_or(Malformed)?;
                transport.copy(lane, skip, bytes);
                let so_far = rma_target.begin_fragment(before);
                so_far.and_then(|()| transport.write_region(claim, before, bytes)).err()
            }
        };
        rma_target.end_fragment(refused);
        Ok(())
    }

    /// A read: short ones are answered at once, the bytes of others leave when there is room.
    // spec: ENV-27
    fn take_read(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        source: RemoteId,
        (claim, id): (&RmaClaim, u64),
        tell: &mut impl FnMut(Completion),
    ) {
        if claim.len > SHORT_MAX as u64 {
            if let Err(why) = transport.check_claim(claim) {
                return self.answer(transport, source, id, Err(why));
            }
            if self.peer_mut(source).rma_target.begin_read(*claim, id) {
                self.streams.push(Stream::Reads(source));
            }
            return self.charge(transport, source, ANSWER);
        }
        let mut bytes = zeros(claim.len as usize);
        match transport.read_region(claim, 0, &mut bytes) {
            Ok(()) => {
                self.answer_with(transport, source, id, &bytes);
                tell(rma_event((source, RmaKind::Read), claim, None));
            }
            Err(why) => self.answer(transport, source, id, Err(why)),
        }
    }

    /// An update, whose operands lie in the lane: whether it was done. Most are of one number.
    // spec: ENV-28
    fn take_update<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, source, skip): (W::Lane, RemoteId, usize),
        (claim, id): (&RmaClaim, u64),
        what: &Calculation,
    ) -> bool {
        let operand_len = what.operand_len() + what.comparand_len();
        let done = if (operand_len, what.len()) == (8, 8) {
            let mut operand = [0; 8];
            transport.copy_short(lane, skip, &mut operand);
            let done = update(transport, claim, what, (&operand, [0; 8]));
            done.map(|old| self.tell_updated(transport, (source, id), what, &old))
        } else {
            let mut operands = zeros(operand_len);
            transport.copy(lane, skip, &mut operands);
            let done = update(transport, claim, what, (&operands, zeros(what.len())));
            done.map(|old| self.tell_updated(transport, (source, id), what, &old))
        };
        if let Err(why) = done {
            self.answer(transport, source, id, Err(why));
        }
        done.is_ok()
    }

    fn tell_updated(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        (to, id): (RemoteId, u64),
        what: &Calculation,
        old: &[u8],
    ) {
        self.answer_with(transport, to, id, if what.fetches { old } else { &[] });
    }

    fn answer(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
        id: u64,
        done: Result<(), Fault>,
    ) {
        let record = match done {
            Ok(()) => Record::Fin { id },
            Err(fault) => Record::Refused { id, fault },
        };
        self.reply(transport, to, record);
    }

    fn answer_with(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
        id: u64,
        bytes: &[u8],
    ) {
        if bytes.is_empty() {
            return self.answer(transport, to, id, Ok(()));
        }
        self.reply_with(transport, to, Record::FragmentHere { to: id }, bytes);
    }

    /// The next bytes that a remote has asked for: whether any have gone, and whether all have.
    pub(super) fn push_reads(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
        tell: &mut impl FnMut(Completion),
    ) -> (bool, bool) {
        let mut any = false;
        loop {
            let rma_target = &mut self.peer_mut(to).rma_target;
            let Some(Reading { claim, id, gone }) = rma_target.read() else { return (any, true) };
            if gone == claim.len {
                rma_target.end_read();
                self.discharge(transport, to, ANSWER);
                tell(rma_event((to, RmaKind::Read), &claim, None));
                continue;
            }
            match Self::push_read_fragment(transport, to, &claim, (id, gone)) {
                Ok(Some(count)) => self.peer_mut(to).rma_target.has_gone(count),
                Ok(None) => return (any, false),
                Err(why) => {
                    self.peer_mut(to).rma_target.end_read();
                    self.discharge(transport, to, ANSWER);
                    self.answer(transport, to, id, Err(why));
                }
            }
            any = true;
        }
    }

    /// The next bytes of one read: how many, if there was room. The window may have been withdrawn
    /// meanwhile.
    // spec: ENV-22, ENV-27
    fn push_read_fragment(
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
        claim: &RmaClaim,
        (id, gone): (u64, u64),
    ) -> Result<Option<u64>, Fault> {
        let Some(lane) = transport.lane(to) else { return Ok(None) };
        if transport.reserve(lane).is_err() {
            return Ok(None);
        }
        debug_assert!(gone < claim.len, "something is still to go");
        let left = claim.len - gone;
        if let Some(longest) = transport.longest_piece(to) {
            let count = (left.min(FRAGMENT_MAX as u64) as usize).min(longest);
            let place = transport.region_to_ring(to, count, claim, gone)?;
            let Some(place) = place else { return Ok(None) };
            let fragment = Record::Fragment { to: id, len: count as u64, place };
            let pushed = Self::push_record(transport, lane, &fragment, &[]);
            return Ok(pushed.is_ok().then_some(count as u64));
        }
        let mut staged = [0; SHORT_MAX];
        let bytes = &mut staged[..left.min(SHORT_MAX as u64) as usize];
        transport.read_region(claim, gone, bytes)?;
        let pushed = Self::push_record(transport, lane, &Record::FragmentHere { to: id }, bytes);
        Ok(pushed.is_ok().then_some(bytes.len() as u64))
    }

    /// A remote touches our windows no more.
    pub(super) fn end_rma_target(&mut self, from: RemoteId) {
        let Some(peer) = self.peers.get_mut(from.index()) else { return };
        let reads = peer.rma_target.end();
        self.give_back(from, reads as u64 * ANSWER);
        self.streams.drop_one(Stream::Reads(from));
    }
}

/// Updates a window's numbers with these operands: what was there, in a place as long.
#[inline(always)]
fn update<A: AsMut<[u8]> + Clone + PartialEq>(
    transport: &mut impl Transport,
    claim: &RmaClaim,
    what: &Calculation,
    (operands, place): (&[u8], A),
) -> Result<A, Fault> {
    let (operand, compare) = operands.split_at(what.operand_len());
    let make = |numbers: &mut [u8]| what.op.apply(what.number, numbers, operand, compare);
    transport.update_region(claim, place, make)
}

// spec: ENV-31
fn rma_event(
    (source, kind): (RemoteId, RmaKind),
    claim: &RmaClaim,
    data: Option<u64>,
) -> Completion {
    let RmaClaim { key, len, .. } = *claim;
    let event = RmaEvent { source, key, kind, len, data };
    Completion { context: 0, what: CompletionKind::RmaEvent(event), result: Ok(()) }
}

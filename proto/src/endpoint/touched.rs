//! What remotes do to our windows, and what they are answered.
use super::ends::{Completion, CompletionKind, RmaEvent, RmaKind};
use super::replies::ANSWER;
use super::rma_target::Reading;
use super::streams::Stream;
use super::take::Head;
use super::ways::{Memory, PartPlace, Ways};
use super::{PART_MAX, Protocol, RemoteId, SHORT_MAX, zeros};
use crate::envelope::Record;
use crate::fault::Fault;
use crate::lane::Malformed;
use crate::rma::{Calculation, RmaRecord};
use crate::units::{Rights, RmaClaim};

impl<M: Memory> Protocol<M> {
    /// The record at the head of a lane touches a window. All checks of the record come before any
    /// effect; what is wrong with its claims is answered.
    // spec: ENV-2, ENV-23
    pub(super) fn on_touch<W: Ways<Memory = M>>(
        &mut self,
        ways: &mut W,
        (lane, source): (W::Lane, RemoteId),
        head: &Head,
        tell: &mut impl FnMut(Completion),
    ) -> Result<(), Malformed> {
        let (touch, words) = RmaRecord::parse(head.tag, head.words, head.len)?;
        let (skip, bytes) = (words + 1, (head.len - words * 8) as u64);
        match touch {
            RmaRecord::WriteHere { key, address, id, before, data } => {
                // A length that cannot be leaves any window.
                let len = before.saturating_add(bytes);
                let claim = RmaClaim { key, address, len, rights: Rights::WRITE };
                let part = (before, bytes, PartPlace::Lane(skip));
                self.take_write(ways, (lane, source), &claim, part)?;
                let done = self.peer_mut(source).toucher.end_write();
                self.answer(ways, source, id, done);
                if done.is_ok() {
                    tell(touched((source, RmaKind::Wrote), &claim, data));
                }
            }
            RmaRecord::WritePart { key, address, len, before, count, place } => {
                let claim = RmaClaim { key, address, len, rights: Rights::WRITE };
                let part = (before, count, PartPlace::Ring(place));
                self.take_write(ways, (lane, source), &claim, part)?;
            }
            RmaRecord::WritePartHere { key, address, len, before } => {
                let claim = RmaClaim { key, address, len, rights: Rights::WRITE };
                let part = (before, bytes, PartPlace::Lane(skip));
                self.take_write(ways, (lane, source), &claim, part)?;
            }
            RmaRecord::Read { key, address, id, len } => {
                let claim = RmaClaim { key, address, len, rights: Rights::READ };
                self.take_read(ways, source, (&claim, id), tell);
            }
            RmaRecord::Update { key, address, id, what, data } => {
                let len = what.len() as u64;
                let claim = RmaClaim { key, address, len, rights: what.rights() };
                let done = self.take_update(ways, (lane, source, skip), (&claim, id), &what);
                let kind = if what.fetches { RmaKind::Fetched } else { RmaKind::Updated };
                if done {
                    tell(touched((source, kind), &claim, data));
                }
            }
        }
        Ok(())
    }

    /// Bytes of a write: those before them are in their place, or one of them was refused.
    // spec: ENV-25, ENV-26
    fn take_write<W: Ways<Memory = M>>(
        &mut self,
        ways: &mut W,
        (lane, source): (W::Lane, RemoteId),
        claim: &RmaClaim,
        (before, count, from): (u64, u64, PartPlace),
    ) -> Result<(), Malformed> {
        let len = count as usize;
        let Self { peers, staging, .. } = self;
        let toucher = &mut peers[source.index()].toucher;
        let refused = match from {
            PartPlace::Ring(place) => {
                ways.check_ring(source, place, len)?;
                let so_far = toucher.begin_part(before);
                let piece = (place, len);
                let placed =
                    so_far.and_then(|()| ways.ring_to_window(source, piece, claim, before));
                if placed.is_err() {
                    ways.take_ring(source, piece, &mut []);
                }
                placed.err()
            }
            PartPlace::Lane(skip) => {
                let bytes = staging.get_mut(..len).ok_or(Malformed)?;
                ways.copy(lane, skip, bytes);
                let so_far = toucher.begin_part(before);
                so_far.and_then(|()| ways.write_window(claim, before, bytes)).err()
            }
        };
        toucher.end_part(refused);
        Ok(())
    }

    /// A read: short ones are answered at once, the bytes of others leave when there is room.
    // spec: ENV-27
    fn take_read(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        source: RemoteId,
        (claim, id): (&RmaClaim, u64),
        tell: &mut impl FnMut(Completion),
    ) {
        if claim.len > SHORT_MAX as u64 {
            if let Err(why) = ways.check_claim(claim) {
                return self.answer(ways, source, id, Err(why));
            }
            if self.peer_mut(source).toucher.begin_read(*claim, id) {
                self.streams.push(Stream::Reads(source));
            }
            return self.charge(ways, source, ANSWER);
        }
        let mut bytes = zeros(claim.len as usize);
        match ways.read_window(claim, 0, &mut bytes) {
            Ok(()) => {
                self.answer_with(ways, source, id, &bytes);
                tell(touched((source, RmaKind::Read), claim, None));
            }
            Err(why) => self.answer(ways, source, id, Err(why)),
        }
    }

    /// An update, whose operands lie in the lane: whether it was done. Most are of one number.
    // spec: ENV-28
    fn take_update<W: Ways<Memory = M>>(
        &mut self,
        ways: &mut W,
        (lane, source, skip): (W::Lane, RemoteId, usize),
        (claim, id): (&RmaClaim, u64),
        what: &Calculation,
    ) -> bool {
        let operand_len = what.operand_len() + what.comparand_len();
        let done = if (operand_len, what.len()) == (8, 8) {
            let mut operand = [0; 8];
            ways.copy_short(lane, skip, &mut operand);
            let done = update(ways, claim, what, (&operand, [0; 8]));
            done.map(|old| self.tell_updated(ways, (source, id), what, &old))
        } else {
            let mut operands = zeros(operand_len);
            ways.copy(lane, skip, &mut operands);
            let done = update(ways, claim, what, (&operands, zeros(what.len())));
            done.map(|old| self.tell_updated(ways, (source, id), what, &old))
        };
        if let Err(why) = done {
            self.answer(ways, source, id, Err(why));
        }
        done.is_ok()
    }

    fn tell_updated(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        (to, id): (RemoteId, u64),
        what: &Calculation,
        old: &[u8],
    ) {
        self.answer_with(ways, to, id, if what.fetches { old } else { &[] });
    }

    fn answer(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        to: RemoteId,
        id: u64,
        done: Result<(), Fault>,
    ) {
        let record = match done {
            Ok(()) => Record::Fin { id },
            Err(fault) => Record::Refused { id, fault },
        };
        self.reply(ways, to, record);
    }

    fn answer_with(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        to: RemoteId,
        id: u64,
        bytes: &[u8],
    ) {
        if bytes.is_empty() {
            return self.answer(ways, to, id, Ok(()));
        }
        self.reply_with(ways, to, Record::FragmentHere { to: id }, bytes);
    }

    /// The next bytes that a remote has asked for: whether any have gone, and whether all have.
    pub(super) fn push_reads(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        to: RemoteId,
        tell: &mut impl FnMut(Completion),
    ) -> (bool, bool) {
        let mut any = false;
        loop {
            let toucher = &mut self.peer_mut(to).toucher;
            let Some(Reading { claim, id, gone }) = toucher.read() else { return (any, true) };
            if gone == claim.len {
                toucher.end_read();
                self.discharge(ways, to, ANSWER);
                tell(touched((to, RmaKind::Read), &claim, None));
                continue;
            }
            match Self::push_read_part(ways, to, &claim, (id, gone)) {
                Ok(Some(count)) => self.peer_mut(to).toucher.has_gone(count),
                Ok(None) => return (any, false),
                Err(why) => {
                    self.peer_mut(to).toucher.end_read();
                    self.discharge(ways, to, ANSWER);
                    self.answer(ways, to, id, Err(why));
                }
            }
            any = true;
        }
    }

    /// The next bytes of one read: how many, if there was room. The window may have been withdrawn
    /// meanwhile.
    // spec: ENV-22, ENV-27
    fn push_read_part(
        ways: &mut impl Ways<Memory = M>,
        to: RemoteId,
        claim: &RmaClaim,
        (id, gone): (u64, u64),
    ) -> Result<Option<u64>, Fault> {
        let Some(lane) = ways.lane(to) else { return Ok(None) };
        if ways.reserve(lane).is_err() {
            return Ok(None);
        }
        debug_assert!(gone < claim.len, "something is still to go");
        let left = claim.len - gone;
        if let Some(longest) = ways.longest_piece(to) {
            let count = (left.min(PART_MAX as u64) as usize).min(longest);
            let place = ways.window_to_ring(to, count, claim, gone)?;
            let Some(place) = place else { return Ok(None) };
            let part = Record::Fragment { to: id, len: count as u64, place };
            let pushed = Self::push_record(ways, lane, &part, &[]);
            return Ok(pushed.is_ok().then_some(count as u64));
        }
        let mut staged = [0; SHORT_MAX];
        let bytes = &mut staged[..left.min(SHORT_MAX as u64) as usize];
        ways.read_window(claim, gone, bytes)?;
        let pushed = Self::push_record(ways, lane, &Record::FragmentHere { to: id }, bytes);
        Ok(pushed.is_ok().then_some(bytes.len() as u64))
    }

    /// A remote touches our windows no more.
    pub(super) fn end_touched(&mut self, from: RemoteId) {
        let Some(peer) = self.peers.get_mut(from.index()) else { return };
        let reads = peer.toucher.end();
        self.give_back(from, reads as u64 * ANSWER);
        self.streams.drop_one(Stream::Reads(from));
    }
}

/// Updates a window's numbers with these operands: what was there, in a place as long.
#[inline(always)]
fn update<A: AsMut<[u8]> + Clone + PartialEq>(
    ways: &mut impl Ways,
    claim: &RmaClaim,
    what: &Calculation,
    (operands, place): (&[u8], A),
) -> Result<A, Fault> {
    let (operand, compare) = operands.split_at(what.operand_len());
    let make = |numbers: &mut [u8]| what.op.apply(what.number, numbers, operand, compare);
    ways.update_window(claim, place, make)
}

// spec: ENV-31
fn touched((source, kind): (RemoteId, RmaKind), claim: &RmaClaim, data: Option<u64>) -> Completion {
    let RmaClaim { key, len, .. } = *claim;
    let touched = RmaEvent { source, key, kind, len, data };
    Completion { context: 0, what: CompletionKind::RmaEvent(touched), result: Ok(()) }
}

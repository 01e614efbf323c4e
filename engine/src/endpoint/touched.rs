//! What remotes do to our windows, and what they are answered.
use super::ends::{End, TouchKind, Touched, What};
use super::parts::{PART_MAX, PartPlace, SHORT_MAX, zeros};
use super::receive::Taken;
use super::replies::ANSWER;
use super::streams::Stream;
use super::toucher::Reading;
use super::windows::Windows;
use super::{Endpoint, RemoteId};
use crate::error::Fault;
use crate::mem::exposed::Exposed;
use ayre_proto::envelope::Record;
use ayre_proto::lane::{Malformed, Status};
use ayre_proto::touch::{Calculation, TOUCH_WORDS, Touch};
use ayre_proto::units::{Rights, WindowClaim};

impl Endpoint {
    /// Lets remotes touch these windows from now on, in place of those they could touch before;
    /// without any, each key is unknown.
    pub fn share(&mut self, windows: &Windows) {
        self.windows = Some(windows.clone());
    }

    /// The record at the head of a lane, if it touches a window. All checks of the record come
    /// before any effect; what is wrong with its claims is answered.
    // spec: ENV-2, ENV-23
    pub(super) fn take_touch(
        &mut self,
        (index, source): (usize, RemoteId),
        status: &Status,
        tell: &mut impl FnMut(End),
    ) -> Result<Taken, Malformed> {
        let Some(connection) = self.port.peers.at(index) else {
            return Err(Malformed);
        };
        let [_, head @ ..] = connection.messages_in.head::<{ TOUCH_WORDS + 1 }>();
        let len = (status.len as usize).checked_sub(8).ok_or(Malformed)?;
        let (touch, words) = Touch::parse(status.tag, head, len)?;
        let (skip, bytes) = (words + 1, (len - words * 8) as u64);
        match touch {
            Touch::WriteHere { key, address, id, before, data } => {
                // A length that cannot be leaves any window.
                let len = before.saturating_add(bytes);
                let claim = WindowClaim { key, address, len, rights: Rights::WRITE };
                let part = (before, bytes, PartPlace::Lane(skip));
                self.take_write(source, index, &claim, part)?;
                let done = self.remotes[source].toucher().end_write();
                self.answer(source, id, done);
                if done.is_ok() {
                    tell(touched((source, TouchKind::Wrote), &claim, data));
                }
            }
            Touch::WritePart { key, address, len, before, count, place } => {
                let claim = WindowClaim { key, address, len, rights: Rights::WRITE };
                let part = (before, count, PartPlace::Ring(place));
                self.take_write(source, index, &claim, part)?;
            }
            Touch::WritePartHere { key, address, len, before } => {
                let claim = WindowClaim { key, address, len, rights: Rights::WRITE };
                let part = (before, bytes, PartPlace::Lane(skip));
                self.take_write(source, index, &claim, part)?;
            }
            Touch::Read { key, address, id, len } => {
                let claim = WindowClaim { key, address, len, rights: Rights::READ };
                self.take_read(source, (&claim, id), tell)?;
            }
            Touch::Update { key, address, id, what, data } => {
                let len = what.len() as u64;
                let claim = WindowClaim { key, address, len, rights: what.rights() };
                let done = self.take_update((index, source), (&claim, id), &what, skip)?;
                let kind = if what.tells { TouchKind::Fetched } else { TouchKind::Updated };
                if done {
                    tell(touched((source, kind), &claim, data));
                }
            }
        }
        Ok(Taken::Yes)
    }

    /// Bytes of a write: those before them are in their place, or one of them was refused.
    // spec: ENV-25, ENV-26
    fn take_write(
        &mut self,
        source: RemoteId,
        index: usize,
        claim: &WindowClaim,
        (before, count, from): (u64, u64, PartPlace),
    ) -> Result<(), Malformed> {
        let Self { windows, remotes, port, staging, .. } = self;
        let remote = &mut remotes[source];
        let len = count as usize;
        let so_far = remote.toucher().begin_part(before);
        let refused = match from {
            PartPlace::Ring(place) => {
                let ring = remote.ring_in().ok_or(Malformed)?;
                ring.check(place, len)?;
                let place_it = |memory: &Exposed, at| {
                    ring.take_by(place, len, |ring, offset| {
                        memory.write_from(at + before, ring, offset, len);
                    })
                };
                let placed = so_far.and_then(|()| perform(windows, claim, place_it));
                match placed {
                    Ok(taken) => taken?,
                    Err(_) => ring.take(place, len, &mut [])?,
                }
                placed.err()
            }
            PartPlace::Lane(skip) => {
                let connection = port.peers.at(index).ok_or(Malformed)?;
                let bytes = staging.get_mut(..len).ok_or(Malformed)?;
                connection.messages_in.copy(skip, bytes);
                let place_it = |memory: &Exposed, at| memory.write(at + before, bytes);
                so_far.and_then(|()| perform(windows, claim, place_it)).err()
            }
        };
        remote.toucher().end_part(refused);
        Ok(())
    }

    /// A read: short ones are answered at once, the bytes of others leave when there is room.
    // spec: ENV-27
    fn take_read(
        &mut self,
        source: RemoteId,
        (claim, id): (&WindowClaim, u64),
        tell: &mut impl FnMut(End),
    ) -> Result<(), Malformed> {
        let claim = *claim;
        if claim.len > SHORT_MAX as u64 {
            let found = perform(&self.windows, &claim, |_, _| ());
            if let Err(why) = found {
                self.answer(source, id, Err(why));
                return Ok(());
            }
            if self.remotes[source].toucher().begin_read(claim, id) {
                self.streams.push(Stream::Reads(source));
            }
            self.charge(source, ANSWER);
            return Ok(());
        }
        let mut bytes = zeros(claim.len as usize);
        match perform(&self.windows, &claim, |memory, at| memory.read(at, &mut bytes)) {
            Ok(()) => {
                self.answer_with(source, id, &bytes);
                tell(touched((source, TouchKind::Read), &claim, None));
            }
            Err(why) => self.answer(source, id, Err(why)),
        }
        Ok(())
    }

    /// An update, whose operands lie in the lane: whether it was done. Most are of one number.
    // spec: ENV-28
    fn take_update(
        &mut self,
        (index, source): (usize, RemoteId),
        (claim, id): (&WindowClaim, u64),
        what: &Calculation,
        skip: usize,
    ) -> Result<bool, Malformed> {
        let Self { windows, port, .. } = self;
        let lane = &port.peers.at(index).ok_or(Malformed)?.messages_in;
        let operand_len = what.operand_len() + what.comparand_len();
        let done = if (operand_len, what.len()) == (8, 8) {
            let mut operand = [0; 8];
            lane.copy_short(skip, &mut operand);
            let done = update(windows, claim, what, (&operand, [0; 8]));
            done.map(|old| self.tell_updated((source, id), what, &old))
        } else {
            let mut operands = zeros(operand_len);
            lane.copy(skip, &mut operands);
            let done = update(windows, claim, what, (&operands, zeros(what.len())));
            done.map(|old| self.tell_updated((source, id), what, &old))
        };
        if let Err(why) = done {
            self.answer(source, id, Err(why));
        }
        Ok(done.is_ok())
    }

    fn tell_updated(&mut self, (to, id): (RemoteId, u64), what: &Calculation, old: &[u8]) {
        self.answer_with(to, id, if what.tells { old } else { &[] });
    }

    fn answer(&mut self, to: RemoteId, id: u64, done: Result<(), Fault>) {
        let record = match done {
            Ok(()) => Record::Done { id },
            Err(fault) => Record::Refused { id, fault },
        };
        self.reply(to, record);
    }

    fn answer_with(&mut self, to: RemoteId, id: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return self.answer(to, id, Ok(()));
        }
        self.reply_with(to, Record::PartHere { to: id }, bytes);
    }

    /// The next bytes that a remote has asked for: whether any have gone, and whether all have.
    pub(super) fn push_reads(&mut self, to: RemoteId, tell: &mut impl FnMut(End)) -> (bool, bool) {
        let mut any = false;
        loop {
            let toucher = self.remotes[to].toucher();
            let Some(Reading { claim, id, gone }) = toucher.read() else { return (any, true) };
            if gone == claim.len {
                toucher.end_read();
                self.discharge(to, ANSWER);
                tell(touched((to, TouchKind::Read), &claim, None));
                continue;
            }
            match self.push_read_part(to, &claim, (id, gone)) {
                Ok(Some(count)) => self.remotes[to].toucher().has_gone(count),
                Ok(None) => return (any, false),
                Err(why) => {
                    self.remotes[to].toucher().end_read();
                    self.discharge(to, ANSWER);
                    self.answer(to, id, Err(why));
                }
            }
            any = true;
        }
    }

    /// The next bytes of one read: how many, if there was room. The window may have been withdrawn
    /// meanwhile.
    // spec: ENV-22, ENV-27
    fn push_read_part(
        &mut self,
        to: RemoteId,
        claim: &WindowClaim,
        (id, gone): (u64, u64),
    ) -> Result<Option<u64>, Fault> {
        let Some(peer) = self.remotes[to].peer() else { return Ok(None) };
        if self.reserve(peer).is_err() {
            return Ok(None);
        }
        debug_assert!(gone < claim.len, "something is still to go");
        let left = claim.len - gone;
        let Self { windows, remotes, .. } = self;
        if let Some(ring) = remotes[to].ring_out() {
            let count = left.min(PART_MAX as u64) as usize;
            let count = count.min(ring.longest());
            let place = perform(windows, claim, |memory, at| {
                ring.write_by(count, |ring, offset| {
                    memory.read_to(at + gone, ring, offset, count);
                })
            })?;
            let Some(place) = place else { return Ok(None) };
            let part = Record::Part { to: id, len: count as u64, place };
            let pushed = self.push_record(peer, &part, &[]);
            return Ok(pushed.is_ok().then_some(count as u64));
        }
        let mut staged = [0; SHORT_MAX];
        let bytes = &mut staged[..left.min(SHORT_MAX as u64) as usize];
        perform(windows, claim, |memory, at| memory.read(at + gone, bytes))?;
        let pushed = self.push_record(peer, &Record::PartHere { to: id }, bytes);
        Ok(pushed.is_ok().then_some(bytes.len() as u64))
    }

    /// A remote touches our windows no more.
    pub(super) fn end_touched(&mut self, from: RemoteId) {
        let reads = self.remotes[from].toucher().end();
        self.kept.give_back(from, reads as u64 * ANSWER);
        self.streams.drop_one(Stream::Reads(from));
    }
}

/// As [`Windows::perform`], of an endpoint that may have none.
#[inline(always)]
fn perform<T>(
    windows: &Option<Windows>,
    claim: &WindowClaim,
    what: impl FnOnce(&Exposed, u64) -> T,
) -> Result<T, Fault> {
    windows.as_ref().ok_or(Fault::UnknownKey)?.perform(claim, what)
}

/// Updates a window's numbers with these operands: what was there, in a place as long.
#[inline(always)]
fn update<A: AsMut<[u8]> + Clone + PartialEq>(
    windows: &Option<Windows>,
    claim: &WindowClaim,
    what: &Calculation,
    (operands, mut old): (&[u8], A),
) -> Result<A, Fault> {
    let (operand, compare) = operands.split_at(what.operand_len());
    perform(windows, claim, |memory, at| {
        memory.read(at, old.as_mut());
        let mut new = old.clone();
        what.op.apply(what.number, new.as_mut(), operand, compare);
        if new != old {
            memory.write(at, new.as_mut());
        }
        old
    })
}

// spec: ENV-31
fn touched((source, kind): (RemoteId, TouchKind), claim: &WindowClaim, data: Option<u64>) -> End {
    let WindowClaim { key, len, .. } = *claim;
    let touched = Touched { source, key, kind, len, data };
    End { context: 0, what: What::Touched(touched), result: Ok(()) }
}

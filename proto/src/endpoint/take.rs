//! Records of remotes: which of them are messages, answers or touches, and where their bytes go.
use super::completions::{Completion, CompletionKind};
use super::incoming::{Body, BodyPlace};
use super::origin::{Origin, RemoteBody};
use super::remote_address::key_of;
use super::streams::Stream;
use super::transfers::Transfer;
use super::transport::{FragmentPlace, Memory, Transport};
use super::{Protocol, RemoteId};
use crate::envelope::{ALL, ENVELOPE_WORDS, Record};
use crate::fault::Fault;
use crate::lane::Malformed;
use crate::matching::{Arrive, Place};
use crate::rma::{RMA_WORDS, RmaRecord};
use alloc::boxed::Box;
use alloc::vec;

/// The result of [`Protocol::on_record`].
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was taken.
    Yes,
    /// No more of its sender can be kept; it stays.
    NotYet,
}

/// A record as it stands at the head of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Its tag.
    pub tag: u32,
    /// The words of the longest head, behind the way's own; others than it has are anything.
    pub words: [u64; RMA_WORDS],
    /// Its bytes behind the way's own word.
    pub len: usize,
}

/// The result of [`Protocol::on_short`].
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnShort {
    /// It was taken, and its end told.
    Placed,
    /// No receive takes it: it is to be kept.
    Unexpected,
    /// A table has to grow.
    Busy,
}

impl<M: Memory> Protocol<M> {
    /// A short message has come whose sender needs no reply: the most frequent record. `take`
    /// copies the given number of its bytes to the receive's memory, from the given offset on.
    /// [`Protocol::on_record`] does this for any record.
    #[inline(always)]
    pub fn on_short(
        &mut self,
        origin: &Origin,
        take: impl FnOnce(&mut M, (usize, usize)),
        tell: &mut impl FnMut(Completion),
    ) -> OnShort {
        let place = match self.receives.arrive(origin, true) {
            Arrive::Matched(place) => place,
            Arrive::Unexpected(_) => return OnShort::Unexpected,
            Arrive::Busy => return OnShort::Busy,
        };
        let (key, Place { offset, len, released, .. }) = (place.handle as usize, place);
        let incoming = &mut self.receives[key];
        incoming.release(released);
        take(incoming.memory(), (offset as usize, len as usize));
        let (context, is_last) = (incoming.context(), incoming.is_over());
        if is_last {
            self.receives.free(key);
        }
        let received = origin.received((offset, len), is_last);
        tell(Completion { context, what: CompletionKind::Received(received), result: Ok(()) });
        OnShort::Placed
    }

    /// Keeps a message that no receive takes, and that has been offered by [`Protocol::on_short`].
    pub fn keep_short(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        origin: &Origin,
        bytes: Box<[u8]>,
    ) {
        debug_assert_eq!(bytes.len() as u64, origin.len, "all of it is here");
        self.keep(transport, Body { origin: *origin, place: BodyPlace::Local(bytes) });
    }

    /// Takes the record at the head of a lane. All checks come before any effect. Ends that were
    /// not told yet are told first: see [`Protocol::tell_completions`].
    ///
    /// # Errors
    /// [`Malformed`] for what no correct remote says; nothing has happened.
    // spec: ENV-2
    #[inline]
    pub fn on_record<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, source): (W::Lane, RemoteId),
        head: &Head,
        tell: &mut impl FnMut(Completion),
    ) -> Result<Taken, Malformed> {
        if RmaRecord::is_one(head.tag) {
            self.on_rma_record(transport, (lane, source), head, tell)?;
            return Ok(Taken::Yes);
        }
        let words = core::array::from_fn::<_, ENVELOPE_WORDS, _>(|index| head.words[index]);
        let (record, words) = Record::parse(head.tag, words, head.len)?;
        let bytes = (head.len - words * 8) as u64;
        match record {
            Record::Short { envelope, answer } => {
                let origin = Origin { source, envelope, len: bytes, answer };
                return self.take_whole(
                    transport,
                    (lane, FragmentPlace::Lane(words + 1)),
                    &origin,
                    tell,
                );
            }
            Record::Long { envelope, answer, len, place } => {
                let origin = Origin { source, envelope, len, answer };
                return self.take_whole(
                    transport,
                    (lane, FragmentPlace::Ring(place)),
                    &origin,
                    tell,
                );
            }
            Record::Rts { envelope, id, answered, len, address } => {
                let answer = answered.then_some(id);
                let origin = Origin { source, envelope, len, answer };
                return Ok(self.take_rts(transport, RemoteBody { id, address }, &origin));
            }
            Record::Cts { id, to, len } => known(self.on_cts(source, id, (to, len), tell))?,
            Record::Fin { id } => known(match key_of(id) {
                Some(key) => self.on_rma_done(source, key, tell),
                None => self.on_fin(source, id, tell),
            })?,
            Record::Ahead { longest } => self.peer_mut(source).eager.limit(longest),
            Record::Refused { id: ALL, .. } => self.on_shut_out(transport, source),
            Record::Refused { id, fault } => known(self.on_refused(source, (id, fault), tell))?,
            Record::Fragment { to, len, place } => {
                self.take_fragment(
                    transport,
                    (lane, source),
                    (to, len, FragmentPlace::Ring(place)),
                    tell,
                )?;
            }
            Record::FragmentHere { to } => {
                let place = FragmentPlace::Lane(words + 1);
                self.take_fragment(transport, (lane, source), (to, bytes, place), tell)?;
            }
        }
        Ok(Taken::Yes)
    }

    fn arrive(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        origin: &Origin,
        whole: bool,
    ) -> Arrive {
        let mut arrived = self.receives.arrive(origin, whole);
        if let Arrive::Busy = arrived {
            if self.receives.grow_messages(origin.envelope.tag.is_some()) {
                arrived = self.receives.arrive(origin, whole);
            } else {
                self.shut_out(transport, origin.source);
            }
        }
        if let Arrive::Matched(Place { handle, released, .. }) = arrived {
            let incoming = &mut self.receives[handle as usize];
            incoming.release(released);
            incoming.expect(1);
        }
        arrived
    }

    /// A message all of whose bytes are here.
    #[inline]
    fn take_whole<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, place): (W::Lane, FragmentPlace),
        origin: &Origin,
        tell: &mut impl FnMut(Completion),
    ) -> Result<Taken, Malformed> {
        let whole = usize::try_from(origin.len).map_err(|_| Malformed)?;
        let bytes = Fragment { lane, source: origin.source, place, len: whole };
        bytes.check(transport)?;
        match self.arrive(transport, origin, true) {
            Arrive::Matched(Place { handle, offset, len, .. }) => {
                let key = handle as usize;
                let memory = self.receives[key].memory();
                bytes.take_to(transport, memory, (offset as usize, len as usize));
                tell(self.arrived(transport, (key, offset, len), origin));
            }
            Arrive::Unexpected(_) => {
                let mut kept = vec![0; whole].into_boxed_slice();
                bytes.take(transport, &mut kept);
                self.keep(transport, Body { origin: *origin, place: BodyPlace::Local(kept) });
            }
            Arrive::Busy => return Ok(Taken::NotYet),
        }
        Ok(Taken::Yes)
    }

    /// A message that is still with its sender.
    fn take_rts(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        remote_body: RemoteBody,
        origin: &Origin,
    ) -> Taken {
        match self.arrive(transport, origin, false) {
            Arrive::Matched(Place { handle, offset, len, .. }) => {
                self.start_transfer(
                    transport,
                    Transfer::new((handle as usize, offset, len), origin, remote_body),
                );
            }
            Arrive::Unexpected(_) => {
                let place = BodyPlace::Remote(remote_body);
                self.keep(transport, Body { origin: *origin, place });
            }
            Arrive::Busy => return Taken::NotYet,
        }
        Taken::Yes
    }

    /// Gets a message from its sender.
    pub(super) fn start_transfer(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        mut transfer: Transfer,
    ) {
        if transfer.len() == 0 {
            let completion = self.complete_without_more(transport, &transfer);
            return self.complete_later(transport, completion);
        }
        if transfer.remote_body().address != 0 {
            transfer.choose(transport.choose(transfer.origin().source, transfer.len()));
        }
        let is_read = transfer.is_read();
        let to = self.transfers.insert(transfer);
        if is_read {
            self.streams.push(Stream::Fetch(to));
            transport.request_poll();
        } else {
            self.send_cts(transport, to);
        }
    }

    /// The next poll tells it.
    pub(super) fn complete_later(
        &mut self,
        transport: &impl Transport<Memory = M>,
        completion: Completion,
    ) {
        self.completions.push(completion);
        transport.request_poll();
    }

    /// Asks a message's sender for it.
    pub(super) fn send_cts(&mut self, transport: &mut impl Transport<Memory = M>, to: usize) {
        let Some(transfer) = self.transfers.get(to) else { return };
        let cts = Record::Cts { id: transfer.remote_body().id, to: to as u64, len: transfer.len() };
        self.reply(transport, transfer.origin().source, cts);
    }

    /// Nothing of a message is to be sent, for all is here that is wanted.
    // spec: ENV-18
    pub(super) fn complete_without_more(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        transfer: &Transfer,
    ) -> Completion {
        let origin = transfer.origin();
        let cts = Record::Cts { id: transfer.remote_body().id, to: u64::MAX, len: 0 };
        self.reply(transport, origin.source, cts);
        self.arrived(transport, transfer.place(), origin)
    }

    /// The next part of a message that is wanted, or of what was asked of a window.
    fn take_fragment<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (lane, source): (W::Lane, RemoteId),
        (to, len, place): (u64, u64, FragmentPlace),
        tell: &mut impl FnMut(Completion),
    ) -> Result<(), Malformed> {
        if let Some(key) = key_of(to) {
            return self.take_answer(transport, (lane, source), (key, len, place), tell);
        }
        let Self { transfers, receives, .. } = self;
        let transfer = transfers.get_mut(to as usize).ok_or(Malformed)?;
        let fits = len > 0 && len <= transfer.left();
        // Of what is read where it lies, nothing was asked for.
        if !transfer.is_asked_of(source) || !fits {
            return Err(Malformed);
        }
        let fragment = Fragment { lane, source, place, len: len as usize };
        fragment.check(transport)?;
        let into = receives[transfer.receive()].memory();
        fragment.take_to(transport, into, (transfer.at(), len as usize));
        if transfer.take(len) {
            let transfer = transfers.finish(to as usize);
            transport.chosen(transfer.choice(), transfer.len(), true);
            tell(self.arrived(transport, transfer.place(), transfer.origin()));
        }
        Ok(())
    }

    /// All transfers from a remote end: its connection has ended.
    pub(super) fn end_transfers(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        from: RemoteId,
        why: Fault,
    ) {
        let Self { transfers, receives, completions, streams, .. } = self;
        transfers.end(from, |transfer| {
            transport.chosen(transfer.choice(), transfer.len(), false);
            let incoming = &mut receives[transfer.receive()];
            incoming.arrived();
            let released = incoming.is_over();
            let received = transfer.origin().received(transfer.here(), released);
            let (context, what) = (incoming.context(), CompletionKind::Received(received));
            completions.push(Completion { context, what, result: Err(why) });
            if released {
                receives.free(transfer.receive());
            }
        });
        streams.keep_fetches(|key| transfers.contains(key));
    }
}

/// Bytes that a record brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<L> {
    pub(super) lane: L,
    pub(super) source: RemoteId,
    pub(super) place: FragmentPlace,
    pub(super) len: usize,
}

impl<L: Copy> Fragment<L> {
    /// Whether they can lie there.
    ///
    /// # Errors
    /// [`Malformed`] where the ring has no such piece.
    pub(super) fn check(&self, transport: &mut impl Transport<Lane = L>) -> Result<(), Malformed> {
        match self.place {
            FragmentPlace::Ring(at) => transport.check_ring(self.source, at, self.len),
            FragmentPlace::Lane(_) => Ok(()),
        }
    }

    /// Takes them: copies as many as `into` has room for.
    pub(super) fn take(&self, transport: &mut impl Transport<Lane = L>, into: &mut [u8]) {
        debug_assert!(into.len() <= self.len, "no more is copied than there is");
        match self.place {
            FragmentPlace::Ring(at) => transport.take_ring(self.source, (at, self.len), into),
            FragmentPlace::Lane(skip) => transport.copy(self.lane, skip, into),
        }
    }

    /// Copies `len` of them to memory, from an offset on. There is room for these.
    pub(super) fn take_to<W: Transport<Lane = L>>(
        &self,
        transport: &mut W,
        into: &mut W::Memory,
        (at, len): (usize, usize),
    ) {
        debug_assert!(at + len <= into.len(), "there is room for it");
        let piece = into.piece_mut(at, len);
        if piece.len() == len {
            return self.take(transport, piece);
        }
        let mut bytes = vec![0; len];
        self.take(transport, &mut bytes);
        into.write(at, &bytes);
    }
}

/// A record that names nothing that is there is malformed.
fn known(is_known: bool) -> Result<(), Malformed> {
    if is_known { Ok(()) } else { Err(Malformed) }
}

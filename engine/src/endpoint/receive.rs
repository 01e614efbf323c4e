//! What comes from peers, and what becomes of it.
use super::ends::{End, What};
use super::incoming::{Body, BodyPlace};
use super::origin::{Origin, There};
use super::parts::{PartPlace, copy_part};
use super::streams::Stream;
use super::touching::key_of;
use super::transfers::Transfer;
use super::{Endpoint, RemoteId};
use crate::error::Fault;
use crate::mem::lane::{LaneReceiver, Probe};
use crate::mem::span::Spans;
use crate::port::message::is_due;
use crate::sync::Ordering;
use crate::tuning::Method;
use ayre_proto::envelope::{ALL, ENVELOPE_WORDS, Envelope, Record, SHORT_WORDS};
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::matching::{Arrive, Place};
use ayre_proto::touch::Touch;

/// What became of the record at the head of a lane.
pub(super) enum Taken {
    Yes,
    /// No more of its sender can be kept.
    NotYet,
}

impl Endpoint {
    /// Takes the record at the head of a peer's lane, if there is one; a further one, if it comes
    /// right behind another.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        index: usize,
        is_further: bool,
        tell: &mut impl FnMut(End),
    ) -> bool {
        if let Some(taken) = self.take_line::<false>(index, is_further, tell) {
            return taken;
        }
        if self.is_of_lines(index)
            && let Some(taken) = self.take_lines(index, is_further, tell)
        {
            return taken;
        }
        // One copy of all that is not taken most.
        let mut tell: &mut dyn FnMut(End) = tell;
        self.take_any(index, &mut tell)
    }

    /// The record at the head, if it is a short message of one line, or of several, that a receive
    /// waits for, or that can be kept: what is taken most. [`Endpoint::take_any`] does the same for
    /// any record; none says that it has to.
    #[inline(always)]
    fn take_line<const SEVERAL: bool>(
        &mut self,
        index: usize,
        is_further: bool,
        tell: &mut impl FnMut(End),
    ) -> Option<bool> {
        let Self { port, remotes, receives, .. } = self;
        let Some(connection) = port.peers.at_mut(index) else { return Some(false) };
        let (lane, kind) = (&mut connection.messages_in, Kind::GatedMessage);
        let found = if SEVERAL { lane.peek_long(kind) } else { lane.peek_short(kind) };
        let (size, tag) = match found {
            Probe::Nothing => return Some(false),
            Probe::Taken(record) => record,
            Probe::Other => return None,
        };
        connection.messages_out.is_further = false;
        if is_further {
            lane.send_for_ahead();
        }
        if SEVERAL {
            lane.send_for_rest_of(size, is_further);
        }
        let [posted, head @ ..] = lane.head::<{ 1 + SHORT_WORDS }>();
        let envelope = Envelope::of_short(tag, head)?;
        let len = size.checked_sub((1 + SHORT_WORDS) * 8)?;
        if SEVERAL && len > EAGER_MAX {
            return None;
        }
        // DONE-A1: see is_due().
        if connection.served.load(Ordering::Acquire) < posted {
            return None;
        }
        let source = remotes.of_peer(index)?;
        let origin = Origin { source, envelope, len: len as u64, answer: None };
        let place = match receives.arrive(&origin, true) {
            Arrive::Matched(place) => place,
            Arrive::Unexpected(_) => {
                // A copy that is made here: nothing is stored for it above.
                let Origin { source, envelope, len, answer } = origin;
                self.keep_line((index, size), &Origin { source, envelope, len, answer });
                return Some(true);
            }
            // Its table has to grow.
            Arrive::Busy => return None,
        };
        let (key, Place { offset, len, released, .. }) = (place.handle as usize, place);
        let incoming = &mut receives[key];
        incoming.release(released);
        match incoming.memory().first_mut(offset as usize, len as usize) {
            Some(piece) if SEVERAL => lane.copy(1 + SHORT_WORDS, piece),
            Some(piece) => lane.copy_short(1 + SHORT_WORDS, piece),
            None => take_apart(lane, incoming.memory(), (offset, len)),
        }
        if SEVERAL {
            lane.consume_len(size);
            // Each poll is a whole one for some time, and sends for the lines of the next one.
            self.polls.look_about();
        } else {
            lane.consume_short();
        }
        let (context, is_last) = (incoming.context(), incoming.is_over());
        if is_last {
            receives.free(key);
        }
        let received = origin.received((offset, len), is_last);
        tell(End { context, what: What::Received(received), result: Ok(()) });
        Some(true)
    }

    /// Whether the record at the head, which has come, is a short message of several lines.
    #[inline(always)]
    fn is_of_lines(&self, index: usize) -> bool {
        let Some(connection) = self.port.peers.at(index) else { return false };
        match connection.messages_in.peek_long(Kind::GatedMessage) {
            Probe::Taken((_, tag)) => Envelope::is_of_short(tag),
            _ => false,
        }
    }

    /// Not a part of what takes one line, so that that is short.
    #[inline(never)]
    fn take_lines(
        &mut self,
        index: usize,
        is_further: bool,
        tell: &mut impl FnMut(End),
    ) -> Option<bool> {
        self.take_line::<true>(index, is_further, tell)
    }

    /// Keeps the short message at the head, whose record is of `size` bytes.
    #[inline(never)]
    fn keep_line(&mut self, (index, size): (usize, usize), origin: &Origin) {
        self.keep_short(index, 1 + SHORT_WORDS, origin);
        if let Some(connection) = self.port.peers.at_mut(index) {
            connection.messages_in.consume_len(size);
        }
    }

    #[inline(never)]
    fn take_any(&mut self, index: usize, tell: &mut impl FnMut(End)) -> bool {
        let Some(connection) = self.port.peers.at(index) else { return false };
        let Some(found) = connection.messages_in.peek() else { return false };
        let Ok(status) = found else { return self.malformed(index) };
        if !is_due(connection) {
            let peer = connection.peer;
            self.port.progress_with(peer);
            if !self.port.connection(peer).is_ok_and(is_due) {
                return false;
            }
        }
        match self.take_record(index, &status, tell) {
            Ok(Taken::Yes) => true,
            Ok(Taken::NotYet) => false,
            Err(Malformed) => self.malformed(index),
        }
    }

    /// The same, of a peer that has gone; ends are told later.
    pub(super) fn take_last(&mut self, index: usize) -> bool {
        let mut ends = Vec::new();
        let taken = self.take(index, false, &mut |end| ends.push(end));
        self.ended.extend(ends);
        taken
    }

    /// A peer that has written what no correct one writes: nothing more is taken from it.
    // spec: ENV-17
    #[cold]
    pub(super) fn malformed(&mut self, index: usize) -> bool {
        let known = self.remotes.cut_off(index);
        if let (Some(_), Some(connection)) = (known, self.port.peers.at(index)) {
            let peer = connection.peer;
            self.port.count_malformed();
            self.port.end_connection(peer, Fault::Malformed);
        }
        false
    }

    /// All checks come before any effect.
    // spec: ENV-2
    #[inline]
    fn take_record(
        &mut self,
        index: usize,
        status: &Status,
        tell: &mut impl FnMut(End),
    ) -> Result<Taken, Malformed> {
        let source = self.remotes.of_peer(index).ok_or(Malformed)?;
        let Some(connection) = self.port.peers.at(index) else {
            return Err(Malformed);
        };
        let [_, head @ ..] = connection.messages_in.head::<{ ENVELOPE_WORDS + 1 }>();
        let len = (status.len as usize).checked_sub(8).ok_or(Malformed)?;
        if status.kind != Kind::GatedMessage {
            return Err(Malformed);
        }
        if Touch::is_one(status.tag) {
            let taken = self.take_touch((index, source), status, tell)?;
            self.consume(index, status);
            return Ok(taken);
        }
        let (record, words) = Record::parse(status.tag, head, len)?;
        let bytes = len - words * 8;
        let taken = match record {
            Record::Short { envelope, answer } => {
                let origin = Origin { source, envelope, len: bytes as u64, answer };
                self.take_short(index, words + 1, &origin, tell)?
            }
            Record::Long { envelope, answer, len, place } => {
                let origin = Origin { source, envelope, len, answer };
                self.take_long(place, &origin, tell)?
            }
            Record::Ask { envelope, id, answered, len, address } => {
                let answer = answered.then_some(id);
                let origin = Origin { source, envelope, len, answer };
                self.take_ask(There { id, address }, &origin)
            }
            Record::Go { id, to, len } => known(self.on_go(source, id, (to, len), tell))?,
            Record::Done { id } => known(match key_of(id) {
                Some(key) => self.on_touched(source, key, tell),
                None => self.on_done(source, id, tell),
            })?,
            Record::Ahead { longest } => {
                self.remotes[source].ahead().limit(longest);
                Taken::Yes
            }
            Record::Refused { id: ALL, .. } => {
                self.on_shut_out(source);
                Taken::Yes
            }
            Record::Refused { id, fault } => known(self.on_refused(source, (id, fault), tell))?,
            Record::Part { to, len, place } => {
                self.take_part(source, (to, len), (index, PartPlace::Ring(place)), tell)?
            }
            Record::PartHere { to } => {
                let place = PartPlace::Lane(words + 1);
                self.take_part(source, (to, bytes as u64), (index, place), tell)?
            }
        };
        if let Taken::Yes = taken {
            self.consume(index, status);
        }
        Ok(taken)
    }

    fn consume(&mut self, index: usize, status: &Status) {
        if let Some(connection) = self.port.peers.at_mut(index) {
            connection.messages_in.consume(status);
        }
    }

    /// Keeps a message that lies in the lane.
    fn keep_short(&mut self, index: usize, skip: usize, origin: &Origin) {
        let mut bytes = vec![0; origin.len as usize].into_boxed_slice();
        if let Some(connection) = self.port.peers.at(index) {
            connection.messages_in.copy(skip, &mut bytes);
        }
        let place = BodyPlace::Here(bytes);
        self.keep(Body { origin: *origin, place });
    }

    fn arrive(&mut self, origin: &Origin, whole: bool) -> Arrive {
        let mut arrived = self.receives.arrive(origin, whole);
        if let Arrive::Busy = arrived {
            if self.receives.grow_messages(origin.envelope.tag.is_some()) {
                arrived = self.receives.arrive(origin, whole);
            } else {
                self.shut_out(origin.source);
            }
        }
        if let Arrive::Matched(Place { handle, released: true, .. }) = arrived {
            self.receives[handle as usize].release(true);
        }
        arrived
    }

    /// A message that lies in the lane, behind `skip` words.
    #[inline(always)]
    fn take_short(
        &mut self,
        index: usize,
        skip: usize,
        origin: &Origin,
        tell: &mut impl FnMut(End),
    ) -> Result<Taken, Malformed> {
        match self.arrive(origin, true) {
            Arrive::Matched(Place { handle, offset, len, .. }) => {
                let key = handle as usize;
                let Self { port, receives, staging, .. } = self;
                let lane = &port.peers.at(index).expect("it was looked at").messages_in;
                let incoming = &mut receives[key];
                incoming.expect(1);
                let piece = incoming.memory().piece_mut(offset as usize, len as usize);
                if piece.len() as u64 == len {
                    lane.copy(skip, piece);
                } else {
                    let bytes = staging.get_mut(..len as usize).ok_or(Malformed)?;
                    lane.copy(skip, bytes);
                    incoming.memory().write(offset as usize, bytes);
                }
                tell(self.arrived((key, offset, len), origin));
            }
            Arrive::Unexpected(_) => self.keep_short(index, skip, origin),
            Arrive::Busy => return Ok(Taken::NotYet),
        }
        Ok(Taken::Yes)
    }

    /// A message that lies in the ring.
    fn take_long(
        &mut self,
        place: u64,
        origin: &Origin,
        tell: &mut impl FnMut(End),
    ) -> Result<Taken, Malformed> {
        let source = origin.source;
        let whole = usize::try_from(origin.len).map_err(|_| Malformed)?;
        let ring = self.remotes[source].ring_in().ok_or(Malformed)?;
        ring.check(place, whole)?;
        match self.arrive(origin, true) {
            Arrive::Matched(Place { handle, offset, len, .. }) => {
                let key = handle as usize;
                let Self { remotes, receives, .. } = self;
                let ring = remotes[source].ring_in().ok_or(Malformed)?;
                let incoming = &mut receives[key];
                incoming.expect(1);
                let piece = incoming.memory().piece_mut(offset as usize, len as usize);
                if piece.len() as u64 == len {
                    ring.take(place, whole, piece)?;
                } else {
                    let mut bytes = vec![0; len as usize];
                    ring.take(place, whole, &mut bytes)?;
                    incoming.memory().write(offset as usize, &bytes);
                }
                tell(self.arrived((key, offset, len), origin));
            }
            Arrive::Unexpected(_) => {
                let mut bytes = vec![0; whole].into_boxed_slice();
                let ring = self.remotes[source].ring_in().ok_or(Malformed)?;
                ring.take(place, whole, &mut bytes)?;
                self.keep(Body { origin: *origin, place: BodyPlace::Here(bytes) });
            }
            Arrive::Busy => return Ok(Taken::NotYet),
        }
        Ok(Taken::Yes)
    }

    /// A message that is still with its sender.
    fn take_ask(&mut self, there: There, origin: &Origin) -> Taken {
        match self.arrive(origin, false) {
            Arrive::Matched(Place { handle, offset, len, .. }) => {
                let receive = handle as usize;
                self.receives[receive].expect(1);
                self.want(Transfer::new((receive, offset, len), origin, there));
            }
            Arrive::Unexpected(_) => {
                let place = BodyPlace::There(there);
                self.keep(Body { origin: *origin, place });
            }
            Arrive::Busy => return Taken::NotYet,
        }
        Taken::Yes
    }

    /// Gets a message from its sender.
    pub(super) fn want(&mut self, mut transfer: Transfer) {
        if transfer.len() == 0 {
            let end = self.has_all(&transfer);
            return self.end_later(end);
        }
        self.choose(&mut transfer);
        let by = transfer.by();
        let to = self.transfers.insert(transfer);
        match by {
            Method::Kernel => {
                self.streams.push(Stream::Fetch(to));
                self.stir();
            }
            _ => self.ask_for(to),
        }
    }

    /// The next poll tells it.
    pub(super) fn end_later(&mut self, end: End) {
        self.ended.push(end);
        self.stir();
    }

    /// Asks a message's sender for it.
    pub(super) fn ask_for(&mut self, to: usize) {
        let Some(transfer) = self.transfers.get(to) else { return };
        let go = Record::Go { id: transfer.there().id, to: to as u64, len: transfer.len() };
        self.reply(transfer.origin().source, go);
    }

    /// Nothing of a message is to be sent, for all is here that is wanted.
    // spec: ENV-18
    pub(super) fn has_all(&mut self, transfer: &Transfer) -> End {
        let origin = transfer.origin();
        let go = Record::Go { id: transfer.there().id, to: u64::MAX, len: 0 };
        self.reply(origin.source, go);
        self.arrived(transfer.place(), origin)
    }

    /// The next part of a message that is wanted, or of what was asked of a window.
    fn take_part(
        &mut self,
        source: RemoteId,
        (to, len): (u64, u64),
        (index, place): (usize, PartPlace),
        tell: &mut impl FnMut(End),
    ) -> Result<Taken, Malformed> {
        if let Some(key) = key_of(to) {
            self.take_answer(source, (key, len), (index, place), tell)?;
            return Ok(Taken::Yes);
        }
        let Self { port, transfers, receives, remotes, .. } = self;
        let transfer = transfers.get_mut(to as usize).ok_or(Malformed)?;
        let fits = len > 0 && len <= transfer.left();
        // Of what is read where it lies, nothing was asked for.
        if !transfer.is_asked_of(source) || !fits {
            return Err(Malformed);
        }
        let into = receives[transfer.receive()].memory();
        let at = transfer.at();
        let lane = &port.peers.at(index).ok_or(Malformed)?.messages_in;
        let ring = remotes[source].ring_in();
        copy_part((into, at), len as usize, (lane, ring), place)?;
        if transfer.take(len) {
            let transfer = transfers.finish(to as usize, &port.clock);
            tell(self.arrived(transfer.place(), transfer.origin()));
        }
        Ok(Taken::Yes)
    }

    /// What was coming from a remote comes no more.
    pub(super) fn end_transfers(&mut self, from: RemoteId, why: Fault) {
        let Self { transfers, receives, ended, streams, .. } = self;
        transfers.end(from, |transfer| {
            let incoming = &mut receives[transfer.receive()];
            incoming.arrived();
            let released = incoming.is_over();
            let received = transfer.origin().received(transfer.here(), released);
            let (context, what) = (incoming.context(), What::Received(received));
            ended.push(End { context, what, result: Err(why) });
            if released {
                receives.free(transfer.receive());
            }
        });
        streams.keep_fetches(|key| transfers.contains(key));
    }
}

/// Copies a short message into several spans, as much of it as is said.
#[inline(never)]
fn take_apart(lane: &LaneReceiver, into: &mut Spans, (offset, len): (u64, u64)) {
    let mut bytes = [0; EAGER_MAX];
    let bytes = &mut bytes[..len as usize];
    lane.copy(1 + SHORT_WORDS, bytes);
    into.write(offset as usize, bytes);
}

/// What names something that is not there is malformed.
fn known(is_known: bool) -> Result<Taken, Malformed> {
    if is_known { Ok(Taken::Yes) } else { Err(Malformed) }
}

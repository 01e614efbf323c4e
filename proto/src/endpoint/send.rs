//! Messages on their way out.
use super::completions::{Completion, CompletionKind, Context};
use super::pending_send::PendingSend;
use super::streams::Stream;
use super::transport::{Memory, Transport};
use super::{FRAGMENT_MAX, Protocol, RemoteId, SHORT_MAX};
use crate::envelope::{Envelope, LONG_MAX_HERE, Record};
use crate::fault::Fault;
use crate::limits::LINE;
use alloc::vec;

/// Fragments of a message, unless they were longer than [`FRAGMENT_MAX`]. One is copied out while
/// the next is copied in, so a message waits only for the copy of its last fragment.
const FRAGMENTS: usize = 8;
/// Shorter parts cost more than they gain.
const FRAGMENT_MIN: usize = 8 << 10;

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct OutgoingMessage<M> {
    /// Its tag; none of a plain message.
    pub tag: Option<u64>,
    /// Immediate data for the receiver.
    pub data: Option<u64>,
    /// Its bytes.
    pub bytes: M,
    /// Comes back with its end.
    pub context: Context,
    /// Whether it ends only when it is in the receive's memory.
    pub delivered: bool,
}

/// The state of a message after it was posted.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It has left, and its memory is the program's again. No end is told.
    Completed,
    /// Its end will be told; until then its memory is needed.
    Pending,
}

impl<M: Memory + Clone> Protocol<M> {
    /// Sends a message, to a remote that is connected at this lane.
    ///
    /// # Errors
    /// The error of [`Transport::push`]; [`Fault::NoMemory`] where no more operations may be
    /// pending.
    // spec: ENV-3, ENV-4
    pub fn send<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (to, lane): (RemoteId, W::Lane),
        message: &OutgoingMessage<M>,
    ) -> Result<Sent, W::Error> {
        self.check_under_way()?;
        let OutgoingMessage { tag, data, ref bytes, context, delivered } = *message;
        let envelope = Envelope { tag, data };
        let entry = self.pending_sends.vacant_key() as u64;
        let answer = delivered.then_some(entry);
        let len = bytes.len();
        let has_gone = if len <= SHORT_MAX {
            let mut staged = [0; SHORT_MAX];
            bytes.read(0, &mut staged[..len]);
            let record = Record::Short { envelope, answer };
            Self::push_record(transport, lane, &record, &staged[..len])?;
            true
        } else if let Some(place) = self.write_ring(transport, (to, lane), bytes)? {
            let record = Record::Long { envelope, answer, len: len as u64, place };
            Self::push_record(transport, lane, &record, &[])?;
            true
        } else {
            let (len, address) = (len as u64, transport.address_of(lane, bytes));
            let rts = Record::Rts { envelope, id: entry, answered: delivered, len, address };
            Self::push_record(transport, lane, &rts, &[])?;
            false
        };
        if has_gone && !delivered {
            return Ok(Sent::Completed);
        }
        self.pending_sends.insert(match has_gone {
            true => PendingSend::sent(to, context),
            false => PendingSend::with_rts(to, bytes.clone(), (context, delivered)),
        });
        Ok(Sent::Pending)
    }

    /// Copies a message into the ring, if it may go there before its receive is known; none where
    /// it has to ask. There is room in the lane for its record.
    // spec: ENV-3
    fn write_ring<W: Transport<Memory = M>>(
        &mut self,
        transport: &mut W,
        (to, lane): (RemoteId, W::Lane),
        bytes: &M,
    ) -> Result<Option<u64>, W::Error> {
        if bytes.len() > self.peer_mut(to).eager.longest(transport.is_linked(lane)) {
            return Ok(None);
        }
        transport.reserve(lane)?;
        if transport.longest_piece(to).is_none_or(|longest| bytes.len() > longest) {
            return Ok(None);
        }
        let place = match bytes.whole() {
            Some(whole) => transport.write_ring(to, whole),
            None => {
                let mut whole = vec![0; bytes.len()];
                bytes.read(0, &mut whole);
                transport.write_ring(to, &whole)
            }
        };
        match place {
            None if bytes.len() <= LONG_MAX_HERE => Err(transport.no_room(lane)),
            None => Ok(None),
            Some(place) => {
                self.peer_mut(to).eager.on_gone(bytes.len());
                Ok(Some(place))
            }
        }
    }
}

impl<M: Memory> Protocol<M> {
    pub(super) fn push_record<W: Transport<Memory = M>>(
        transport: &mut W,
        lane: W::Lane,
        record: &Record,
        bytes: &[u8],
    ) -> Result<(), W::Error> {
        let (tag, head, words) = record.encode();
        let [a, b, c, d, e] = head;
        match words {
            1 => transport.push(lane, tag, [0, a], bytes),
            2 => transport.push(lane, tag, [0, a, b], bytes),
            3 => transport.push(lane, tag, [0, a, b, c], bytes),
            4 => transport.push(lane, tag, [0, a, b, c, d], bytes),
            _ => transport.push(lane, tag, [0, a, b, c, d, e], bytes),
        }
    }

    /// Sends what has been waiting for room: whether any has gone.
    #[inline(never)]
    pub fn push_waiting(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let mut any = self.replies > 0 && self.push_replies(transport);
        let mut at = 0;
        while let Some(stream) = self.streams.get(at) {
            let (has_gone, is_over) = match stream {
                Stream::Messages(to) => self.push_messages(transport, to, tell),
                Stream::Write(key) => self.push_waiting_write(transport, key),
                Stream::Reads(to) => self.push_reads(transport, to, tell),
                Stream::Fetch(key) => self.fetch(transport, key, tell),
            };
            any |= has_gone;
            if is_over {
                self.streams.remove(at);
            } else {
                at += 1;
            }
        }
        any
    }

    /// The next parts of the messages that a remote wants, one message behind the other: whether
    /// any has gone, and whether all have.
    fn push_messages(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        to: RemoteId,
        tell: &mut impl FnMut(Completion),
    ) -> (bool, bool) {
        let mut any = false;
        while let Some(key) = self.peer_mut(to).next_send() {
            let (has_gone, is_over) = self.push_stream(transport, key, tell);
            any |= has_gone;
            if !is_over {
                return (any, false);
            }
            self.peer_mut(to).dequeue_send(key);
        }
        (any, true)
    }

    /// The next parts of a wanted message: whether any has gone, and whether all has.
    fn push_stream(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        key: usize,
        tell: &mut impl FnMut(Completion),
    ) -> (bool, bool) {
        let mut any = false;
        loop {
            let cleared = self.pending_sends.get(key).and_then(PendingSend::cleared);
            let Some((to, at, len)) = cleared else { return (any, true) };
            if at == len {
                self.finish_send(key, tell);
                return (any, true);
            }
            let Some(count) = self.push_fragment(transport, key, (to, at, len)) else {
                return (any, false);
            };
            any = true;
            self.pending_sends[key].advance(count);
        }
    }

    /// One part of a message; how many bytes, if there was room.
    fn push_fragment(
        &mut self,
        transport: &mut impl Transport<Memory = M>,
        key: usize,
        (to, at, len): (u64, usize, usize),
    ) -> Option<usize> {
        let pending_sends = &self.pending_sends[key];
        let (remote, bytes) = (pending_sends.remote(), pending_sends.bytes());
        let lane = transport.lane(remote)?;
        transport.reserve(lane).ok()?;
        if let Some(longest) = transport.longest_piece(remote) {
            let fragment =
                (len / FRAGMENTS).next_multiple_of(LINE).clamp(FRAGMENT_MIN, FRAGMENT_MAX);
            let piece = bytes.piece(at, fragment.min(len - at).min(longest));
            debug_assert!(!piece.is_empty() && piece.len() <= FRAGMENT_MAX, "a part has bytes");
            let (count, place) = (piece.len(), transport.write_ring(remote, piece)?);
            let fragment = Record::Fragment { to, len: count as u64, place };
            Self::push_record(transport, lane, &fragment, &[]).ok()?;
            return Some(count);
        }
        let piece = bytes.piece(at, SHORT_MAX.min(len - at));
        debug_assert!(!piece.is_empty(), "a part has bytes");
        Self::push_record(transport, lane, &Record::FragmentHere { to }, piece).ok()?;
        Some(piece.len())
    }

    fn finish_send(&mut self, key: usize, tell: &mut impl FnMut(Completion)) {
        let pending_sends = &mut self.pending_sends[key];
        if pending_sends.finish() {
            let context = pending_sends.context();
            self.pending_sends.free(key);
            tell(Completion { context, what: CompletionKind::Sent, result: Ok(()) });
        }
    }

    /// A receive has matched a message that asked. False where there is none such.
    pub(super) fn on_cts(
        &mut self,
        from: RemoteId,
        id: u64,
        (to, len): (u64, u64),
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let key = id as usize;
        let Some(pending_sends) = self.pending_sends.get_mut(key) else { return false };
        if !pending_sends.on_cts(from, (to, len)) {
            return false;
        }
        let peer = &mut self.peers[from.index()];
        peer.eager.on_answer(pending_sends.bytes().len(), len > 0);
        if len == 0 {
            // Nothing goes, so that it may be said to be done with the next record.
            self.finish_send(key, tell);
            return true;
        }
        if peer.enqueue_send(key) {
            self.streams.push(Stream::Messages(from));
        }
        true
    }

    /// A message is where it belongs. False where there is none such.
    pub(super) fn on_fin(
        &mut self,
        from: RemoteId,
        id: u64,
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let key = id as usize;
        let is_due =
            self.pending_sends.get(key).is_some_and(|pending_sends| pending_sends.is_due(from));
        if is_due {
            let context = self.pending_sends[key].context();
            self.pending_sends.free(key);
            tell(Completion { context, what: CompletionKind::Sent, result: Ok(()) });
        }
        is_due
    }

    /// Completes all messages on their way to a remote with a fault.
    pub(super) fn end_sends(&mut self, to: RemoteId, why: Fault) {
        let Self { pending_sends, completions, streams, peers, .. } = self;
        peers.get_mut(to.index()).into_iter().for_each(super::peer::Peer::clear_sends);
        pending_sends.free_all(to, |pending_sends| {
            let context = pending_sends.context();
            completions.push(Completion { context, what: CompletionKind::Sent, result: Err(why) });
        });
        debug_assert!(pending_sends.has_none(to), "all have ended");
        streams.drop_one(Stream::Messages(to));
    }
}

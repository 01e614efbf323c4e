//! Messages on their way out.
use super::departing::Departing;
use super::ends::{Completion, CompletionKind, Context};
use super::streams::Stream;
use super::ways::{Memory, Ways};
use super::{PART_MAX, Protocol, RemoteId, SHORT_MAX};
use crate::envelope::{Envelope, LONG_MAX_HERE, Record};
use crate::fault::Fault;
use crate::limits::LINE;
use alloc::vec;

/// Parts of a message, unless they were longer than [`PART_MAX`]: the first is copied out while the
/// next is copied in, so the last part's copy is what a message waits for.
const PARTS: usize = 8;
/// Shorter parts cost more than they gain.
const PART_MIN: usize = 8 << 10;

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

/// What became of a message that was posted.
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
    /// What [`Ways::push`] says; [`Fault::NoMemory`] where as much is under way as may.
    // spec: ENV-3, ENV-4
    pub fn send<W: Ways<Memory = M>>(
        &mut self,
        ways: &mut W,
        (to, lane): (RemoteId, W::Lane),
        message: &OutgoingMessage<M>,
    ) -> Result<Sent, W::Error> {
        self.check_under_way()?;
        let OutgoingMessage { tag, data, ref bytes, context, delivered } = *message;
        let envelope = Envelope { tag, data };
        let entry = self.departing.vacant_key() as u64;
        let answer = delivered.then_some(entry);
        let len = bytes.len();
        let has_gone = if len <= SHORT_MAX {
            let mut staged = [0; SHORT_MAX];
            bytes.read(0, &mut staged[..len]);
            let record = Record::Short { envelope, answer };
            Self::push_record(ways, lane, &record, &staged[..len])?;
            true
        } else if let Some(place) = self.write_ring(ways, (to, lane), bytes)? {
            let record = Record::Long { envelope, answer, len: len as u64, place };
            Self::push_record(ways, lane, &record, &[])?;
            true
        } else {
            let (len, address) = (len as u64, ways.address_of(lane, bytes));
            let ask = Record::Rts { envelope, id: entry, answered: delivered, len, address };
            Self::push_record(ways, lane, &ask, &[])?;
            false
        };
        if has_gone && !delivered {
            return Ok(Sent::Completed);
        }
        self.departing.insert(match has_gone {
            true => Departing::gone(to, context),
            false => Departing::asking(to, bytes.clone(), (context, delivered)),
        });
        Ok(Sent::Pending)
    }

    /// Copies a message into the ring, if it may go there before its receive is known; none where
    /// it has to ask. There is room in the lane for its record.
    // spec: ENV-3
    fn write_ring<W: Ways<Memory = M>>(
        &mut self,
        ways: &mut W,
        (to, lane): (RemoteId, W::Lane),
        bytes: &M,
    ) -> Result<Option<u64>, W::Error> {
        if bytes.len() > self.peer_mut(to).ahead.longest(ways.is_linked(lane)) {
            return Ok(None);
        }
        ways.reserve(lane)?;
        if ways.longest_piece(to).is_none_or(|longest| bytes.len() > longest) {
            return Ok(None);
        }
        let place = match bytes.whole() {
            Some(whole) => ways.write_ring(to, whole),
            None => {
                let mut whole = vec![0; bytes.len()];
                bytes.read(0, &mut whole);
                ways.write_ring(to, &whole)
            }
        };
        match place {
            None if bytes.len() <= LONG_MAX_HERE => Err(ways.no_room(lane)),
            None => Ok(None),
            Some(place) => {
                self.peer_mut(to).ahead.on_gone(bytes.len());
                Ok(Some(place))
            }
        }
    }
}

impl<M: Memory> Protocol<M> {
    pub(super) fn push_record<W: Ways<Memory = M>>(
        ways: &mut W,
        lane: W::Lane,
        record: &Record,
        bytes: &[u8],
    ) -> Result<(), W::Error> {
        let (tag, head, words) = record.encode();
        let [a, b, c, d, e] = head;
        match words {
            1 => ways.push(lane, tag, [0, a], bytes),
            2 => ways.push(lane, tag, [0, a, b], bytes),
            3 => ways.push(lane, tag, [0, a, b, c], bytes),
            4 => ways.push(lane, tag, [0, a, b, c, d], bytes),
            _ => ways.push(lane, tag, [0, a, b, c, d, e], bytes),
        }
    }

    /// Sends what has been waiting for room: whether any has gone.
    #[inline(never)]
    pub fn push_on(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let mut any = self.replies > 0 && self.push_replies(ways);
        let mut at = 0;
        while let Some(stream) = self.streams.get(at) {
            let (has_gone, is_over) = match stream {
                Stream::Messages(to) => self.push_messages(ways, to, tell),
                Stream::Write(key) => self.push_write_on(ways, key),
                Stream::Reads(to) => self.push_reads(ways, to, tell),
                Stream::Fetch(key) => self.fetch(ways, key, tell),
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
        ways: &mut impl Ways<Memory = M>,
        to: RemoteId,
        tell: &mut impl FnMut(Completion),
    ) -> (bool, bool) {
        let mut any = false;
        while let Some(key) = self.peer_mut(to).wanted() {
            let (has_gone, is_over) = self.push_stream(ways, key, tell);
            any |= has_gone;
            if !is_over {
                return (any, false);
            }
            self.peer_mut(to).has_got(key);
        }
        (any, true)
    }

    /// The next parts of a wanted message: whether any has gone, and whether all has.
    fn push_stream(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        key: usize,
        tell: &mut impl FnMut(Completion),
    ) -> (bool, bool) {
        let mut any = false;
        loop {
            let wanted = self.departing.get(key).and_then(Departing::wanted);
            let Some((to, at, len)) = wanted else { return (any, true) };
            if at == len {
                self.all_gone(key, tell);
                return (any, true);
            }
            let Some(count) = self.push_part(ways, key, (to, at, len)) else {
                return (any, false);
            };
            any = true;
            self.departing[key].advance(count);
        }
    }

    /// One part of a message; how many bytes, if there was room.
    fn push_part(
        &mut self,
        ways: &mut impl Ways<Memory = M>,
        key: usize,
        (to, at, len): (u64, usize, usize),
    ) -> Option<usize> {
        let departing = &self.departing[key];
        let (remote, bytes) = (departing.remote(), departing.bytes());
        let lane = ways.lane(remote)?;
        ways.reserve(lane).ok()?;
        if let Some(longest) = ways.longest_piece(remote) {
            let part = (len / PARTS).next_multiple_of(LINE).clamp(PART_MIN, PART_MAX);
            let piece = bytes.piece(at, part.min(len - at).min(longest));
            debug_assert!(!piece.is_empty() && piece.len() <= PART_MAX, "a part has bytes");
            let (count, place) = (piece.len(), ways.write_ring(remote, piece)?);
            let part = Record::Fragment { to, len: count as u64, place };
            Self::push_record(ways, lane, &part, &[]).ok()?;
            return Some(count);
        }
        let piece = bytes.piece(at, SHORT_MAX.min(len - at));
        debug_assert!(!piece.is_empty(), "a part has bytes");
        Self::push_record(ways, lane, &Record::FragmentHere { to }, piece).ok()?;
        Some(piece.len())
    }

    fn all_gone(&mut self, key: usize, tell: &mut impl FnMut(Completion)) {
        let departing = &mut self.departing[key];
        if departing.finish() {
            let context = departing.context();
            self.departing.free(key);
            tell(Completion { context, what: CompletionKind::Sent, result: Ok(()) });
        }
    }

    /// A receive has matched a message that asked. False where there is none such.
    pub(super) fn on_go(
        &mut self,
        from: RemoteId,
        id: u64,
        (to, len): (u64, u64),
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let key = id as usize;
        let Some(departing) = self.departing.get_mut(key) else { return false };
        if !departing.want(from, (to, len)) {
            return false;
        }
        let peer = &mut self.peers[from.index()];
        peer.ahead.on_answer(departing.bytes().len(), len > 0);
        if len == 0 {
            // Nothing goes, so that it may be said to be done with the next record.
            self.all_gone(key, tell);
            return true;
        }
        if peer.want(key) {
            self.streams.push(Stream::Messages(from));
        }
        true
    }

    /// A message is where it belongs. False where there is none such.
    pub(super) fn on_done(
        &mut self,
        from: RemoteId,
        id: u64,
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        let key = id as usize;
        let is_due = self.departing.get(key).is_some_and(|departing| departing.is_due(from));
        if is_due {
            let context = self.departing[key].context();
            self.departing.free(key);
            tell(Completion { context, what: CompletionKind::Sent, result: Ok(()) });
        }
        is_due
    }

    /// What was on its way to a remote will not arrive.
    pub(super) fn end_sends(&mut self, to: RemoteId, why: Fault) {
        let Self { departing, ended, streams, peers, .. } = self;
        peers.get_mut(to.index()).into_iter().for_each(super::peer::Peer::want_none);
        departing.free_all(to, |departing| {
            let context = departing.context();
            ended.push(Completion { context, what: CompletionKind::Sent, result: Err(why) });
        });
        debug_assert!(departing.has_none(to), "all have ended");
        streams.drop_one(Stream::Messages(to));
    }
}

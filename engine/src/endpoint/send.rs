//! Messages on their way out.
use super::departing::Departing;
use super::ends::{Context, End, What};
use super::ledger::Entry;
use super::parts::{PART_MAX, SHORT_MAX};
use super::remotes::Remote;
use super::replies::cost;
use super::streams::Stream;
use super::{Endpoint, RemoteId};
use crate::error::{Fault, PostError};
use crate::mem::span::Spans;
use crate::port::connection::Executor;
use ayre_proto::envelope::{AHEAD_MIN, ENVELOPE_WORDS, Envelope, LONG_MAX_HERE, Record};
use ayre_proto::lane::Kind;
use ayre_proto::limits::LINE;
use ayre_proto::units::PeerId;

/// Parts of a message, unless they were longer than [`PART_MAX`]: the first is copied out while the
/// next is copied in, so the last part's copy is what a message waits for.
const PARTS: usize = 8;
/// Shorter parts cost more than they gain.
const PART_MIN: usize = 8 << 10;

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Its tag; none of a plain message.
    pub tag: Option<u64>,
    /// Immediate data for the receiver.
    pub data: Option<u64>,
    /// Its bytes.
    pub bytes: Spans,
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
    Gone,
    /// Its end will be told; until then its memory is needed.
    UnderWay,
}

impl Endpoint {
    /// Longest message that leaves at once, its memory included: nothing of it is needed when
    /// [`Endpoint::send`] returns.
    pub const fn inject_max() -> usize {
        AHEAD_MIN
    }

    /// Sends a message. Messages to one endpoint arrive in the order in which they were sent.
    ///
    /// # Errors
    /// [`PostError::Busy`], and nothing has happened, where there is no room now, or the endpoint
    /// has yet to answer our call; the same call may succeed after progress. [`Fault::PeerDead`]
    /// where the endpoint has gone; [`Fault::ForeignHandle`] for one that is not known;
    /// [`Fault::NoMemory`] where this endpoint has no memory for one more operation, or the other
    /// one for what was sent.
    // spec: ENV-3, ENV-4, ENV-39
    #[inline]
    pub fn send(&mut self, to: RemoteId, message: &Outgoing) -> Result<Sent, PostError> {
        let Outgoing { tag, data, ref bytes, delivered, .. } = *message;
        if !delivered && let Some(sent) = self.send_at_once(to, (tag, data), bytes) {
            return sent.map(|()| Sent::Gone);
        }
        self.send_any(to, message)
    }

    /// Sends a message with this tag and immediate data that need not be delivered, if it is one
    /// that goes short, of one span, and to an endpoint that is connected: what is sent most.
    /// [`Endpoint::send`] does the same for any message.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    // spec: ENV-3, ENV-4
    #[inline(always)]
    pub fn send_at_once(
        &mut self,
        to: RemoteId,
        (tag, data): (Option<u64>, Option<u64>),
        bytes: &Spans,
    ) -> Option<Result<(), PostError>> {
        let peer = self.remotes.way(to)?;
        let bytes = bytes.whole().filter(|bytes| bytes.len() <= SHORT_MAX)?;
        let (tag, [a, b]) = Envelope { tag, data }.short();
        Some(self.push(peer, tag, [0, a, b], bytes))
    }

    #[inline(never)]
    fn send_any(&mut self, to: RemoteId, message: &Outgoing) -> Result<Sent, PostError> {
        let peer = match self.remotes.way(to) {
            Some(peer) => peer,
            None => self.reach(to)?,
        };
        self.check_under_way()?;
        let Outgoing { tag, data, ref bytes, context, delivered } = *message;
        let envelope = Envelope { tag, data };
        let entry = self.departing.vacant_key() as u64;
        let answer = delivered.then_some(entry);
        let len = bytes.len();
        let has_gone = if len <= SHORT_MAX {
            let mut staged = [0; SHORT_MAX];
            bytes.read(0, &mut staged[..len]);
            self.push_record(peer, &Record::Short { envelope, answer }, &staged[..len])?;
            true
        } else if let Some(place) = self.write_ring(to, peer, bytes)? {
            let record = Record::Long { envelope, answer, len: len as u64, place };
            self.push_record(peer, &record, &[])?;
            true
        } else {
            let (len, address) = (len as u64, self.address_of(peer, bytes));
            let ask = Record::Ask { envelope, id: entry, answered: delivered, len, address };
            self.push_record(peer, &ask, &[])?;
            false
        };
        if has_gone && !delivered {
            return Ok(Sent::Gone);
        }
        self.departing.insert(match has_gone {
            true => Departing::gone(to, context),
            false => Departing::asking(to, bytes.clone(), (context, delivered)),
        });
        Ok(Sent::UnderWay)
    }

    /// Copies a message into the ring, if it may go there before its receive is known; none where
    /// it has to ask. There is room in the lane for its record.
    // spec: ENV-3
    fn write_ring(
        &mut self,
        to: RemoteId,
        peer: PeerId,
        bytes: &Spans,
    ) -> Result<Option<u64>, PostError> {
        let is_linked = self.port.connection(peer)?.is_driven_here();
        if bytes.len() > self.remotes[to].ahead().longest(is_linked) {
            return Ok(None);
        }
        self.reserve(peer)?;
        let remote = &mut self.remotes[to];
        let Some(ring) = remote.ring_out().filter(|ring| bytes.len() <= ring.longest()) else {
            return Ok(None);
        };
        let place = match bytes.whole() {
            Some(whole) => ring.write(whole),
            None => {
                let mut whole = vec![0; bytes.len()];
                bytes.read(0, &mut whole);
                ring.write(&whole)
            }
        };
        match place {
            None if bytes.len() <= LONG_MAX_HERE => Err(self.no_room(peer)),
            None => Ok(None),
            Some(place) => {
                remote.ahead().on_gone(bytes.len());
                Ok(Some(place))
            }
        }
    }

    /// Whether all has ended that was posted to a remote: messages that had to be answered, writes,
    /// reads and updates.
    pub fn has_ended_all(&self, to: RemoteId) -> bool {
        !self.remotes.knows(to) || self.departing.has_none(to) && self.touching.has_none(to)
    }

    /// Operations that were posted and whose end was not told yet.
    pub fn under_way(&self) -> usize {
        self.receives.len() + self.answerable() + self.ended.len()
    }

    /// Those of them that peers may have to answer.
    pub(super) fn answerable(&self) -> usize {
        self.departing.len() + self.touching.len()
    }

    /// Makes sure that there is room in the lane for a record without bytes.
    pub(super) fn reserve(&mut self, peer: PeerId) -> Result<(), PostError> {
        let lane = &mut self.port.connection_mut(peer)?.messages_out;
        let has_room = lane.reserve((ENVELOPE_WORDS + 1) * 8).is_ok();
        if has_room { Ok(()) } else { Err(self.no_room(peer)) }
    }

    pub(super) fn push_record(
        &mut self,
        peer: PeerId,
        record: &Record,
        bytes: &[u8],
    ) -> Result<(), PostError> {
        let (tag, head, words) = record.encode();
        let [a, b, c, d, e] = head;
        match words {
            1 => self.push(peer, tag, [0, a], bytes),
            2 => self.push(peer, tag, [0, a, b], bytes),
            3 => self.push(peer, tag, [0, a, b, c], bytes),
            4 => self.push(peer, tag, [0, a, b, c, d], bytes),
            _ => self.push(peer, tag, [0, a, b, c, d, e], bytes),
        }
    }

    /// Appends a record to a peer's lane, its head behind a word for how many commands precede it.
    #[inline(always)]
    pub(super) fn push<const H: usize>(
        &mut self,
        peer: PeerId,
        tag: u32,
        mut head: [u64; H],
        bytes: &[u8],
    ) -> Result<(), PostError> {
        let connection = self.port.connection_mut(peer)?;
        if let Some(why) = connection.ended {
            return Err(why.into());
        }
        if let Executor::Mediated(end) = &connection.executor {
            head[0] = end.outgoing.posted();
        }
        connection.messages_out.send_for_ahead();
        let pushed = connection.messages_out.push((Kind::GatedMessage, tag), head, bytes);
        if pushed.is_err() {
            self.port.make_room(peer);
            return Err(self.no_room(peer));
        }
        connection.published();
        Ok(())
    }

    /// Answers a peer, now or as soon as there is room. One that has gone needs no answer.
    // spec: ENV-15
    pub(super) fn reply(&mut self, to: RemoteId, record: Record) {
        self.reply_with(to, record, &[]);
    }

    /// The same, with bytes.
    pub(super) fn reply_with(&mut self, to: RemoteId, record: Record, bytes: &[u8]) {
        let Some(remote) = self.remotes.get(to) else { return };
        let Some(peer) = remote.peer() else { return };
        if remote.replies().is_empty() && self.push_record(peer, &record, bytes).is_ok() {
            return;
        }
        self.put_off(to, (record, bytes.into()));
    }

    fn push_replies(&mut self, to: RemoteId) -> bool {
        let mut any = false;
        while let Some(peer) = self.remotes.get(to).and_then(Remote::peer)
            && let Some((record, bytes)) = self.remotes.next_reply(to)
        {
            if self.push_record(peer, &record, &bytes).is_err() {
                self.remotes.put_back(to, (record, bytes));
                break;
            }
            self.discharge(to, cost(&bytes));
            any = true;
        }
        any
    }

    /// Sends what has been waiting for room.
    #[inline(never)]
    pub(super) fn push_on(&mut self, tell: &mut impl FnMut(End)) -> bool {
        let mut any = false;
        if self.remotes.replies() > 0 {
            for remote in self.remotes.unanswered() {
                any |= self.push_replies(remote);
            }
        }
        let mut at = 0;
        while let Some(stream) = self.streams.get(at) {
            let (has_gone, is_over) = match stream {
                Stream::Messages(to) => self.push_messages(to, tell),
                Stream::Write(key) => self.push_write_on(key),
                Stream::Reads(to) => self.push_reads(to, tell),
                Stream::Fetch(key) => self.fetch(key, tell),
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
    fn push_messages(&mut self, to: RemoteId, tell: &mut impl FnMut(End)) -> (bool, bool) {
        let mut any = false;
        loop {
            let wanted = self.remotes.get(to).and_then(Remote::wanted);
            let Some(key) = wanted else { return (any, true) };
            let (has_gone, is_over) = self.push_stream(key, tell);
            any |= has_gone;
            if !is_over {
                return (any, false);
            }
            self.remotes[to].has_got(key);
        }
    }

    /// The next parts of a wanted message: whether any has gone, and whether all has.
    fn push_stream(&mut self, key: usize, tell: &mut impl FnMut(End)) -> (bool, bool) {
        let mut any = false;
        loop {
            let wanted = self.departing.get(key).and_then(Departing::wanted);
            let Some((to, at, len)) = wanted else { return (any, true) };
            if at == len {
                self.all_gone(key, tell);
                return (any, true);
            }
            let Some(count) = self.push_part(key, (to, at, len)) else { return (any, false) };
            any = true;
            self.departing[key].advance(count);
        }
    }

    /// One part of a message; how many bytes, if there was room.
    fn push_part(&mut self, key: usize, (to, at, len): (u64, usize, usize)) -> Option<usize> {
        let remote = self.departing[key].to();
        let peer = self.remotes.get(remote)?.peer()?;
        self.reserve(peer).ok()?;
        let bytes = self.departing[key].bytes();
        if let Some(ring) = self.remotes[remote].ring_out() {
            let part = (len / PARTS).next_multiple_of(LINE).clamp(PART_MIN, PART_MAX);
            let piece = bytes.piece(at, part.min(len - at).min(ring.longest()));
            debug_assert!(!piece.is_empty() && piece.len() <= PART_MAX, "a part has bytes");
            let (count, place) = (piece.len(), ring.write(piece)?);
            let part = Record::Part { to, len: count as u64, place };
            self.push_record(peer, &part, &[]).ok()?;
            return Some(count);
        }
        let mut staged = [0; SHORT_MAX];
        let piece = bytes.piece(at, SHORT_MAX.min(len - at));
        let count = piece.len();
        debug_assert!(count > 0, "a part has bytes");
        staged[..count].copy_from_slice(piece);
        self.push_record(peer, &Record::PartHere { to }, &staged[..count]).ok()?;
        Some(count)
    }

    fn all_gone(&mut self, key: usize, tell: &mut impl FnMut(End)) {
        let departing = &mut self.departing[key];
        if departing.finish() {
            let context = departing.context();
            self.departing.free(key);
            tell(End { context, what: What::Sent, result: Ok(()) });
        }
    }

    /// A receive has matched a message that asked. False where there is none such.
    pub(super) fn on_go(
        &mut self,
        from: RemoteId,
        id: u64,
        (to, len): (u64, u64),
        tell: &mut impl FnMut(End),
    ) -> bool {
        let key = id as usize;
        let Some(departing) = self.departing.get_mut(key) else { return false };
        if !departing.want(from, (to, len)) {
            return false;
        }
        let Some(remote) = self.remotes.get_mut(from) else { return false };
        remote.ahead().on_answer(departing.bytes().len(), len > 0);
        if len == 0 {
            // Nothing goes, so that it may be said to be done with the next record.
            self.all_gone(key, tell);
            return true;
        }
        if remote.want(key) {
            self.streams.push(Stream::Messages(from));
        }
        true
    }

    /// A message is where it belongs. False where there is none such.
    pub(super) fn on_done(&mut self, from: RemoteId, id: u64, tell: &mut impl FnMut(End)) -> bool {
        let key = id as usize;
        let is_due = self.departing.get(key).is_some_and(|departing| departing.is_due(from));
        if is_due {
            let context = self.departing[key].context();
            self.departing.free(key);
            tell(End { context, what: What::Sent, result: Ok(()) });
        }
        is_due
    }

    /// What was on its way to a remote will not arrive.
    pub(super) fn end_sends(&mut self, to: RemoteId, why: Fault) {
        let Self { departing, ended, streams, remotes, .. } = self;
        remotes.get_mut(to).into_iter().for_each(Remote::want_none);
        departing.free_all(to, |departing| {
            let context = departing.context();
            ended.push(End { context, what: What::Sent, result: Err(why) });
        });
        debug_assert!(departing.has_none(to), "all have ended");
        streams.drop_one(Stream::Messages(to));
    }
}

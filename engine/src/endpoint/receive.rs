//! Taking records from peers' lanes.
use super::{Completion, RawEndpoint};
use crate::error::Fault;
use crate::mem::lane::{LaneReceiver, Probe};
use crate::mem::span::Spans;
use crate::port::message::is_due;
use crate::sync::Ordering;
use ayre_proto::endpoint::{Head, OnShort, Origin, Taken};
use ayre_proto::envelope::{Envelope, SHORT_WORDS};
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::rma::RMA_WORDS;

/// The bytes of a kept message before they are copied. Zeroed memory comes from `calloc`, which
/// many versions of glibc serve without the thread's cache: that takes several times as long.
const FILL: u8 = !0;

impl RawEndpoint {
    /// Takes the record at the head of a peer's lane, if there is one; a further one, if it comes
    /// right behind another.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        index: usize,
        is_further: bool,
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        if self.inbox.is_some() {
            return self.take_handing_over(index, is_further, tell);
        }
        if let Some(taken) = self.take_line::<false, false>(index, is_further, tell) {
            return taken;
        }
        if self.is_of_lines(index)
            && let Some(taken) = self.take_lines(index, is_further, tell)
        {
            return taken;
        }
        // One copy of all that is not taken most.
        let mut tell: &mut dyn FnMut(Completion) = tell;
        self.take_any(index, &mut tell)
    }

    /// As [`RawEndpoint::take`], where plain messages are handed over. Apart from it, which so does
    /// not look for that at each message.
    #[inline(never)]
    fn take_handing_over(
        &mut self,
        index: usize,
        is_further: bool,
        tell: &mut impl FnMut(Completion),
    ) -> bool {
        if let Some(taken) = self.take_line::<false, true>(index, is_further, tell) {
            return taken;
        }
        if self.is_of_lines(index)
            && let Some(taken) = self.take_line::<true, true>(index, is_further, tell)
        {
            return taken;
        }
        let mut tell: &mut dyn FnMut(Completion) = tell;
        self.take_any(index, &mut tell)
    }

    /// Takes the record at the head if it is a short message that a receive waits for, or that can
    /// be kept: the most frequent record. None where [`RawEndpoint::take_any`] has to take it.
    #[inline(always)]
    fn take_line<const SEVERAL: bool, const HANDS_OVER: bool>(
        &mut self,
        index: usize,
        is_further: bool,
        tell: &mut impl FnMut(Completion),
    ) -> Option<bool> {
        let Self { port, remotes, protocol, polls, .. } = self;
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
        debug_assert!(remotes.knows(source), "something is taken of it");
        let origin = Origin { source, envelope, len: len as u64, answer: None };
        if SEVERAL {
            // Each poll is a whole one for some time, and sends for the lines of the next one.
            polls.set_poll_rate();
        }
        if HANDS_OVER && origin.envelope.tag.is_none() && !protocol.keeps_plain() {
            self.hand_over_line((index, size), &origin);
            return Some(true);
        }
        let take = |memory: &mut Spans, (offset, len): (usize, usize)| {
            match memory.first_mut(offset, len) {
                Some(piece) if SEVERAL => lane.copy(1 + SHORT_WORDS, piece),
                Some(piece) => lane.copy_short(1 + SHORT_WORDS, piece),
                None => take_apart(lane, memory, (offset, len)),
            }
            if SEVERAL {
                lane.consume_len(size);
            } else {
                lane.consume_short();
            }
        };
        match protocol.on_short(&origin, take, tell) {
            OnShort::Placed => {}
            OnShort::Unexpected => {
                // A copy that is made here: nothing is stored for it above.
                let Origin { source, envelope, len, answer } = origin;
                self.keep_line((index, size), &Origin { source, envelope, len, answer });
            }
            // Its table has to grow.
            OnShort::Busy => return None,
        }
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
        tell: &mut impl FnMut(Completion),
    ) -> Option<bool> {
        self.take_line::<true, false>(index, is_further, tell)
    }

    /// Takes the bytes of the short message at the head, whose record is of `size` bytes.
    #[inline(always)]
    fn take_bytes(&mut self, (index, size): (usize, usize), origin: &Origin) -> Box<[u8]> {
        debug_assert_eq!((1 + SHORT_WORDS) as u64 * 8 + origin.len, size as u64, "all of it");
        let mut bytes = vec![FILL; origin.len as usize].into_boxed_slice();
        if let Some(connection) = self.port.peers.at_mut(index) {
            connection.messages_in.copy(1 + SHORT_WORDS, &mut bytes);
            connection.messages_in.consume_len(size);
        }
        bytes
    }

    /// The program takes this message next: no receive does. Those that are kept come first.
    #[inline(never)]
    fn hand_over_line(&mut self, line: (usize, usize), origin: &Origin) {
        debug_assert!(origin.envelope.tag.is_none(), "tagged messages are matched");
        let bytes = self.take_bytes(line, origin);
        if let Some(inbox) = &mut self.inbox {
            inbox.push_back((origin.received((0, origin.len), true), bytes));
        }
    }

    /// Keeps the short message at the head, whose record is of `size` bytes.
    #[inline(never)]
    fn keep_line(&mut self, line: (usize, usize), origin: &Origin) {
        let bytes = self.take_bytes(line, origin);
        let (protocol, mut around) = self.parts();
        protocol.keep_short(&mut around, origin, bytes);
    }

    #[inline(never)]
    fn take_any(&mut self, index: usize, tell: &mut impl FnMut(Completion)) -> bool {
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

    /// Takes the next item of a peer that has gone; ends are told later.
    pub(super) fn take_last(&mut self, index: usize) -> bool {
        let mut ends = Vec::new();
        let taken = self.take(index, false, &mut |end| ends.push(end));
        self.protocol.put_off_completions(ends);
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
        tell: &mut impl FnMut(Completion),
    ) -> Result<Taken, Malformed> {
        let source = self.remotes.of_peer(index).ok_or(Malformed)?;
        debug_assert!(self.remotes.knows(source), "something is taken of it");
        let (protocol, mut around) = self.parts();
        let connection = around.port.peers.at(index).ok_or(Malformed)?;
        let [_, words @ ..] = connection.messages_in.head::<{ 1 + RMA_WORDS }>();
        let len = (status.len as usize).checked_sub(8).ok_or(Malformed)?;
        if status.kind != Kind::GatedMessage {
            return Err(Malformed);
        }
        let (from, head) = ((connection.peer, source), Head { tag: status.tag, words, len });
        let taken = protocol.on_record(&mut around, from, &head, tell)?;
        if taken == Taken::Yes
            && let Some(connection) = self.port.peers.at_mut(index)
        {
            connection.messages_in.consume(status);
        }
        Ok(taken)
    }
}

/// Copies a short message into several spans, as much of it as is said.
#[inline(never)]
fn take_apart(lane: &LaneReceiver, into: &mut Spans, (offset, len): (usize, usize)) {
    let mut bytes = [0; EAGER_MAX];
    let bytes = &mut bytes[..len];
    lane.copy(1 + SHORT_WORDS, bytes);
    into.write(offset, bytes);
}

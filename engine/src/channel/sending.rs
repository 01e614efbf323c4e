//! Sending by channels: at once if nothing waits, else by priority and weight.
use super::ends::{Ends, Logical, Waiting};
use crate::active::outgoing::{Outbound, Outgoing, Pass, lay};
use crate::active::way::way_to;
use crate::error::{Busy, Fault, PostError};
use ayre_proto::active::LONGEST;
use ayre_proto::active::record::Record;
use ayre_proto::limits::{EAGER_MAX, LINE_PAYLOAD};
use ayre_proto::logical::{BACK, Back, CHANNEL, Head, SHORT_MAX, Start, Turn};
use ayre_proto::units::PeerId;

/// Bytes of a record's head.
const HEAD: usize = EAGER_MAX - SHORT_MAX;
/// Bytes of a message that fits into a line with its head.
const LINE_MAX: usize = LINE_PAYLOAD - HEAD;
/// Bytes that a poll sends by channels to one peer, before it takes arrived messages.
const PASS_MAX: usize = 1 << 16;
const _: () = assert!(LINE_MAX < SHORT_MAX, "a line is the shorter record");

impl Outbound for Logical {
    fn send(out: &mut Outgoing, to: PeerId, pass: Pass) -> Result<(), PostError> {
        match pass {
            Pass::Urgent => out.give_back(to),
            Pass::Shared if out.logical().takes_turn(to) => out.drain_channels(to, 1),
            Pass::Shared => Ok(()),
            Pass::Free => out.drain_channels(to, usize::MAX),
        }
    }

    fn is_ready(&mut self, to: PeerId) -> bool {
        Self::is_ready(self, to)
    }

    fn waits(&self) -> bool {
        Self::waits(self)
    }

    fn drop_waiting(&mut self, to: PeerId) {
        Self::drop_waiting(self, to);
    }

    fn on_death(&mut self, peer: PeerId) {
        self.forget(peer);
    }
}

impl Outgoing {
    /// Sends a message by a channel, or puts it into the channel's queue.
    // spec: CHAN-2, CHAN-4, CHAN-8
    pub(super) fn send_by(
        &mut self,
        (to, number): (PeerId, u8),
        id: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), PostError> {
        let len = 8 * arguments.len() + payload.len();
        if payload.len() > LONGEST {
            return Err(Fault::TooLong.into());
        }
        if len <= SHORT_MAX && self.is_told(to) {
            let longest = self.longest();
            let ends = self.logical().ends_or_new(to, longest);
            if ends.outward.send_at_once(number, len as u64) {
                let sent = if len <= LINE_MAX {
                    self.send_short::<LINE_PAYLOAD>(to, (number, id), arguments, payload)
                } else {
                    self.send_short::<EAGER_MAX>(to, (number, id), arguments, payload)
                };
                let Err(error) = sent else { return Ok(()) };
                if let Some(ends) = self.logical().ends(to) {
                    ends.outward.take_back(number, len as u64);
                }
                if let PostError::Fault(_) = error {
                    return sent;
                }
            }
        }
        self.enqueue((to, number), id, arguments, payload)
    }

    /// Sends a message in one record of at most `BYTES`.
    #[inline(always)]
    fn send_short<const BYTES: usize>(
        &mut self,
        to: PeerId,
        (number, id): (u8, u32),
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), PostError> {
        let len = HEAD + 8 * arguments.len() + payload.len();
        debug_assert!(len <= BYTES, "it goes in one record");
        let mut buffer = [0; BYTES];
        let (head, rest) = buffer.split_at_mut(HEAD);
        head.copy_from_slice(&Head { number, begins: Some(id) }.encode());
        let len = HEAD + lay(rest, arguments, payload).len();
        self.port.send(to, CHANNEL, &buffer[..len])
    }

    // spec: CHAN-4
    #[inline(never)]
    fn enqueue(
        &mut self,
        (to, number): (PeerId, u8),
        id: u32,
        arguments: &[u64],
        payload: &[u8],
    ) -> Result<(), PostError> {
        if !self.port.is_alive(to) {
            return Err(Fault::PeerDead.into());
        }
        let room = self.logical().options.get(&number).copied().unwrap_or_default().room;
        let len = 8 * arguments.len() + payload.len();
        let longest = self.longest();
        let ends = self.logical().ends_or_new(to, longest);
        let queue = ends.queue(number);
        if !queue.messages.is_empty() && queue.bytes + len > room {
            return Err(Busy::ChannelFull.into());
        }
        let mut content = vec![0; len];
        lay(&mut content, arguments, payload);
        queue.bytes += len;
        queue.messages.push_back(Waiting { id, content, sent: 0 });
        if queue.messages.len() == 1 {
            ends.outward.offer(number, len as u64);
        }
        ends.check(number);
        self.stir();
        Ok(())
    }

    /// Sends a peer the credit that is due to it.
    // spec: CHAN-3
    fn give_back(&mut self, to: PeerId) -> Result<(), PostError> {
        let Self { outbound, port, .. } = self;
        let logical: &mut Logical = outbound.as_mut();
        let Some(ends) = logical.ends(to) else { return Ok(()) };
        while let Some(number) = ends.dues.last().copied() {
            if let Some(back) = ends.inward.due(number) {
                port.send(to, BACK, &Back { number, back }.encode())?;
                ends.inward.told(number, back);
            }
            ends.dues.pop();
        }
        Ok(())
    }

    /// Sends waiting messages of a peer's channels, at most `most` records, as far as there is
    /// room.
    // spec: CHAN-5, CHAN-6
    fn drain_channels(&mut self, to: PeerId, most: usize) -> Result<(), PostError> {
        let Some(ends) = self.logical().ends(to) else { return Ok(()) };
        ends.outward.resume();
        let (mut records, mut bytes) = (0, 0);
        while records < most
            && bytes < PASS_MAX
            && let Some(turn) = self.logical().ends(to).and_then(|ends| ends.outward.next())
        {
            bytes += self.take_turn(to, turn)?;
            records += 1;
        }
        debug_assert!(records <= most, "others have their turn");
        Ok(())
    }

    /// Sends one record of the channel whose turn it is. Returns its bytes, or 0 if the channel
    /// cannot go on and another one is next.
    fn take_turn(&mut self, to: PeerId, turn: Turn) -> Result<usize, PostError> {
        let Self { outbound, port, .. } = self;
        let logical: &mut Logical = outbound.as_mut();
        let Some(ends) = logical.ends(to) else { return Ok(0) };
        let Some(Waiting { id, content, sent }) = ends.queue(turn.number).messages.front() else {
            debug_assert!(false, "who has a turn has a message");
            return Ok(0);
        };
        if content.len() > SHORT_MAX {
            return self.send_part(to, turn);
        }
        debug_assert_eq!(*sent, 0, "what fits one record goes whole");
        let (mut buffer, len) = ([0; EAGER_MAX], HEAD + content.len());
        buffer[..HEAD].copy_from_slice(&Head { number: turn.number, begins: Some(*id) }.encode());
        buffer[HEAD..len].copy_from_slice(content);
        port.send(to, CHANNEL, &buffer[..len])?;
        ends.went(turn.number, len - HEAD);
        Ok(len)
    }

    /// Sends the next part of a long message, as one piece of the landing.
    // spec: CHAN-8
    fn send_part(&mut self, to: PeerId, turn: Turn) -> Result<usize, PostError> {
        let is_free = !self.is_amid_long(to) && self.find_landing(to)?;
        let longest = self.port.longest_put_at_once(to).min(turn.most);
        let Self { outbound, port, peers, .. } = self;
        let logical: &mut Logical = outbound.as_mut();
        let Some(ends) = logical.ends(to) else { return Ok(0) };
        let number = turn.number;
        let Some(Waiting { id, content, sent }) = ends.queue(number).messages.front() else {
            return Ok(0);
        };
        debug_assert!(*sent < content.len(), "who has a turn has something to send");
        debug_assert!(turn.most > 0, "and credit for it");
        let start = match *sent {
            0 => Start::First { id: *id, total: content.len() as u64 },
            _ => Start::Later,
        };
        let (words, count) = start.encode(number);
        let (outward, mut way) = way_to(port, peers, to);
        let record =
            |len| Record::Long { id: CHANNEL, total: len, piece: len, arguments: &words[..count] };
        let put = match is_free {
            true => outward.put(&mut way, longest as usize, &content[*sent..], record)?,
            false => None,
        };
        match put {
            Some(bytes) => ends.went(number, bytes),
            None => ends.outward.stall(number),
        }
        Ok(put.unwrap_or(0))
    }
}

impl Ends {
    /// Notes sent bytes of the first message of a channel.
    fn went(&mut self, number: u8, bytes: usize) {
        let queue = self.queue(number);
        let Some(first) = queue.messages.front_mut() else { return };
        first.sent += bytes;
        debug_assert!(first.sent <= first.content.len(), "no more is sent than there is");
        let (left, total) = (first.content.len() - first.sent, first.content.len());
        queue.bytes -= bytes;
        if left == 0 {
            queue.messages.pop_front();
        }
        let then = queue.first();
        self.outward.sent(bytes as u64, (left as u64, total as u64), then);
        self.check(number);
    }
}

//! A lane: a ring of self-validating lines from one port to another.
//!
//! ```text
//! line (64 bytes, one transfer between two cores)
//!   0        2           4                8                                   64
//!   +--------+-----------+----------------+------------------------------------+
//!   |sequence|kind:4     | tag            | payload, 56 bytes                  |
//!   |16      |length:12  | 32             |                                    |
//!   +--------+-----------+----------------+------------------------------------+
//!   '------- status word, stored last ----'
//! ```
//!
//! The n-th line of a lane carries sequence number n modulo 2^16, counted from one. So a reader
//! knows without an index whether the line is the one it waits for: any other line has an older
//! number. A record of more than 56 bytes takes several lines. Its first line is stored last, so a
//! record is visible whole or not at all, and a writer that dies in the middle leaves nothing.
//! (VELO's status word and two-slot message, EXTOLL thesis.)
//!
//! The lines of a lane are not taken in the order of their addresses but [`step`] positions on,
//! round the ring. A processor that sees equal steps would prefetch the next lines, and so take
//! them away from the core that is about to write them.
//!
//! The reader returns room by publishing how many lines it has consumed in all; cumulative counts
//! survive any loss of an earlier one (QFC credits, FORTH prototype).
use crate::limits::{LANE_LINES_MAX, LANE_LINES_MIN, LINE_PAYLOAD, RECORD_MAX};
use core::iter::from_fn;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A short message; the tag is its type tag.
    Message = 1,
    /// A notification record, and the place of its data; 24 bytes.
    Notification = 2,
    /// A command for the target's responder.
    Command = 3,
    /// An answer to a command.
    Response = 4,
    /// A record of a remote queue; its length stands in the tag, and in the length field as far as
    /// it fits.
    Record = 5,
    /// A short message on a mediated connection: its first word says how many commands precede it.
    GatedMessage = 6,
    /// A further line of the record before.
    Continuation = 15,
}

impl Kind {
    const fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            1 => Some(Self::Message),
            2 => Some(Self::Notification),
            3 => Some(Self::Command),
            4 => Some(Self::Response),
            5 => Some(Self::Record),
            6 => Some(Self::GatedMessage),
            15 => Some(Self::Continuation),
            _ => None,
        }
    }
}

/// First word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Which line of the lane this is.
    pub sequence: u16,
    /// The kind of the record.
    pub kind: Kind,
    /// Payload bytes of the whole record.
    pub len: u32,
    /// Belongs to the kind: a message's type tag.
    pub tag: u32,
}

impl Status {
    /// The word that is stored.
    #[inline(always)]
    pub const fn encode(self) -> u64 {
        debug_assert!(
            self.len as usize <= RECORD_MAX || matches!(self.kind, Kind::Record),
            "only a queue's records are longer than the field"
        );
        let (len, tag) = match self.kind {
            Kind::Record if self.len > RECORD_MAX as u32 => (RECORD_MAX as u64, self.len),
            Kind::Record => (self.len as u64, self.len),
            _ => (self.len as u64, self.tag),
        };
        self.sequence as u64 | (self.kind as u64) << 16 | len << 20 | (tag as u64) << 32
    }

    /// Reads a word from a peer. `None` for a kind that does not exist.
    #[inline(always)]
    pub const fn decode(word: u64) -> Option<Self> {
        let Some(kind) = Kind::from_bits(word >> 16 & 15) else { return None };
        let (len, tag) = match kind {
            Kind::Record => {
                let len = (word >> 32) as u32;
                let short = (word >> 20) as u32 & RECORD_MAX as u32;
                let expected = if len > RECORD_MAX as u32 { RECORD_MAX as u32 } else { len };
                if short != expected {
                    return None;
                }
                (len, 0)
            }
            _ => ((word >> 20) as u32 & RECORD_MAX as u32, (word >> 32) as u32),
        };
        Some(Self { sequence: word as u16, kind, len, tag })
    }
}

/// Lines that a record of `len` bytes takes; an empty one still takes its status word.
// spec: LANE-6
#[inline(always)]
pub const fn lines_for(len: usize) -> u32 {
    if len <= LINE_PAYLOAD { 1 } else { len.div_ceil(LINE_PAYLOAD) as u32 }
}

/// Bytes of the longest record of a remote queue whose lane has `lines` lines: half of the lane, so
/// that one is enqueued while another one is taken.
#[inline(always)]
pub const fn longest_of_queue(lines: u32) -> usize {
    lines as usize * LINE_PAYLOAD / 2
}

/// Positions from one line of a lane to the next one, modulo the lane. It is about five eighths of
/// the lane, so that few lines in a row lie at equal distances. The two numbers have no common
/// divisor, so the ring passes through all lines.
// spec: LANE-5
pub const fn step(lines: u32) -> u32 {
    assert_lines(lines);
    let mut step = lines * 5 / 8;
    while common_divisor(step, lines) != 1 {
        step += 1;
    }
    assert!(0 < step && step < lines, "a step goes on, and once round at most");
    step
}

const fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The next position after this one in a lane of `lines` lines.
#[inline(always)]
const fn following(position: u32, step: u32, lines: u32) -> u32 {
    let next = position + step;
    debug_assert!(position < lines && next < 2 * lines, "a position lies in the lane");
    if next >= lines { next - lines } else { next }
}

/// The peer wrote something that no correct peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

const fn assert_lines(lines: u32) {
    assert!(lines > 1 && lines as usize <= LANE_LINES_MAX, "a lane has room for two lines");
}

/// Writer's end: where the next line goes and how much room is known.
#[derive(Clone, Debug)]
pub struct Sender {
    lines: u32,
    step: u32,
    /// Positions to the line that is sent for while one is written.
    ahead: u32,
    position: u32,
    /// Lines written in all.
    sent: u32,
    /// The greatest value that `sent` may have with the room that is known.
    limit: u32,
}

impl Sender {
    /// A lane of `lines` empty lines.
    pub const fn new(lines: u32) -> Self {
        let (step, ahead) = (step(lines), AHEAD * step(lines) % lines);
        Self { lines, step, ahead, position: 0, sent: 0, limit: lines }
    }

    /// Invariants that hold between two steps, for all input of the reader.
    #[inline(always)]
    const fn check(&self) {
        debug_assert!(self.free() <= self.lines, "no more is free than there is");
        debug_assert!(self.position < self.lines, "the next line is one of the lane");
    }

    /// Lines known to be free; more may be, see [`Sender::on_cursor`].
    #[inline(always)]
    pub const fn free(&self) -> u32 {
        self.limit.wrapping_sub(self.sent)
    }

    /// Lines of the whole lane.
    #[inline(always)]
    pub const fn lines(&self) -> u32 {
        self.lines
    }

    /// Position of the line a few lines behind the next one, which is worth sending for, where it
    /// is known to be free.
    #[inline(always)]
    pub const fn position_ahead(&self) -> Option<u32> {
        if self.free() <= AHEAD {
            return None;
        }
        Some(following(self.position, self.ahead, self.lines))
    }

    /// Takes in the reader's count of consumed lines. A count that the reader cannot have reached
    /// is refused and changes nothing.
    // spec: LANE-8
    pub const fn on_cursor(&mut self, consumed: u32) -> Result<(), Malformed> {
        self.check();
        let before = self.free();
        let in_flight = self.sent.wrapping_sub(consumed);
        if in_flight > self.lines || self.lines - in_flight < self.free() {
            return Err(Malformed);
        }
        self.limit = consumed.wrapping_add(self.lines);
        debug_assert!(self.free() >= before, "room that was given stays given");
        self.check();
        Ok(())
    }

    /// Takes the next line: its position in the lane and its sequence number. The caller has made
    /// sure that one is free.
    // spec: LANE-4, LIM-3
    #[inline(always)]
    pub const fn take(&mut self) -> (u32, u16) {
        debug_assert!(self.free() > 0, "a line is taken only where one is free");
        let position = self.position;
        self.sent = self.sent.wrapping_add(1);
        self.position = following(position, self.step, self.lines);
        self.check();
        (position, self.sent as u16)
    }
}

/// Lines.
const AHEAD: u32 = 6;

/// Reader's end: which line comes next and what has been given back.
#[derive(Clone, Debug)]
pub struct Receiver {
    lines: u32,
    step: u32,
    /// Positions to the line that is sent for while one is read.
    ahead: u32,
    position: u32,
    /// Lines read in all.
    consumed: u32,
    /// The value of that count that was published to the writer last.
    published: u32,
}

impl Receiver {
    /// A lane of `lines` empty lines.
    pub const fn new(lines: u32) -> Self {
        Self {
            lines,
            step: step(lines),
            ahead: AHEAD * step(lines) % lines,
            position: 0,
            consumed: 0,
            published: 0,
        }
    }

    /// Lines of the whole lane.
    #[inline(always)]
    pub const fn lines(&self) -> u32 {
        self.lines
    }

    /// Position of the line that comes next.
    #[inline(always)]
    pub const fn position(&self) -> u32 {
        self.position
    }

    /// Position of the line a few lines behind the next one, which is worth sending for.
    #[inline(always)]
    pub const fn position_ahead(&self) -> u32 {
        following(self.position, self.ahead, self.lines)
    }

    /// Positions of the lines behind the next one, in lane order.
    #[inline(always)]
    pub fn positions_behind(&self) -> impl Iterator<Item = u32> {
        self.positions_from(self.position)
    }

    /// Positions of the lines behind the one that is worth sending for.
    #[inline(always)]
    pub fn positions_ahead(&self) -> impl Iterator<Item = u32> {
        self.positions_from(self.position_ahead())
    }

    #[inline(always)]
    fn positions_from(&self, mut position: u32) -> impl Iterator<Item = u32> {
        let Self { lines, step, .. } = *self;
        from_fn(move || {
            position = following(position, step, lines);
            Some(position)
        })
    }

    const fn sequence(&self) -> u16 {
        self.consumed.wrapping_add(1) as u16
    }

    /// Whether a status word is that of the line that comes next.
    // spec: LANE-4
    #[inline(always)]
    pub const fn arrived(&self, word: u64) -> bool {
        word as u16 == self.sequence()
    }

    /// Length and tag of the record that begins with this status word, if it is the next one, of
    /// this kind, and lies in one line. This is the common case, found with few comparisons;
    /// [`Receiver::record`] tells all others.
    #[inline(always)]
    pub const fn short(&self, word: u64, kind: Kind) -> Option<(usize, u32)> {
        let expected = self.sequence() as u32 | (kind as u32) << 16;
        let len = (word as u32 >> 20) as usize;
        if word as u32 & 0xf_ffff == expected && len <= LINE_PAYLOAD {
            Some((len, (word >> 32) as u32))
        } else {
            None
        }
    }

    /// Length and tag of the record that begins with this status word, if it takes several lines,
    /// up to the most of any lane.
    #[inline(always)]
    pub const fn long(&self, word: u64, kind: Kind) -> Option<(usize, u32)> {
        let expected = self.sequence() as u32 | (kind as u32) << 16;
        let len = (word as u32 >> 20) as usize;
        let fits = len > LINE_PAYLOAD && len <= LINE_PAYLOAD * LANE_LINES_MIN;
        if word as u32 & 0xf_ffff == expected && fits {
            Some((len, (word >> 32) as u32))
        } else {
            None
        }
    }

    /// The record that begins with an arrived word, or why none can.
    // spec: ERR-8
    #[inline]
    pub const fn record(&self, word: u64) -> Result<Status, Malformed> {
        match Status::decode(word) {
            Some(status) if self.acceptable(&status) => Ok(status),
            _ => Err(Malformed),
        }
    }

    const fn acceptable(&self, status: &Status) -> bool {
        let begins = !matches!(status.kind, Kind::Continuation);
        begins && lines_for(status.len as usize) <= self.lines
    }

    /// Consumes a number of lines, at most what a record takes.
    #[inline(always)]
    pub const fn consume(&mut self, lines: u32) {
        let mut left = lines;
        while left > 0 {
            self.position = following(self.position, self.step, self.lines);
            left -= 1;
        }
        self.consumed = self.consumed.wrapping_add(lines);
        debug_assert!(self.position < self.lines, "the next line is one of the lane");
    }

    /// The count to publish, once a quarter of the lane has been consumed since the last time: one
    /// transfer for many lines, and the writer never runs dry for long.
    // spec: LANE-8
    #[inline(always)]
    pub const fn cursor_due(&mut self) -> Option<u32> {
        if self.consumed.wrapping_sub(self.published) < self.lines / 4 {
            return None;
        }
        self.published = self.consumed;
        Some(self.consumed)
    }

    /// The count of consumed lines that was published to the writer last.
    pub const fn published(&self) -> u32 {
        self.published
    }

    /// The writer may have the lines before this count back: for a reader that passes lines on, and
    /// gives them back only once they were consumed where they went. A count beyond what was
    /// consumed here, or before what was given back, is refused and changes nothing.
    // spec: WIRE-3
    pub const fn give_back(&mut self, consumed: u32) -> Result<(), Malformed> {
        let kept = self.consumed.wrapping_sub(self.published);
        if consumed.wrapping_sub(self.published) > kept {
            return Err(Malformed);
        }
        self.published = consumed;
        Ok(())
    }
}

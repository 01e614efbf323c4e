//! Receiver's end of a channel: puts frames in order, says what has arrived, gives room.
//!
//! ```text
//!        taken            expected              limit    at most taken + WINDOW
//!          v                 v                    v
//!   -------|=================|---x--xx------------|----->  seq
//!           in order, held    x kept ahead of their turn
//! ```
//!
//! A credit is a buffer: the owner gives as many as it has, a frame takes one, and it comes back
//! when the program has taken what the frame carried. A receiver that stalls gives none, and so
//! stops its own sender and nobody else.
use super::{Repair, WINDOW, precedes};
use crate::lane::Malformed;

/// Frames ahead of their turn after which the one missed is asked for: as many as a frame may be
/// overtaken by on several paths.
// spec: LINK-10
pub const AHEAD_MAX: u32 = 3;
/// Frames after which it is said at once that they have come: an eighth of what the sender can have
/// under way.
// spec: LINK-13
pub const UNACKED_MAX: u32 = WINDOW / 8;
/// Times the interval between two requests for the same frame is doubled at most.
const NACKS_DOUBLED: u32 = 6;

/// The fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the one whose turn it is: this number of frames are in order now, itself first, and
    /// then those kept behind it.
    InOrder(u32),
    /// It is ahead of its turn: its buffer keeps it.
    Ahead,
    /// It is ahead of its turn, and this receiver keeps none of those.
    Dropped,
    /// It has arrived before.
    Duplicate,
}

/// Receiver's end of a channel.
#[derive(Clone, Debug)]
pub struct Receiver {
    repair: Repair,
    /// Frames before are taken, and their buffers are free.
    taken: u32,
    /// The number of the frame whose turn it is.
    expected: u32,
    /// Frames before have a buffer; and those before this one had one when it was said last.
    limit: u32,
    told: u32,
    /// Bit i: frame `expected + 1 + i` is kept.
    ahead: u128,
    /// Frames that have come ahead of the one that is missed.
    passed: u32,
    /// Requests for it.
    nacks: u32,
    nacked_at: u64,
    /// Since when something has been unacked, how many frames have come since, and whether the
    /// other side may be waiting for it.
    unacked: Option<u64>,
    fresh: u32,
    urgent: bool,
}

impl Receiver {
    /// A channel on which nothing has arrived, and that has no buffers yet. Both ends agree on the
    /// first number.
    // spec: LINK-3
    pub const fn new(repair: Repair, first: u32) -> Self {
        Self {
            repair,
            taken: first,
            expected: first,
            limit: first,
            told: first,
            ahead: 0,
            passed: 0,
            nacks: 0,
            nacked_at: 0,
            unacked: None,
            fresh: 0,
            urgent: false,
        }
    }

    /// Asserts what holds between two steps, whatever the other side has sent.
    fn check(&self) {
        let given = self.limit.wrapping_sub(self.taken);
        debug_assert!(given <= WINDOW, "no more buffers than the window holds");
        debug_assert!(self.held() <= given, "what is in order lies in buffers");
        let behind = self.limit.wrapping_sub(self.expected).saturating_sub(1);
        let beyond = self.ahead.checked_shr(behind).unwrap_or(0);
        debug_assert!(beyond == 0, "what came ahead of its turn lies in buffers");
        debug_assert!(
            self.ahead == 0 || self.repair == Repair::Selective,
            "going back keeps nothing ahead of its turn"
        );
        debug_assert!(self.passed >= self.ahead.count_ones(), "all that is kept has come");
        let has_news = self.fresh > 0 || self.urgent;
        debug_assert!(!has_news || self.unacked.is_some(), "news is told at some time");
    }

    /// The number of the frame whose turn it is: all before have arrived.
    pub const fn expected(&self) -> u32 {
        self.expected
    }

    /// Frames in order that the program has not taken: they begin with number [`Receiver::taken`].
    pub const fn held(&self) -> u32 {
        self.expected.wrapping_sub(self.taken)
    }

    /// Number of frames that were taken, modulo 2^32.
    pub const fn taken(&self) -> u32 {
        self.taken
    }

    /// Frames before this one have a buffer here.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Which frames behind the expected one have arrived: bit i is frame `expected + 1 + i`.
    pub const fn sack(&self) -> u128 {
        self.ahead
    }

    /// More buffers that the channel can be given now.
    pub const fn wants(&self) -> u32 {
        WINDOW - self.limit.wrapping_sub(self.taken)
    }

    /// Gives the channel more buffers, at most as many as it wants.
    // spec: LINK-4, LINK-6
    pub fn give(&mut self, buffers: u32, now: u64) {
        assert!(buffers <= self.wants(), "more buffers than the window holds");
        // A sender that has used what it knows of waits for this.
        self.urgent |= buffers > 0 && !precedes(self.expected, self.told);
        self.limit = self.limit.wrapping_add(buffers);
        self.unacked.get_or_insert(now);
        self.check();
    }

    /// The program has taken the oldest frames that it held; their buffers are free.
    pub fn take(&mut self, frames: u32) {
        assert!(frames <= self.held(), "only what is in order is taken");
        self.taken = self.taken.wrapping_add(frames);
        self.check();
    }

    /// Whether a frame has not arrived, and would be kept if it came now.
    // spec: FRAME-12
    pub fn is_wanted(&self, seq: u32) -> bool {
        let distance = seq.wrapping_sub(self.expected);
        let has_room = !precedes(seq, self.expected) && precedes(seq, self.limit);
        match distance {
            _ if !has_room => false,
            0 => true,
            _ => self.repair == Repair::Selective && self.ahead >> (distance - 1) & 1 == 0,
        }
    }

    /// A frame has come.
    ///
    /// # Errors
    /// [`Malformed`], and nothing changes, where the sender had no credit for it.
    // spec: LINK-2, LINK-5, LINK-11
    pub fn on_frame(&mut self, seq: u32, now: u64) -> Result<Arrival, Malformed> {
        self.check();
        if !precedes(seq, self.limit) {
            return Err(Malformed);
        }
        self.unacked.get_or_insert(now);
        let arrival = self.place(seq);
        self.fresh += 1;
        // The sender may be waiting: it repeats what it has not heard of, fills gaps, runs out.
        self.urgent |= arrival != Arrival::InOrder(1) || self.fresh >= UNACKED_MAX;
        debug_assert!(!self.is_wanted(seq) || arrival == Arrival::Dropped, "it has come");
        self.check();
        Ok(arrival)
    }

    fn place(&mut self, seq: u32) -> Arrival {
        if precedes(seq, self.expected) {
            return Arrival::Duplicate;
        }
        let distance = seq.wrapping_sub(self.expected);
        if distance == 0 {
            // The frames kept directly behind it have their turn too.
            let ready = 1 + self.ahead.trailing_ones();
            self.expected = self.expected.wrapping_add(ready);
            self.ahead = self.ahead.checked_shr(ready).unwrap_or(0);
            (self.passed, self.nacks) = (self.ahead.count_ones(), 0);
            return Arrival::InOrder(ready);
        }
        self.passed = self.passed.saturating_add(1);
        let bit = 1 << (distance - 1);
        if self.repair == Repair::GoBackN {
            return Arrival::Dropped;
        }
        if self.ahead & bit != 0 {
            return Arrival::Duplicate;
        }
        self.ahead |= bit;
        Arrival::Ahead
    }

    /// Whether the next frame to the other side should ask for the one that is missed. Asking is
    /// repeated at intervals that double, so that a storm of requests ends by itself.
    // spec: LINK-10
    pub fn nack_due(&self, now: u64, round_trip: u64) -> bool {
        let passed = match self.repair {
            Repair::GoBackN => 1,
            Repair::Selective => AHEAD_MAX,
        };
        if self.passed < passed {
            return false;
        }
        let interval = round_trip << self.nacks.saturating_sub(1).min(NACKS_DOUBLED);
        self.nacks == 0 || now.saturating_sub(self.nacked_at) >= interval
    }

    /// When an acknowledgement is due, even if nothing else is to be sent. It is due at once where
    /// the other side may be waiting, and otherwise this time after the first unacknowledged frame.
    // spec: LINK-13
    pub fn ack_due(&self, max_ack_delay: u64) -> Option<u64> {
        let since = self.unacked?;
        Some(if self.urgent { since } else { since.saturating_add(max_ack_delay) })
    }

    /// The other side asks: it has something to send, and no credit that it knows of.
    // spec: LINK-14
    pub fn ask(&mut self, now: u64) {
        self.unacked.get_or_insert(now);
        self.urgent = true;
    }

    /// A frame that says all this has been sent, with or without a request for what is missed.
    pub fn on_ack_sent(&mut self, now: u64, nack: bool) {
        (self.unacked, self.fresh, self.urgent) = (None, 0, false);
        self.told = self.limit;
        if nack {
            self.nacks = self.nacks.saturating_add(1);
            self.nacked_at = now;
        }
        self.check();
    }

    /// Goes on after a loss of state in between: what was kept ahead of its turn is gone, and the
    /// sender learns which frame is expected.
    // spec: LINK-12
    pub fn resume(&mut self, now: u64) {
        (self.ahead, self.passed, self.nacks) = (0, 0, 0);
        self.ask(now);
        self.check();
    }
}

//! Messages that go into the ring before a receive wants them.
use crate::envelope::{AHEAD_MIN, LONG_MAX, LONG_MAX_HERE};

/// Messages in a row that were wanted by the ring, until more go without asking: more than a
/// receiver tries by one method before it has decided (INJ-8).
pub const ENOUGH: u32 = 65;
/// Messages that go so until as many ask again, in case the receiver has changed its mind. They ask
/// together: one that asks among others that do not is wanted behind all of those, and its receiver
/// would find the ring slow.
const UNASKED_MAX: u32 = 1024;

/// How an endpoint of this host has taken messages that asked, of lengths between what always goes
/// at once and what never does: by the ring, or read where they lie, which only it knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    wanted: u32,
    unasked: u32,
    /// Bytes of the longest that it takes so at all, as it has said.
    longest: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { wanted: 0, unasked: 0, longest: LONG_MAX }
    }
}

impl Ahead {
    /// Bytes of the longest message that goes before it is wanted, while the ring has room: over a
    /// link nobody can read it where it lies.
    // spec: ENV-3
    pub(super) fn longest(self, is_linked: bool) -> usize {
        debug_assert!(self.wanted <= ENOUGH, "more are not counted");
        let longest = if is_linked || self.wanted == ENOUGH { LONG_MAX } else { LONG_MAX_HERE };
        longest.min(self.longest)
    }

    /// The receiver has said how long a message may be that goes so.
    // spec: ENV-3, ENV-37
    pub(super) fn limit(&mut self, longest: u64) {
        self.longest = longest.clamp(AHEAD_MIN as u64, LONG_MAX as u64) as usize;
        debug_assert!(self.longest >= AHEAD_MIN, "what is injected always goes so");
    }

    /// A message has gone before it was wanted.
    pub(super) fn on_gone(&mut self, len: usize) {
        self.unasked += u32::from(len > LONG_MAX_HERE);
        if self.unasked == UNASKED_MAX {
            (self.wanted, self.unasked) = (0, 0);
        }
        debug_assert!(self.unasked < UNASKED_MAX, "as many ask again");
    }

    /// What a message has asked for has come: that it is wanted, or that it was read, or is not.
    pub(super) fn on_answer(&mut self, len: usize, is_wanted: bool) {
        if len <= LONG_MAX {
            self.wanted = if is_wanted { ENOUGH.min(self.wanted + 1) } else { 0 };
        }
    }
}

//! Messages that go into the ring before a receive wants them.
use crate::envelope::{AHEAD_MIN, LONG_MAX, LONG_MAX_HERE};
use crate::ring::asking::Asking;

/// The eager limit for one remote. Messages up to a length always go at once, and messages beyond
/// another length never do. Between the two it depends on how the remote took earlier messages with
/// an RTS: through the ring, or by reading the sender's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct EagerPolicy {
    asking: Asking,
    /// Bytes of the longest that it takes so at all, as it has said.
    longest: usize,
}

impl Default for EagerPolicy {
    fn default() -> Self {
        Self { asking: Asking::default(), longest: LONG_MAX }
    }
}

impl EagerPolicy {
    /// Bytes of the longest message that goes before it is wanted, while the ring has room: over a
    /// link nobody can read it where it lies.
    // spec: ENV-3
    pub(super) fn longest(self, is_linked: bool) -> usize {
        let is_spared = is_linked || self.asking.is_spared();
        let longest = if is_spared { LONG_MAX } else { LONG_MAX_HERE };
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
        if len > LONG_MAX_HERE {
            self.asking.on_gone();
        }
    }

    /// The remote has answered an RTS: it asks for the bytes, or it needs none, as after a read.
    pub(super) fn on_answer(&mut self, len: usize, is_wanted: bool) {
        if len <= LONG_MAX {
            self.asking.on_answer(is_wanted);
        }
    }
}

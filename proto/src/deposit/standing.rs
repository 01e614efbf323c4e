//! Whether an inlet takes messages: the word that a stop changes, and its owner's answer.
//!
//! ```text
//!              a message faults: held
//!   running e  ---------------------->  stopped e, cause
//!              <----------------------
//!              resume, skip, reset: running e + 1
//! ```
//!
//! A message says for which epoch it was posted. Those that were under way when the inlet stopped
//! are refused although it runs again: so none overtakes the one at which it stopped.
use crate::fault::Fault;

/// The word of an inlet that says whether it takes messages.
///
/// ```text
///   bits 7..0 epoch | bit 8 stopped | bits 15..12 why
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing(u64);

const STOPPED: u64 = 1 << 8;

impl Standing {
    /// The state of a new inlet.
    pub const NEW: Self = Self(0);

    /// Reads a word. Total.
    pub const fn from_word(word: u64) -> Self {
        Self(word & 0xf1ff)
    }

    /// The word.
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The epoch of the messages that it takes, or will take when it runs again.
    pub const fn epoch(self) -> u8 {
        let epoch = self.0 as u8;
        if self.is_stopped() { epoch.wrapping_add(1) } else { epoch }
    }

    /// Whether it takes none.
    pub const fn is_stopped(self) -> bool {
        self.0 & STOPPED != 0
    }

    /// The fault at which it has stopped.
    pub const fn cause(self) -> Option<Fault> {
        if self.is_stopped() { Some(Fault::from_code((self.0 >> 12) as u8)) } else { None }
    }

    /// Whether it takes a message that was posted for an epoch.
    // spec: DEP-20
    #[inline(always)]
    pub const fn admit(self, epoch: u8) -> Result<(), Fault> {
        if self.0 == epoch as u64 { Ok(()) } else { Err(Fault::Stopped) }
    }

    /// Stopped at a message.
    // spec: DEP-19
    pub const fn stopped(self, cause: Fault) -> Self {
        debug_assert!(cause.code() < 16, "a cause has four bits");
        Self(self.0 & 0xff | STOPPED | (cause.code() as u64) << 12)
    }

    /// Running again.
    pub const fn running(self) -> Self {
        let running = Self(self.epoch() as u64);
        debug_assert!(running.epoch() == self.epoch(), "it takes the messages that it said");
        running
    }
}

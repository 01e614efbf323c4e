//! The progress counts that the two carriers of a connection report to each other.
//!
//! All counts are cumulative, so only the newest ones matter, on any channel; a serial number tells
//! which these are.
//!
//! ```text
//!        63                             32 31                              0
//!       +---------------------------------+---------------------------------+
//! word 0| responses passed on             | serial number                   |
//! word 1| commands executed                                                 |
//! word 2| notifications taken                                               |
//! word 3| lines of the ring given back    | message lines given back        |
//!       +---------------------------------+---------------------------------+
//! ```

/// Words of a counts record.
pub const WORDS: usize = 4;

/// The progress of one side on the other side's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Responses that were passed on when `done` was read: it holds once they have come.
    pub responses: u32,
    /// Commands executed in all.
    pub done: u64,
    /// Notifications taken in all.
    pub noted: u64,
    /// Lines of the message lane given back in all.
    pub lines: u32,
    /// Lines of the ring given back in all.
    pub ring: u32,
}

impl Counts {
    /// The words that travel.
    // spec: WIRE-4
    pub fn encode(&self, serial: u32) -> [u64; WORDS] {
        let first = u64::from(serial) | u64::from(self.responses) << 32;
        let last = u64::from(self.lines) | u64::from(self.ring) << 32;
        let words = [first, self.done, self.noted, last];
        debug_assert!(Self::parse(&words) == (serial, *self), "the other side reads what is told");
        words
    }

    /// Reads what a peer wrote, with its serial number. Total.
    pub fn parse(words: &[u64; WORDS]) -> (u32, Self) {
        let [first, done, noted, last] = *words;
        let [responses, ring] = [first, last].map(|word| (word >> 32) as u32);
        (first as u32, Self { responses, done, noted, lines: last as u32, ring })
    }
}

/// Whether a wrapping number comes after another one.
#[inline]
pub const fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

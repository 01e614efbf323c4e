//! What the two carriers of a connection tell each other in numbers: how far each has come.
//!
//! All are cumulative, so only the newest matters, on whatever channel it comes; a serial number
//! tells which that is.
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
pub(crate) const WORDS: usize = 4;

/// How far one side has come with what the other side has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Responses that were passed on when `done` was read: it holds once they have come.
    pub(crate) responses: u32,
    /// Commands executed in all.
    pub(crate) done: u64,
    /// Notifications taken in all.
    pub(crate) noted: u64,
    /// Lines of the message lane given back in all.
    pub(crate) lines: u32,
    /// Lines of the ring given back in all.
    pub(crate) ring: u32,
}

impl Counts {
    /// The words that travel.
    // spec: WIRE-4
    pub(crate) fn encode(&self, serial: u32) -> [u64; WORDS] {
        let first = u64::from(serial) | u64::from(self.responses) << 32;
        let last = u64::from(self.lines) | u64::from(self.ring) << 32;
        [first, self.done, self.noted, last]
    }

    /// Reads what a peer wrote, with its serial number. Total.
    pub(crate) fn parse(words: &[u64; WORDS]) -> (u32, Self) {
        let [first, done, noted, last] = *words;
        let [responses, ring] = [first, last].map(|word| (word >> 32) as u32);
        (first as u32, Self { responses, done, noted, lines: last as u32, ring })
    }
}

/// Whether a wrapping number comes after another one.
pub(crate) fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: WIRE-4
    #[test]
    fn counts_travel_whole() {
        let counts = Counts { responses: 7, done: u64::MAX - 1, noted: 1 << 40, lines: 3, ring: 9 };
        assert_eq!(Counts::parse(&counts.encode(u32::MAX)), (u32::MAX, counts));
    }

    #[test]
    fn numbers_wrap() {
        assert!(is_after(0, u32::MAX) && is_after(5, 4) && !is_after(4, 4) && !is_after(4, 5));
    }
}

//! Bytes that are kept of each source until a receive takes them, and whether they are too many.
//!
//! ```text
//!   budget  |#### one ####|## two ##|.............. free ..............|
//!
//!   Fair    it has at most a quarter of what is free
//!   Much    it has more: what it can keep itself should stay there
//!   Over    it has as much as is free, or more: nothing more of it can be kept
//! ```
//!
//! So one source alone comes to half of the budget, two to a third each, and however many flood it,
//! one that has nothing there finds room. (Choudhury and Hahne, 1998.)
use alloc::boxed::Box;

/// A source has much when this many times its bytes are more than what is free.
const MUCH: u64 = 4;
/// And little again when this many times its bytes are not, so that it is not told at each message.
const LITTLE: u64 = 8;

/// How a source stands.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// It has little of what is free.
    Fair,
    /// It has much of it; what it can keep itself should stay there.
    Much,
    /// Nothing more of it can be kept.
    Over,
}

/// The bytes that are kept of each source, within a bound of all of them together.
// spec: MATCH-13
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    kept: u64,
    of: Box<[u64]>,
}

impl Budget {
    /// A budget of `limit` bytes, for sources whose numbers are below `sources`. Allocates.
    pub fn new(limit: u64, sources: u32) -> Self {
        Self { limit, kept: 0, of: alloc::vec![0; sources as usize].into_boxed_slice() }
    }

    /// Bytes that may be kept, in all.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Changes them; what is kept stays.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Bytes that are kept, in all.
    pub const fn kept(&self) -> u64 {
        self.kept
    }

    /// Those of one source.
    pub fn of(&self, source: u32) -> u64 {
        self.of[source as usize]
    }

    /// Adds bytes that are kept of a source, and returns its share.
    #[inline]
    pub fn keep(&mut self, source: u32, bytes: u64) -> Share {
        self.kept = self.kept.saturating_add(bytes);
        let of = &mut self.of[source as usize];
        *of = of.saturating_add(bytes);
        debug_assert!(*of <= self.kept, "what is kept of one is kept in all");
        let (of, free) = (*of, self.limit.saturating_sub(self.kept));
        if of.saturating_mul(MUCH) <= free {
            Share::Fair
        } else if of < free {
            Share::Much
        } else {
            Share::Over
        }
    }

    /// Subtracts bytes that were kept of a source.
    #[inline]
    pub fn give_back(&mut self, source: u32, bytes: u64) {
        let of = &mut self.of[source as usize];
        debug_assert!(*of >= bytes && self.kept >= bytes, "they were kept");
        *of = of.saturating_sub(bytes);
        self.kept = self.kept.saturating_sub(bytes);
    }

    /// Whether a source that had much has little now.
    pub fn has_little(&self, source: u32) -> bool {
        let free = self.limit.saturating_sub(self.kept);
        self.of[source as usize].saturating_mul(LITTLE) <= free
    }
}

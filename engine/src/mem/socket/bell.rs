//! The memory of a bell: whether its owner sleeps, and the slots for which it was rung.
//!
//! ```text
//!     0  SLEEP   whether it is to be rung
//!     4  EDITION which of the counters that it has had is its own
//!     8  SUMS    a bit for each word of marks that is not 0
//!   128  MARKS   a bit for each slot
//! ```
//!
//! One that rings marks the slot. It makes a system call only where the owner sleeps. One that is
//! awake finds the marks by itself.
use super::SLOTS;
use crate::mem::doorbell::Sleep;
use crate::mem::map::Mapping;
use crate::mem::part::Part;
use crate::sync::Ordering;
use std::sync::Arc;

const MARKS: u32 = SLOTS / 64;
const SUMS: u32 = MARKS / 64;
const EDITION: usize = 4;
const FIRST_SUM: usize = 8;
const FIRST_MARK: usize = 128;
pub(super) const BELL_BYTES: usize = FIRST_MARK + 8 * MARKS as usize;
const _: () =
    assert!(FIRST_SUM + 8 * SUMS as usize <= FIRST_MARK && BELL_BYTES.is_multiple_of(128));

/// The memory of a bell.
#[derive(Clone, Debug)]
pub(crate) struct BellMemory(Part<BELL_BYTES>);

impl BellMemory {
    pub(super) fn new(shared: &Arc<Mapping>, offset: u64) -> Self {
        Self(Part::new(shared, offset))
    }

    pub(crate) fn sleep(&self) -> Sleep<'_> {
        Sleep::over(self.0.half(0))
    }

    /// The number of its counter.
    pub(crate) fn edition(&self) -> u32 {
        // Relaxed: one that has found the owner asleep sees what that has told before.
        self.0.get_half(EDITION)
    }

    /// A new owner's, once it has passed its counter on: what was rung for the last one is
    /// forgotten. It is to be rung from now on.
    pub(crate) fn begin(&self, edition: u32) {
        self.sleep().end();
        self.take_marks(|_| {});
        self.0.set_half(EDITION, edition);
        self.sleep().begin();
    }

    /// Marks a slot as one for which it rings.
    pub(crate) fn mark(&self, slot: u32) {
        let number = slot / 64;
        let marks = self.0.word(FIRST_MARK + 8 * number as usize);
        // SOCK-R4: the owner sees what it is woken for.
        marks.fetch_or(1 << (slot % 64), Ordering::Release);
        let sum = self.0.word(FIRST_SUM + 8 * (number / 64) as usize);
        // SOCK-R4: the mark is there before the sum says so.
        sum.fetch_or(1 << (number % 64), Ordering::Release);
    }

    /// Whether there are marks.
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        (0..SUMS as usize).any(|sum| self.0.get(FIRST_SUM + 8 * sum) != 0)
    }

    /// Takes the marks, and calls `each` with their slots.
    pub(crate) fn take_marks(&self, mut each: impl FnMut(u32)) {
        for sum in 0..SUMS {
            self.take_bits(FIRST_SUM + 8 * sum as usize, |word| {
                let number = 64 * sum + word;
                self.take_bits(FIRST_MARK + 8 * number as usize, |bit| each(64 * number + bit));
            });
        }
    }

    /// Takes the bits of a word.
    fn take_bits(&self, place: usize, mut each: impl FnMut(u32)) {
        if self.0.get(place) == 0 {
            return;
        }
        // SOCK-A4: what the mark was set for is visible.
        let mut set = self.0.word(place).swap(0, Ordering::Acquire);
        while set != 0 {
            each(set.trailing_zeros());
            set &= set - 1;
        }
    }
}

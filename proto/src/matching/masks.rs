//! Masks: what receives look at, and where a table has what looks alike to them.
//!
//! Programs use few different masks, but hardly ever the exact one: MPI libraries have every
//! receive ignore the bits of the tag that are their own. So each mask is treated like an exact
//! one, with lists by the part of source and tag that it compares. A message is searched for under
//! every mask that receives have, which are one to four (tuple space search).
use super::Pattern;
use crate::limits::MASKS_MAX;

/// Number of what has none of the table's masks.
pub(super) const ODD: usize = MASKS_MAX;

/// No source: of a receive any one, of a message an unknown one.
const NOBODY: u32 = u32::MAX;

/// The part of a message that a mask compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Label {
    source: u32,
    tag: u64,
}

impl Label {
    #[inline(always)]
    pub(super) const fn new(source: Option<u32>, tag: u64) -> Self {
        let source = match source {
            Some(source) => source,
            None => NOBODY,
        };
        Self { source, tag }
    }

    pub(super) const fn source(self) -> Option<u32> {
        if self.source == NOBODY { None } else { Some(self.source) }
    }
}

/// Which part of a label a receive looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mask {
    heeded: u64,
    /// All ones where the source does not matter.
    any: u32,
}

impl Mask {
    /// No pattern's mask.
    const NEVER: Self = Self { heeded: 0, any: 1 };

    #[inline(always)]
    pub(super) const fn of(pattern: &Pattern) -> Self {
        let any = if pattern.source.is_none() { NOBODY } else { 0 };
        Self { heeded: !pattern.ignore, any }
    }

    /// Whether two labels look alike.
    // spec: MATCH-2
    #[inline(always)]
    pub(super) const fn alike(&self, a: Label, b: Label) -> bool {
        ((a.tag ^ b.tag) & self.heeded) | ((a.source ^ b.source) & !self.any) as u64 == 0
    }
}

/// The masks of a matcher.
#[derive(Debug)]
pub(super) struct Masks {
    masks: [Mask; MASKS_MAX],
    len: usize,
    /// The number that was asked for last.
    last: usize,
    /// Where the search for one that may be replaced goes on.
    next: usize,
    factors: [u64; 2],
}

impl Masks {
    /// No mask. The seed decides which labels meet in a bucket.
    pub(super) const fn new(seed: u64) -> Self {
        let factors = [odd(seed), odd(seed.wrapping_add(GOLDEN))];
        Self { masks: [Mask::NEVER; MASKS_MAX], len: 0, last: 0, next: 0, factors }
    }

    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// A mask's number.
    #[inline(always)]
    pub(super) fn find(&mut self, mask: Mask) -> Option<usize> {
        if self.masks[self.last % MASKS_MAX] != mask {
            self.last = self.search(mask)?;
        }
        Some(self.last)
    }

    #[inline(never)]
    fn search(&self, mask: Mask) -> Option<usize> {
        (0..self.len).find(|&number| self.masks[number] == mask)
    }

    /// The mask of a number.
    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> Mask {
        self.masks[number]
    }

    /// Adds a mask. `None` where the table is full.
    pub(super) fn add(&mut self, mask: Mask) -> Option<usize> {
        assert!(self.search(mask).is_none(), "a mask has one number");
        let number = self.len;
        *self.masks.get_mut(number)? = mask;
        self.len += 1;
        Some(number)
    }

    /// Puts a mask in the place of one that is not in use. `None` where all are.
    pub(super) fn replace(&mut self, mask: Mask, is_used: impl Fn(usize) -> bool) -> Option<usize> {
        assert!(self.len == MASKS_MAX, "a number is used again when there is no other");
        let mut numbers = (0..MASKS_MAX).map(|by| (self.next + by) % MASKS_MAX);
        let number = numbers.find(|&number| !is_used(number))?;
        self.next = (number + 1) % MASKS_MAX;
        self.masks[number] = mask;
        Some(number)
    }

    /// A hash of what the mask of this number looks at.
    #[inline(always)]
    pub(super) fn hash(&self, number: usize, label: Label) -> u64 {
        let Mask { heeded, any } = self.masks[number];
        let source = u64::from(label.source | any) ^ (number as u64) << 32;
        let tag = (label.tag & heeded).wrapping_mul(self.factors[0]);
        tag.wrapping_add(source.wrapping_mul(self.factors[1]))
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// An odd number that looks like any: splitmix64.
const fn odd(seed: u64) -> u64 {
    let z = seed.wrapping_add(GOLDEN);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) | 1
}

//! A prediction of the place of a peer's next put.
use crate::mem::prefetch;
use std::ops::Range;

/// Predicts where a direct peer's next put lands. A notification tells where the peer has put its
/// data. The line that its next put is likely to write is prefetched during polling, so that data
/// and notification arrive at the same time. A wrong prediction only costs time.
#[derive(Debug, Default)]
pub(crate) struct Landing {
    last: usize,
    next: usize,
}

impl Landing {
    #[inline(always)]
    pub(super) fn send_for_next(&self) {
        if self.next != 0 {
            prefetch(self.next);
        }
    }

    /// Assumes that the next put is as far from this one as this one from the last.
    #[inline(always)]
    pub(super) fn follow(&mut self, place: u64, regions: &[Range<usize>]) {
        let Some(region) = regions.get((place & 0xffff) as usize) else { return };
        let at = region.start.wrapping_add((place >> 16) as usize);
        if region.contains(&at) {
            let step = if self.last == 0 { 0 } else { at.wrapping_sub(self.last) };
            (self.last, self.next) = (at, at.wrapping_add(step));
        }
    }
}

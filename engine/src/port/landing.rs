//! Where the next put of a peer is likely to land.
use crate::mem::prefetch;
use std::ops::Range;

/// Where a direct peer's puts land. With a notification it says where it has put the data, and the
/// line that its next put is likely to write is sent for while we poll: so data and notification
/// come at the same time, and not one after the other. Only a hint: a wrong one costs time.
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

    /// The next one lands as far from this one as this one from the last.
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

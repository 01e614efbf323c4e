//! Where polls look, and how often elsewhere than where something came last.

/// Polls of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Polls {
    /// The connection where something came last, and whose turn it is.
    hot: usize,
    turn: usize,
    /// Those that have found nothing, and how many they were when one last found something.
    idle: u32,
    idle_before: u32,
    /// A poll looks nowhere else than where something came last, but for each of which the number
    /// has none of these bits: see [`super::RawEndpoint::set_poll_rate`].
    poll_mask: u32,
}

impl Polls {
    /// The connection where something came last.
    #[inline(always)]
    pub(super) const fn hot(&self) -> usize {
        self.hot
    }

    /// Something is to come from here.
    pub(super) const fn expect_at(&mut self, index: usize) {
        self.hot = index;
    }

    /// Polls that have found nothing.
    #[inline(always)]
    pub(super) const fn idle(&self) -> u32 {
        self.idle
    }

    /// How many they will be if this one finds nothing.
    #[inline(always)]
    pub(super) const fn next_idle(&self) -> u32 {
        self.idle.wrapping_add(1)
    }

    /// Whether the poll of this number looks about.
    #[inline(always)]
    pub(super) const fn scans(&self, idle: u32) -> bool {
        idle & self.poll_mask == 0
    }

    /// The poll of this number has found nothing.
    #[inline(always)]
    pub(super) fn has_found_none(&mut self, idle: u32) {
        debug_assert_eq!(idle, self.next_idle(), "polls are counted one by one");
        self.idle = idle;
    }

    /// A poll has found something, or the endpoint is not to sleep soon.
    #[inline(always)]
    pub(super) const fn has_found(&mut self) {
        self.idle_before = self.idle;
    }

    /// Polls in a row that have found nothing.
    #[inline(always)]
    pub(super) const fn empty(&self) -> u32 {
        self.idle.wrapping_sub(self.idle_before)
    }

    /// Sets the mask: one of `poll_mask` + 1 polls scans other connections.
    #[inline(always)]
    pub(super) fn set_poll_mask(&mut self, poll_mask: u32) {
        debug_assert!((poll_mask + 1).is_power_of_two(), "the bits are the lowest ones");
        self.poll_mask = poll_mask;
    }

    /// Each poll looks about for now.
    #[inline(always)]
    pub(super) const fn set_poll_rate(&mut self) {
        self.poll_mask = 0;
    }

    /// The next connection in turn, of `count`.
    #[inline]
    pub(super) fn next_turn(&mut self, count: usize) -> usize {
        debug_assert!(count > 0, "there is one");
        self.turn = if self.turn + 1 >= count { 0 } else { self.turn + 1 };
        debug_assert!(self.turn < count, "each has its turn");
        self.turn
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: ENV-5
    #[test]
    fn each_connection_has_its_turn_even_when_there_are_fewer_than_before() {
        let mut polls = Polls::default();
        let turns: Vec<_> = (0..6).map(|_| polls.next_turn(3)).collect();
        assert_eq!(turns, [1, 2, 0, 1, 2, 0]);
        polls.next_turn(9);
        polls.next_turn(9);
        assert_eq!([2, 2, 2].map(|count| polls.next_turn(count)), [0, 1, 0]);
    }

    // spec: ENV-5
    #[test]
    fn every_nth_idle_poll_scans_also_when_the_counter_wraps() {
        let mut polls = Polls { idle: u32::MAX - 5, ..Polls::default() };
        polls.has_found();
        polls.set_poll_mask(3);
        let about = |_| {
            let idle = polls.next_idle();
            polls.has_found_none(idle);
            polls.scans(idle)
        };
        assert_eq!((0..12).map(about).filter(|looks| *looks).count(), 3);
        assert_eq!(polls.empty(), 12);
    }
}

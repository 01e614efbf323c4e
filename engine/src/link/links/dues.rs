//! When the first of many has something to do: a tournament of times.

/// A time for each index.
#[derive(Debug, Default)]
pub(super) struct Dues {
    /// The earlier one of each two, the earliest of all at 1: below `at` stand those at `2 * at`
    /// and behind it. The latter half are the times themselves.
    times: Vec<u64>,
}

impl Dues {
    /// The earliest time there is.
    pub(super) fn first(&self) -> u64 {
        self.times.get(1).copied().unwrap_or(u64::MAX)
    }

    /// How many indices there is room for.
    fn room(&self) -> usize {
        self.times.len() / 2
    }

    /// An index's time is this one from here on; before the first, it has none.
    pub(super) fn set(&mut self, index: usize, time: u64) {
        if index >= self.room() {
            self.grow(index + 1);
        }
        let mut at = self.room() + index;
        let (own, mut time) = (at, time);
        while self.times[at] != time {
            self.times[at] = time;
            if at > 1 {
                time = time.min(self.times[at ^ 1]);
                at /= 2;
            }
        }
        debug_assert!(self.first() <= self.times[own], "the first is no later than any");
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let (old, room) = (self.room(), count.next_power_of_two());
        assert!(room > old, "it grows");
        let mut times = vec![u64::MAX; 2 * room];
        times[room..room + old].copy_from_slice(&self.times[old..]);
        for at in (1..room).rev() {
            times[at] = times[2 * at].min(times[2 * at + 1]);
        }
        self.times = times;
        assert_eq!(self.room(), room, "half of them are the times themselves");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_time_is_the_least_of_all(
            steps in prop::collection::vec(
                (0..40_usize, prop_oneof![0..9_u64, Just(u64::MAX)]),
                1..200
            )
        ) {
            let (mut dues, mut model) = (Dues::default(), vec![u64::MAX; 40]);
            prop_assert_eq!(dues.first(), u64::MAX);
            for (index, time) in steps {
                dues.set(index, time);
                model[index] = time;
                prop_assert_eq!(Some(dues.first()), model.iter().copied().min());
            }
        }
    }
}

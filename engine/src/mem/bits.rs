//! Bits in shared memory that tell which of many things are used. The lowest free one is given
//! first, so that the memory of things is used from its beginning.
use super::map::Mapping;
use crate::sync::{AtomicU64, Ordering};

/// A number of bits, a multiple of 64, at a place of a mapping.
pub(crate) struct Bits<'a> {
    mapping: &'a Mapping,
    at: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(mapping: &'a Mapping, at: u64, count: u32) -> Self {
        assert!(count.is_multiple_of(64), "bits fill their words");
        Self { mapping, at, count }
    }

    fn word(&self, number: u32) -> &AtomicU64 {
        self.mapping.word(self.at + 8 * u64::from(number))
    }

    /// Sets the lowest bit that is not set, and tells its number. None if all are set.
    pub(crate) fn take(&self) -> Option<u32> {
        (0..self.count / 64).find_map(|number| {
            let word = self.word(number);
            // Relaxed: a look; the exchange decides.
            let mut found = word.load(Ordering::Relaxed);
            while found != u64::MAX {
                let lowest = found.trailing_ones();
                // SOCK-A5: all that the last user did.
                found = word.fetch_or(1 << lowest, Ordering::Acquire);
                if found >> lowest & 1 == 0 {
                    return Some(64 * number + lowest);
                }
            }
            None
        })
    }

    /// The next number at this one or behind it that is given, or the first one. None if none is.
    pub(crate) fn next(&self, at: u32) -> Option<u32> {
        let words = self.count / 64;
        let first = at / 64 % words;
        (0..=words).find_map(|i| {
            // Relaxed: a look.
            let found = self.word((first + i) % words).load(Ordering::Relaxed);
            let left = if i == 0 { found & (u64::MAX << (at % 64)) } else { found };
            (left != 0).then(|| 64 * ((first + i) % words) + left.trailing_zeros())
        })
    }

    /// Clears a bit.
    pub(crate) fn give_back(&self, number: u32) {
        assert!(number < self.count, "the number was given");
        // SOCK-R5: all use of the thing precedes its next use.
        self.word(number / 64).fetch_and(!(1 << (number % 64)), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    #[test]
    fn the_lowest_free_number_is_given_and_each_one_once() {
        let mapping = Mapping::of_words(vec![0; 4]);
        let bits = Bits::new(&mapping, 8, 128);
        let all: Vec<u32> = std::iter::from_fn(|| bits.take()).collect();
        assert_eq!(all, (0..128).collect::<Vec<_>>());
        for number in [100, 3, 64] {
            bits.give_back(number);
        }
        assert_eq!([bits.take(), bits.take(), bits.take()], [Some(3), Some(64), Some(100)]);
        assert_eq!(bits.take(), None);
        // Relaxed: nobody else writes them.
        let beside = [0, 24].map(|at| mapping.word(at).load(Ordering::Relaxed));
        assert_eq!(beside, [0, 0], "words beside the bits are not touched");
    }

    #[test]
    fn the_given_numbers_are_found_in_turn() {
        let mapping = Mapping::of_words(vec![0b1001, 0, 1 << 63]);
        let bits = Bits::new(&mapping, 0, 192);
        let next = |at| bits.next(at).unwrap();
        assert_eq!([next(0), next(1), next(4), next(191), next(192)], [0, 3, 191, 191, 0]);
        let mapping = Mapping::of_words(vec![0; 3]);
        assert_eq!(Bits::new(&mapping, 0, 192).next(70), None);
    }

    #[test]
    fn threads_never_have_one_number_at_a_time() {
        let mapping = Arc::new(Mapping::of_words(vec![0; 2]));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mapping = mapping.clone();
                std::thread::spawn(move || {
                    let bits = Bits::new(&mapping, 0, 128);
                    let mut taken = BTreeSet::new();
                    for round in 0..20_000 {
                        if round % 3 == 2 {
                            bits.give_back(taken.pop_first().expect("more were taken"));
                        } else if taken.len() < 20 {
                            assert!(taken.insert(bits.take().expect("there are enough")));
                        }
                    }
                    taken
                })
            })
            .collect();
        let all: Vec<u32> = threads.into_iter().flat_map(|it| it.join().unwrap()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}

//! Operations that were posted to remotes and have not completed, and their number for each remote.
use super::REMOTES_MAX;
use super::remote_id::RemoteId;
use super::slots::Slots;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Something that was posted to a remote.
pub(super) trait Entry {
    fn to(&self) -> RemoteId;
}

/// Operations under way, by key, and how many there are to each remote: a fence reads that count.
#[derive(Debug)]
pub(super) struct Ledger<T> {
    entries: Slots<T>,
    /// By the remotes' places.
    counts: Box<[u32; REMOTES_MAX]>,
}

impl<T: Entry> Ledger<T> {
    pub(super) fn new() -> Self {
        Self { entries: Slots::new(), counts: crate::heap::array(|_| 0) }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none of those to a remote, whose number is not stale.
    pub(super) fn has_none(&self, to: RemoteId) -> bool {
        self.counts[to.index() % REMOTES_MAX] == 0
    }

    /// The key of the next one.
    #[inline]
    pub(super) fn vacant_key(&self) -> usize {
        self.entries.vacant_key()
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, entry: T) -> usize {
        let count = &mut self.counts[entry.to().index() % REMOTES_MAX];
        *count += 1;
        debug_assert!(*count as usize <= self.entries.len() + 1, "each is there");
        self.entries.insert(entry)
    }

    /// Drops one that is there.
    #[inline(always)]
    pub(super) fn free(&mut self, key: usize) {
        let count = &mut self.counts[self.entries[key].to().index() % REMOTES_MAX];
        debug_assert!(*count > 0, "each was counted");
        *count -= 1;
        self.entries.free(key);
    }

    /// Drops all to a remote, each after it was looked at.
    pub(super) fn free_all(&mut self, to: RemoteId, mut look: impl FnMut(&T)) {
        if self.has_none(to) {
            return;
        }
        let all = self.entries.iter().filter(|(_, it)| it.to() == to);
        let keys: Vec<_> = all.inspect(|(_, it)| look(it)).map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.free(key));
        debug_assert!(self.has_none(to), "what is counted is what is there");
    }

    #[inline(always)]
    pub(super) fn get(&self, key: usize) -> Option<&T> {
        self.entries.get(key)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.entries.get_mut(key)
    }

    pub(super) fn contains(&self, key: usize) -> bool {
        self.entries.get(key).is_some()
    }
}

impl<T> Index<usize> for Ledger<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, key: usize) -> &T {
        &self.entries[key]
    }
}

impl<T> IndexMut<usize> for Ledger<T> {
    #[inline(always)]
    fn index_mut(&mut self, key: usize) -> &mut T {
        &mut self.entries[key]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Posted(RemoteId, usize);

    impl Entry for Posted {
        fn to(&self) -> RemoteId {
            self.0
        }
    }

    proptest! {
        /// The counts equal the numbers of entries.
        #[test]
        fn the_ledger_lists_unfinished_operations_of_each_remote(
            steps in prop::collection::vec(
                (0..4_u8, 0..5_usize, any::<prop::sample::Index>()),
                1..99
            )
        ) {
            let remotes = [3, 0, 7, 1, 2].map(|place| RemoteId::new(1, place));
            let (mut ledger, mut model) = (Ledger::<Posted>::new(), Vec::<(usize, Posted)>::new());
            for (number, (what, to, which)) in steps.into_iter().enumerate() {
                let to = remotes[to];
                match what {
                    0 if !model.is_empty() => {
                        let (key, posted) = model.swap_remove(which.index(model.len()));
                        prop_assert_eq!(ledger[key], posted);
                        ledger.free(key);
                    }
                    1 => {
                        let mut gone = Vec::<Posted>::new();
                        ledger.free_all(to, |posted| gone.push(*posted));
                        let own = model.iter().filter(|(_, it)| it.to() == to);
                        prop_assert_eq!(gone.len(), own.count());
                        prop_assert!(gone.iter().all(|it| it.to() == to));
                        model.retain(|(_, it)| it.to() != to);
                    }
                    _ => {
                        let (key, posted) = (ledger.vacant_key(), Posted(to, number));
                        prop_assert_eq!(ledger.insert(posted), key);
                        model.push((key, posted));
                    }
                }
                prop_assert_eq!(ledger.len(), model.len());
                for to in &remotes {
                    let none = model.iter().all(|(_, it)| it.to() != *to);
                    prop_assert_eq!(ledger.has_none(*to), none);
                }
            }
        }
    }
}

//! Lists by key: of each key that is there, what has it, oldest first.
//!
//! ```text
//!   bucket -> first of key a -> first of key b        `other`: one for each key of the bucket
//!                 |                  |
//!                next               next              `next`: younger ones of the same key
//!                 v                  v
//!               last               last               `prev` of the first one is the last one
//! ```
//!
//! So the way to a key is as long as the number of keys in its bucket, however many entries one key
//! has. Only the owner of the lists knows the content of a slot and compares keys.
//!
//! A [`Ring`] is a plain list, from which a slot can be taken wherever it stands.
use alloc::boxed::Box;

/// No slot: slots are counted from one.
pub(super) const NONE: u32 = 0;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The next younger one of the same key.
    next: u32,
    /// The next older one; of the oldest, the youngest.
    prev: u32,
    /// Of the oldest, the oldest of the bucket's next key.
    other: u32,
}

/// Lists of slots. A slot is in one list at most.
#[derive(Debug)]
pub(super) struct Lists {
    nodes: Box<[Node]>,
    buckets: Box<[u32]>,
    shift: u32,
}

impl Lists {
    /// Empty lists of `slots` slots in at least `buckets` buckets, and a further one. Allocates.
    pub(super) fn new(slots: u32, buckets: u32) -> Self {
        let count = (buckets as usize).next_power_of_two().max(2);
        Self {
            nodes: alloc::vec![Node::default(); slots as usize + 1].into_boxed_slice(),
            buckets: alloc::vec![NONE; count + 1].into_boxed_slice(),
            shift: u64::BITS - count.trailing_zeros(),
        }
    }

    /// Makes room for `slots` slots, in at least `buckets` buckets. Allocates. The owner gives the
    /// bucket of each key's oldest slot, and is told the slots that stand there now.
    // spec: MATCH-16
    pub(super) fn grow(
        &mut self,
        (slots, buckets): (u32, u32),
        mut place: impl FnMut(&Self, u32) -> usize,
    ) {
        let mut longer = Self::new(slots, buckets);
        longer.nodes[..self.nodes.len()].copy_from_slice(&self.nodes);
        for bucket in 0..self.buckets.len() {
            let mut head = self.buckets[bucket];
            while head != NONE {
                let other = self.nodes[head as usize].other;
                let place = place(&longer, head);
                longer.nodes[head as usize].other = longer.buckets[place];
                longer.buckets[place] = head;
                head = other;
            }
        }
        *self = longer;
    }

    /// The bucket of a hash, whose upper bits are the good ones.
    #[inline(always)]
    pub(super) const fn bucket(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// The bucket that no hash gives.
    #[inline(always)]
    pub(super) const fn further(&self) -> usize {
        self.buckets.len() - 1
    }

    /// The oldest of a key, of which `same` says whether a slot has it.
    // spec: MATCH-18
    #[inline(always)]
    pub(super) fn first(&self, bucket: usize, same: impl Fn(u32) -> bool) -> u32 {
        let mut head = self.buckets[bucket];
        while head != NONE && !same(head) {
            head = self.nodes[head as usize].other;
        }
        head
    }

    /// The next younger one of the same key.
    #[inline(always)]
    pub(super) fn after(&self, slot: u32) -> u32 {
        self.nodes[slot as usize].next
    }

    /// Adds a slot as the youngest of its key, and returns the oldest, if it was there.
    #[inline(always)]
    pub(super) fn append(&mut self, bucket: usize, slot: u32, same: impl Fn(u32) -> bool) -> u32 {
        let head = self.first(bucket, same);
        if head == NONE {
            let other = self.buckets[bucket];
            self.nodes[slot as usize] = Node { next: NONE, prev: slot, other };
            self.buckets[bucket] = slot;
            return NONE;
        }
        self.append_behind(head, slot);
        head
    }

    /// Appends a slot where the oldest of its key is known.
    #[inline(always)]
    pub(super) fn append_behind(&mut self, head: u32, slot: u32) {
        let last = self.nodes[head as usize].prev;
        debug_assert!(last != NONE, "the oldest of a key knows the youngest");
        debug_assert!(self.nodes[last as usize].next == NONE, "nothing is younger than that");
        self.nodes[last as usize].next = slot;
        self.nodes[slot as usize] = Node { next: NONE, prev: last, other: NONE };
        self.nodes[head as usize].prev = slot;
    }

    /// Takes a slot out of its list, wherever it stands there.
    #[inline(always)]
    pub(super) fn remove(&mut self, bucket: usize, slot: u32) {
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = self.succeed(slot);
        } else {
            self.remove_further(bucket, slot);
        }
    }

    /// Removes a slot that is not the bucket's first.
    #[inline(never)]
    fn remove_further(&mut self, bucket: usize, slot: u32) {
        let Node { next, prev, .. } = self.nodes[slot as usize];
        // The youngest one has no successor, so this tells the oldest one, too.
        if self.nodes[prev as usize].next != slot {
            let before = self.first(bucket, |head| self.nodes[head as usize].other == slot);
            debug_assert!(before != NONE, "the oldest of a key stands in its bucket");
            self.nodes[before as usize].other = self.succeed(slot);
            return;
        }
        self.nodes[prev as usize].next = next;
        let knows = match next {
            NONE => self.first(bucket, |head| self.nodes[head as usize].prev == slot),
            next => next,
        };
        debug_assert!(self.nodes[knows as usize].prev == slot, "what stands in a list is known");
        self.nodes[knows as usize].prev = prev;
    }

    /// The successor of a key's oldest slot: the next one of the key, or the bucket's next key.
    #[inline(always)]
    fn succeed(&mut self, slot: u32) -> u32 {
        let Node { next, prev, other } = self.nodes[slot as usize];
        if next == NONE {
            return other;
        }
        let node = &mut self.nodes[next as usize];
        (node.prev, node.other) = (prev, other);
        next
    }
}

/// Before the first and behind the last of a list stands one of the two ends, which hold nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    next: u32,
    prev: u32,
}

/// Two lists of slots, in the order in which they were added. A slot is in one of them at most.
#[derive(Debug)]
pub(super) struct Ring {
    links: Box<[Link]>,
}

impl Ring {
    /// Two empty lists; allocates.
    pub(super) fn new(slots: u32) -> Self {
        let mut links = alloc::vec![Link::default(); slots as usize + 2].into_boxed_slice();
        for end in [NONE, slots + 1] {
            links[end as usize] = Link { next: end, prev: end };
        }
        Self { links }
    }

    /// Makes room for `slots` slots. Allocates.
    pub(super) fn grow(&mut self, slots: u32) {
        let other_end = self.other_end();
        let Link { next, prev } = self.links[other_end as usize];
        let mut longer = Self::new(slots);
        let end = longer.other_end();
        longer.links[..other_end as usize].copy_from_slice(&self.links[..other_end as usize]);
        if next != other_end {
            longer.links[end as usize] = Link { next, prev };
            longer.links[next as usize].prev = end;
            longer.links[prev as usize].next = end;
        }
        *self = longer;
    }

    /// The end of the one list.
    pub(super) const fn end(&self) -> u32 {
        NONE
    }

    /// The end of the other one.
    pub(super) const fn other_end(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    /// Adds a slot to the list of this end.
    #[inline(always)]
    pub(super) fn append(&mut self, end: u32, slot: u32) {
        let last = self.links[end as usize].prev;
        debug_assert!(self.links[last as usize].next == end, "a list ends where it begins");
        self.links[last as usize].next = slot;
        self.links[slot as usize] = Link { next: end, prev: last };
        self.links[end as usize].prev = slot;
    }

    /// Takes a slot out of its list.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: u32) {
        let Link { next, prev } = self.links[slot as usize];
        debug_assert!(self.links[prev as usize].next == slot, "the one before leads here");
        debug_assert!(self.links[next as usize].prev == slot, "the one behind leads back");
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
    }

    /// The slot behind one, the first one behind an end, or the end.
    pub(super) fn after(&self, slot: u32) -> u32 {
        self.links[slot as usize].next
    }

    /// The slots of the list of this end.
    pub(super) fn iter(&self, end: u32) -> impl Iterator<Item = u32> {
        let next = move |slot: &u32| Some(self.after(*slot));
        core::iter::successors(next(&end), next).take_while(move |slot| *slot != end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::cell::Cell;

    const BUCKET: usize = 0;

    /// Slots of one bucket whose keys are their remainders; counts the slots that are looked at.
    struct Counted {
        lists: Lists,
        keys: u32,
        looks: Cell<u32>,
    }

    impl Counted {
        fn new(slots: u32, keys: u32) -> Self {
            let mut counted = Self { lists: Lists::new(slots, 1), keys, looks: Cell::new(0) };
            for slot in 1..=slots {
                counted.lists.append(BUCKET, slot, |other| other % keys == slot % keys);
            }
            counted
        }

        fn first(&self, key: u32) -> u32 {
            self.looks.set(0);
            self.lists.first(BUCKET, |slot| {
                self.looks.set(self.looks.get() + 1);
                slot % self.keys == key
            })
        }

        fn list(&self, key: u32) -> Vec<u32> {
            let next = |slot: &u32| Some(self.lists.after(*slot)).filter(|slot| *slot != NONE);
            let first = Some(self.first(key)).filter(|slot| *slot != NONE);
            core::iter::successors(first, next).collect()
        }
    }

    // spec: MATCH-18
    #[test]
    fn a_key_is_as_far_as_there_are_keys() {
        for (slots, keys) in [(1000, 1), (1000, 2), (999, 3), (12, 12)] {
            let counted = Counted::new(slots, keys);
            for key in 0..keys {
                assert!(counted.first(key) != NONE && counted.looks.get() <= keys);
                assert_eq!(counted.list(key).len(), (slots / keys) as usize);
                assert!(counted.list(key).is_sorted(), "oldest first");
            }
            assert_eq!(counted.first(keys), NONE, "no such key");
            assert_eq!(counted.looks.get(), keys);
        }
    }

    // spec: MATCH-18
    #[test]
    fn any_slot_can_be_taken_out() {
        for start in 0..60 {
            let mut counted = Counted::new(60, 4);
            // 7 and 60 have no common factor, so this meets every slot once.
            for by in 0..60 {
                let slot = (start + by * 7) % 60 + 1;
                let mut expected = counted.list(slot % 4);
                expected.retain(|other| *other != slot);
                counted.lists.remove(BUCKET, slot);
                assert_eq!(counted.list(slot % 4), expected);
            }
            assert!((0..4).all(|key| counted.first(key) == NONE));
        }
    }
}

//! A table of values by key, like a slab. It drops a value in place instead of moving it out first:
//! for long values that live shortly, that move costs more than all the rest.
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

#[derive(Debug)]
struct Slot<T> {
    value: Option<T>,
    /// Of a free one, the next that is free.
    next: usize,
}

/// Values by key. A key that has become free is the next one to be given.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// The key of the next value.
    next: usize,
    len: usize,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), next: 0, len: 0 }
    }

    /// How many values there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The key that the next value gets.
    #[inline(always)]
    pub(super) const fn vacant_key(&self) -> usize {
        self.next
    }

    /// Keeps a value.
    #[inline(always)]
    pub(super) fn insert(&mut self, value: T) -> usize {
        let key = self.next;
        if key == self.slots.len() {
            self.grow();
        }
        let slot = &mut self.slots[key];
        debug_assert!(slot.value.is_none(), "the next key is free");
        slot.value = Some(value);
        self.next = slot.next;
        self.len += 1;
        debug_assert!(self.len <= self.slots.len(), "each has a place");
        key
    }

    /// An empty table with room for `count` values.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { slots: Vec::with_capacity(count), next: 0, len: 0 }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.push(Slot { value: None, next: self.slots.len() + 1 });
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.slots.get_mut(key)?.value.as_mut()
    }

    /// Takes a value out that is there.
    #[inline]
    pub(super) fn take(&mut self, key: usize) -> T {
        let value = self.slots[key].value.take();
        self.make_vacant(key);
        value.expect("it is there")
    }

    /// Drops a value that is there.
    #[inline(always)]
    pub(super) fn free(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        debug_assert!(slot.value.is_some(), "it is there");
        slot.value = None;
        self.make_vacant(key);
    }

    #[inline(always)]
    fn make_vacant(&mut self, key: usize) {
        self.slots[key].next = self.next;
        self.next = key;
        debug_assert!(self.len > 0, "as many as there are places that are taken");
        self.len -= 1;
    }

    /// Places there are, taken or not.
    pub(super) const fn places(&self) -> usize {
        self.slots.len()
    }

    #[inline(always)]
    pub(super) fn get(&self, key: usize) -> Option<&T> {
        self.slots.get(key)?.value.as_ref()
    }

    /// All of them, with their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(key, slot)| Some((key, slot.value.as_ref()?)))
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, key: usize) -> &T {
        self.slots[key].value.as_ref().expect("it is there")
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    #[inline(always)]
    fn index_mut(&mut self, key: usize) -> &mut T {
        self.get_mut(key).expect("it is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slab::Slab;

    proptest! {
        /// It does what a slab does.
        #[test]
        fn keys_and_values_are_those_of_a_slab(
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..200)
        ) {
            let (mut slots, mut slab) = (Slots::new(), Slab::new());
            for (number, (comes, which)) in steps.into_iter().enumerate() {
                if comes || slab.is_empty() {
                    prop_assert_eq!(slots.vacant_key(), slab.vacant_key());
                    prop_assert_eq!(slots.insert(number), slab.insert(number));
                } else {
                    let key = slab.iter().nth(which.index(slab.len())).expect("there is one").0;
                    let value = slab.remove(key);
                    prop_assert_eq!(slots[key], value);
                    if number % 2 == 0 {
                        slots.free(key);
                    } else {
                        prop_assert_eq!(slots.take(key), value);
                    }
                    prop_assert_eq!(slots.get_mut(key), None);
                }
                prop_assert_eq!(slots.len(), slab.len());
                let all = slab.iter().map(|(key, value)| (key, *value));
                let ours = slots.iter().map(|(key, value)| (key, *value));
                prop_assert!(ours.eq(all));
            }
        }
    }
}

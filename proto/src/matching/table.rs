//! Slots with names that are never used twice.
use super::lists::NONE;
use alloc::boxed::Box;

/// Names what is in a slot: the serial number is that of no other thing, before or after.
// spec: MATCH-15
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id {
    pub(super) serial: u64,
    pub(super) slot: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    /// 0 in a free slot.
    serial: u64,
    /// The next free slot.
    next: u32,
    value: T,
}

/// A bounded number of slots, counted from one.
#[derive(Debug)]
pub(super) struct Table<T> {
    entries: Box<[Entry<T>]>,
    free: u32,
    len: u32,
    serial: u64,
}

impl<T: Copy + Default> Table<T> {
    /// A table of `slots` free slots; allocates.
    pub(super) fn new(slots: u32) -> Self {
        let free = Entry { serial: 0, next: NONE, value: T::default() };
        let mut entries = alloc::vec![free; slots as usize + 1].into_boxed_slice();
        for slot in 1..slots {
            entries[slot as usize].next = slot + 1;
        }
        Self { entries, free: slots.min(1), len: 0, serial: 0 }
    }

    /// Asserts what holds between two steps.
    #[inline(always)]
    fn check(&self) {
        debug_assert!(self.len <= self.slots(), "no more is taken than there is");
        let is_full = self.len == self.slots();
        debug_assert!((self.free == NONE) == is_full, "what is not taken is found free");
        debug_assert!(self.free == NONE || !self.is_taken(self.free), "what is free is not taken");
        debug_assert!(self.serial >= u64::from(self.len), "each has a name of its own");
    }

    /// Grows the table to `slots` slots. Allocates. Taken slots keep their content and their names.
    // spec: MATCH-15, MATCH-16
    pub(super) fn grow(&mut self, slots: u32) {
        let before = self.slots();
        assert!(slots >= before, "what waits stays");
        let free = Entry { serial: 0, next: NONE, value: T::default() };
        let mut longer = alloc::vec![free; slots as usize + 1].into_boxed_slice();
        longer[..self.entries.len()].copy_from_slice(&self.entries);
        for slot in before + 1..=slots {
            longer[slot as usize].next = if slot < slots { slot + 1 } else { self.free };
        }
        if slots > before {
            self.free = before + 1;
        }
        self.entries = longer;
        self.check();
    }

    /// Slots taken.
    #[inline(always)]
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Takes a free slot. `None` where there is none.
    #[inline(always)]
    pub(super) fn insert(&mut self, value: T) -> Option<Id> {
        let slot = self.free;
        if slot == NONE {
            return None;
        }
        self.serial += 1;
        let entry = &mut self.entries[slot as usize];
        self.free = entry.next;
        (entry.serial, entry.value) = (self.serial, value);
        self.len += 1;
        self.check();
        Some(Id { serial: self.serial, slot })
    }

    /// Frees a slot that is taken; what was in it can be looked at until it is taken again.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: u32) -> &T {
        self.check();
        let entry = &mut self.entries[slot as usize];
        debug_assert!(entry.serial != 0, "what is freed was taken");
        (entry.serial, entry.next) = (0, self.free);
        self.free = slot;
        self.len -= 1;
        &entry.value
    }

    /// Changes what is in a slot that is taken, and frees the slot if the second thing that comes
    /// back says so: as [`Table::remove`] does.
    #[inline(always)]
    pub(super) fn change<R>(&mut self, slot: u32, f: impl FnOnce(Id, &mut T) -> (R, bool)) -> R {
        self.check();
        let entry = &mut self.entries[slot as usize];
        debug_assert!(entry.serial != 0, "what is changed is there");
        let (result, goes) = f(Id { serial: entry.serial, slot }, &mut entry.value);
        if goes {
            (entry.serial, entry.next) = (0, self.free);
            self.free = slot;
            self.len -= 1;
        }
        result
    }

    /// The content of a slot that is taken.
    #[inline(always)]
    pub(super) fn at(&self, slot: u32) -> &T {
        &self.entries[slot as usize].value
    }

    /// The content of a slot that is taken, to be changed.
    #[inline(always)]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut T {
        &mut self.entries[slot as usize].value
    }

    /// The name of what is in a slot that is taken.
    #[inline(always)]
    pub(super) fn id(&self, slot: u32) -> Id {
        Id { serial: self.entries[slot as usize].serial, slot }
    }

    /// Whether that is still there.
    // spec: MATCH-15
    pub(super) fn has(&self, id: Id) -> bool {
        let entry = self.entries.get(id.slot as usize);
        id.serial != 0 && entry.is_some_and(|entry| entry.serial == id.serial)
    }

    /// All slots that are taken, in no certain order.
    pub(super) fn taken(&self) -> impl Iterator<Item = (Id, &T)> {
        let entries = self.entries.iter().enumerate().filter(|(_, entry)| entry.serial != 0);
        entries.map(|(slot, entry)| (Id { serial: entry.serial, slot: slot as u32 }, &entry.value))
    }

    /// Slots that there are, taken or not.
    #[inline(always)]
    pub(super) const fn slots(&self) -> u32 {
        (self.entries.len() - 1) as u32
    }

    /// Whether a slot is taken.
    pub(super) fn is_taken(&self, slot: u32) -> bool {
        self.entries[slot as usize].serial != 0
    }
}

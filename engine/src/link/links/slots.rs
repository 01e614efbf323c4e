//! The slots of links by index, and the time at which the first of them has something to do.
use super::dues::Dues;
use super::{LINKS_MAX, Slot};
use crate::link::link_end::LinkEnd;
use std::ops::Index;

/// Slots by index. When they have something to do is looked at where it may have changed only, so
/// links that are idle cost nothing.
#[derive(Debug, Default)]
pub(super) struct Slots {
    entries: Vec<Entry>,
    dues: Dues,
    /// Each of those that may have changed since that was entered there.
    changed: Vec<usize>,
}

#[derive(Debug)]
struct Entry {
    slot: Slot,
    is_changed: bool,
}

impl Entry {
    /// To be changed.
    #[inline]
    fn change(&mut self, index: usize, changed: &mut Vec<usize>) -> &mut Slot {
        if !self.is_changed {
            self.is_changed = true;
            changed.push(index);
        }
        &mut self.slot
    }
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn push(&mut self, slot: Slot) {
        assert!(self.entries.len() < LINKS_MAX, "a port has no more links");
        self.entries.push(Entry { slot, is_changed: true });
        self.changed.push(self.entries.len() - 1);
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Slot> {
        self.entries.get(index).map(|entry| &entry.slot)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        let Self { entries, changed, .. } = self;
        entries.get_mut(index).map(|entry| entry.change(index, changed))
    }

    /// The link at an index, if it is open.
    #[inline]
    pub(super) fn open_mut(&mut self, index: usize) -> Option<&mut LinkEnd> {
        match self.get_mut(index) {
            Some(Slot::Open(link)) => Some(link),
            _ => None,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.entries.iter().map(|entry| &entry.slot)
    }

    /// All links that are open.
    pub(super) fn all_open_mut(&mut self) -> impl Iterator<Item = &mut LinkEnd> {
        let Self { entries, changed, .. } = self;
        entries.iter_mut().enumerate().filter_map(|(index, entry)| {
            match entry.change(index, changed) {
                Slot::Open(link) => Some(&mut **link),
                _ => None,
            }
        })
    }

    /// When the first of them has something to do though nothing comes.
    pub(super) fn deadline(&mut self) -> u64 {
        let Self { entries, dues, changed } = self;
        let is_changed = |entry: &&Entry| entry.is_changed;
        debug_assert_eq!(entries.iter().filter(is_changed).count(), changed.len(), "each once");
        for index in changed.drain(..) {
            let entry = &mut entries[index];
            entry.is_changed = false;
            dues.set(index, due(&entry.slot));
        }
        debug_assert_eq!(self.dues.first(), self.least(), "as if all were looked at");
        self.dues.first()
    }

    /// The next deadline, found by a look at all of them.
    pub(super) fn least(&self) -> u64 {
        self.iter().map(due).min().unwrap_or(u64::MAX)
    }

    /// How many are looked at to tell the next deadline.
    #[cfg(test)]
    pub(super) fn changed(&self) -> usize {
        self.changed.len()
    }
}

impl Index<usize> for Slots {
    type Output = Slot;

    fn index(&self, index: usize) -> &Slot {
        &self.entries[index].slot
    }
}

fn due(slot: &Slot) -> u64 {
    match slot {
        Slot::Open(link) => link.deadline(),
        Slot::Asked(asked) => asked.opener.deadline(),
        _ => u64::MAX,
    }
}

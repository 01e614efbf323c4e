//! The receives that wait for messages.
use super::lists::{Lists, NONE};
use super::masks::{Label, Mask, Masks, ODD};
use super::table::{Id, Table};
use super::{Place, Receive, ReceiveId};
use crate::limits::MASKS_MAX;

/// A receive that waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Posted {
    pub(super) handle: u64,
    label: Label,
    mask: Mask,
    /// Number of the mask, or [`ODD`].
    number: u32,
    /// Where its list is; only said of one that stands in a list.
    bucket: u32,
    /// Where the next message goes, and how many bytes it may have.
    offset: u64,
    left: u64,
    /// Bytes that must be left for it to go on; 0 of one that takes a single message.
    least: u64,
}

impl Posted {
    /// Whether it stands in the list of this label: all that have no number stand in one.
    #[inline(always)]
    const fn is_like(&self, mask: Mask, number: u32, label: Label) -> bool {
        self.number == number && (mask.alike(label, self.label) || number == ODD as u32)
    }

    /// The source of the messages that it accepts, if it names one.
    pub(super) const fn source(&self) -> Option<u32> {
        self.label.source()
    }

    #[inline(always)]
    pub(super) const fn accepts(&self, label: Label) -> bool {
        self.mask.alike(self.label, label)
    }

    /// Puts a message of `len` bytes into the buffer.
    // spec: MATCH-10, MATCH-11
    #[inline(always)]
    pub(super) fn fill(&mut self, id: Id, len: u64) -> Place {
        let taken = if len < self.left { len } else { self.left };
        let offset = self.offset;
        self.offset += taken;
        self.left -= taken;
        let released = self.least == 0 || self.left < self.least;
        Place { id: ReceiveId(id), handle: self.handle, offset, len: taken, released }
    }
}

/// The table of receives.
#[derive(Debug)]
pub(super) struct Receives {
    table: Table<Posted>,
    lists: Lists,
    /// The only receive there is stands here and in no list: what most programs post, they wait
    /// for. It is put into its list when the next one comes.
    lone: u32,
    /// The oldest of the receives with the pattern of the one that was posted last. It is set if
    /// there are several and all receives in lists have one mask. The next message is likely to go
    /// there.
    recent: u32,
    /// How many in lists have each mask; at last, how many have none of the table's.
    counts: [u32; MASKS_MAX + 1],
    /// A bit for each of these counts that is not 0.
    used: u32,
}

impl Receives {
    pub(super) fn new(slots: u32) -> Self {
        let (table, lists) = (Table::new(slots), Lists::new(slots, 2 * slots));
        Self { table, lists, lone: NONE, recent: NONE, counts: [0; MASKS_MAX + 1], used: 0 }
    }

    /// Makes room for `slots` receives. Allocates.
    // spec: MATCH-16
    pub(super) fn grow(&mut self, masks: &Masks, slots: u32) {
        self.table.grow(slots);
        let Self { table, lists, .. } = self;
        lists.grow((slots, 2 * slots), |lists, head| {
            let Posted { label, number, .. } = *table.at(head);
            let place = match number as usize {
                ODD => lists.further(),
                number => lists.bucket(masks.hash(number, label)),
            };
            let mut slot = head;
            while slot != NONE {
                table.at_mut(slot).bucket = place as u32;
                slot = lists.after(slot);
            }
            place
        });
    }

    /// Asserts what holds between two steps.
    #[inline(always)]
    pub(super) fn check(&self) {
        let (lone, recent) = (self.lone, self.recent);
        debug_assert!(lone == NONE || recent == NONE, "where one is alone, none is like it");
        debug_assert!(lone == NONE || self.table.len() == 1, "what is alone is all there is");
        debug_assert!(lone == NONE || self.table.is_taken(lone), "what is alone is there");
        debug_assert!(recent == NONE || self.table.is_taken(recent), "what is at hand is there");
        debug_assert!(recent == NONE || self.is_of_one_mask(), "none of another mask is older");
        if cfg!(debug_assertions) {
            let listed: u32 = self.counts.iter().sum();
            let all = listed + u32::from(lone != NONE);
            debug_assert!(all == self.table.len(), "each stands in a list, or alone");
            let is_marked = |number: usize| self.used >> number & 1 == 1;
            let mut counts = self.counts.iter().enumerate();
            let are_marked = counts.all(|(number, count)| is_marked(number) == (*count > 0));
            debug_assert!(are_marked, "a mask that is used has its bit");
        }
    }

    pub(super) const fn table(&self) -> &Table<Posted> {
        &self.table
    }

    /// Whether a receive has the mask of this number.
    pub(super) fn is_used(&self, number: usize) -> bool {
        self.counts[number] > 0
            || self.lone != NONE && self.table.at(self.lone).number == number as u32
    }

    /// Adds a receive as the youngest, of one message where `least` is 0. `None` without room.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        masks: &Masks,
        receive: &Receive,
        (mask, number): (Mask, usize),
        least: u64,
    ) -> Option<Id> {
        let Receive { pattern, capacity: left, handle } = *receive;
        let (label, number) = (pattern.label(), number as u32);
        let posted = Posted { handle, label, mask, number, bucket: 0, offset: 0, left, least };
        let id = self.table.insert(posted)?;
        if self.table.len() == 1 {
            self.lone = id.slot;
        } else if self.is_like_recent(mask, number, label) {
            self.append_to_recent(id.slot);
        } else {
            self.list(masks, id.slot);
        }
        Some(id)
    }

    #[inline(always)]
    fn is_like_recent(&self, mask: Mask, number: u32, label: Label) -> bool {
        if self.recent == NONE {
            return false;
        }
        let recent = self.table.at(self.recent);
        recent.number == number && mask.alike(label, recent.label)
    }

    /// Does the work of [`Receives::list`] for a receive with the recent pattern.
    #[inline(always)]
    fn append_to_recent(&mut self, slot: u32) {
        let Posted { bucket, number, .. } = *self.table.at(self.recent);
        self.table.at_mut(slot).bucket = bucket;
        self.counts[number as usize] += 1;
        self.lists.append_behind(self.recent, slot);
    }

    /// Puts a receive into its list; the one that has been alone so far is so no longer.
    #[inline(never)]
    fn list(&mut self, masks: &Masks, slot: u32) {
        if self.lone != NONE {
            let lone = core::mem::replace(&mut self.lone, NONE);
            self.append(masks, lone);
        }
        self.recent = self.append(masks, slot);
        if self.recent != NONE && !self.is_of_one_mask() {
            self.recent = NONE;
        }
    }

    /// Puts a receive into its list, and returns the oldest that was there.
    #[inline(always)]
    fn append(&mut self, masks: &Masks, slot: u32) -> u32 {
        let Posted { label, mask, number, bucket, .. } = self.table.at_mut(slot);
        let (label, mask, number) = (*label, *mask, *number);
        let place = match number as usize {
            ODD => self.lists.further(),
            number => self.lists.bucket(masks.hash(number, label)),
        };
        *bucket = place as u32;
        self.counts[number as usize] += 1;
        self.used |= 1 << number;
        let table = &self.table;
        let same = |slot| table.at(slot).is_like(mask, number, label);
        self.lists.append(place, slot, same)
    }

    /// The oldest receive that accepts a message, where that is known without a search.
    // spec: MATCH-3
    #[inline(always)]
    pub(super) fn at_hand(&self, label: Label) -> Option<u32> {
        // One of them is none.
        let slot = self.lone | self.recent;
        let accepts = slot != NONE && self.table.at(slot).accepts(label);
        accepts.then_some(slot)
    }

    /// Whether all that stand in lists have one of the table's masks, and the same.
    #[inline(always)]
    const fn is_of_one_mask(&self) -> bool {
        self.used & self.used.wrapping_sub(1) == 0 && self.used < 1 << ODD
    }

    /// The oldest receive in a list that accepts a message.
    // spec: MATCH-3
    #[inline(never)]
    pub(super) fn oldest(&self, masks: &Masks, label: Label) -> Option<u32> {
        let used = self.used;
        if self.is_of_one_mask() {
            // None at all, or one mask's.
            let number = used.trailing_zeros() as usize;
            let slot = if used == 0 { NONE } else { self.first(masks, number, label) };
            return (slot != NONE).then_some(slot);
        }
        self.oldest_of_several(masks, label)
    }

    #[inline(never)]
    fn oldest_of_several(&self, masks: &Masks, label: Label) -> Option<u32> {
        let (mut oldest, mut serial, mut used) = (NONE, u64::MAX, self.used);
        while used != 0 {
            let number = used.trailing_zeros() as usize;
            used &= used - 1;
            let slot = match number {
                ODD => self.first_odd(label),
                number => self.first(masks, number, label),
            };
            if slot != NONE && self.table.id(slot).serial < serial {
                (oldest, serial) = (slot, self.table.id(slot).serial);
            }
        }
        (oldest != NONE).then_some(oldest)
    }

    /// The oldest receive of a mask that accepts a message.
    #[inline(always)]
    fn first(&self, masks: &Masks, number: usize, label: Label) -> u32 {
        let (bucket, mask) = (self.lists.bucket(masks.hash(number, label)), masks.get(number));
        let number = number as u32;
        self.lists.first(bucket, |slot| self.table.at(slot).is_like(mask, number, label))
    }

    /// Those of odd masks stand in one list.
    #[cold]
    fn first_odd(&self, label: Label) -> u32 {
        let mut slot = self.lists.first(self.lists.further(), |_| true);
        while slot != NONE {
            let posted = self.table.at(slot);
            if posted.accepts(label) {
                break;
            }
            slot = self.lists.after(slot);
        }
        slot
    }

    /// Puts a message of `len` bytes into a receive, which goes if it takes no more.
    #[inline(always)]
    pub(super) fn fill(&mut self, slot: u32, len: u64) -> Place {
        let place = self.table.change(slot, |id, posted| {
            let place = posted.fill(id, len);
            (place, place.released)
        });
        if place.released {
            self.forget(slot);
        }
        place
    }

    /// Takes a receive out of the table, and returns its handle.
    pub(super) fn remove(&mut self, slot: u32) -> u64 {
        self.forget(slot);
        self.table.remove(slot).handle
    }

    /// Marks a receive that stands in no list any more. Its content can still be read.
    #[inline(always)]
    fn forget(&mut self, slot: u32) {
        if slot == self.lone {
            self.lone = NONE;
        } else {
            self.unlist(slot);
        }
    }

    #[inline(always)]
    fn unlist(&mut self, slot: u32) {
        let &Posted { bucket, number, .. } = self.table.at(slot);
        if slot == self.recent {
            self.recent = self.lists.after(slot);
        }
        self.lists.remove(bucket as usize, slot);
        let count = &mut self.counts[number as usize];
        *count -= 1;
        if *count == 0 {
            self.used &= !(1 << number);
        }
    }

    /// Whether a slot holds a receive from this source and no other.
    pub(super) fn is_from(&self, slot: u32, source: u32) -> bool {
        self.table.is_taken(slot) && self.table.at(slot).source() == Some(source)
    }
}

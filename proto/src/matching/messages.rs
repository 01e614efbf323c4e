//! The messages that no receive has accepted yet.
use super::lists::{Lists, NONE, Ring};
use super::masks::{Label, Mask, Masks, ODD};
use super::table::Table;
use super::{Message, MessageId, Removed};
use crate::limits::MASKS_MAX;
use alloc::boxed::Box;

#[derive(Clone, Copy, Debug, Default)]
struct Unexpected {
    message: Message,
    aside: bool,
}

/// The table of unexpected messages.
#[derive(Debug)]
pub(super) struct Messages {
    table: Table<Unexpected>,
    /// All that can be matched, in the order of arrival; at the other end, those set aside.
    order: Ring,
    /// For each mask, what looks alike to it.
    alike: Box<[Lists]>,
    aside: u32,
}

impl Messages {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            table: Table::new(slots),
            order: Ring::new(slots),
            alike: (0..MASKS_MAX).map(|_| Lists::new(slots, slots)).collect(),
            aside: 0,
        }
    }

    /// Makes room for `slots` messages. Allocates.
    // spec: MATCH-16
    pub(super) fn grow(&mut self, masks: &Masks, slots: u32) {
        self.table.grow(slots);
        self.order.grow(slots);
        let table = &self.table;
        for (number, lists) in self.alike.iter_mut().enumerate() {
            lists.grow((slots, slots), |lists, slot| {
                lists.bucket(masks.hash(number, table.at(slot).message.label()))
            });
        }
    }

    /// Asserts what holds between two steps.
    #[inline(always)]
    pub(super) fn check(&self) {
        debug_assert!(self.aside <= self.table.len(), "what is set aside is kept");
        if cfg!(debug_assertions) {
            let is_empty = |end| self.order.after(end) == end;
            let none_waits = is_empty(self.order.end());
            debug_assert!(none_waits == self.none_waits(), "what can be matched stands in order");
            let none_aside = is_empty(self.order.other_end());
            debug_assert!(none_aside == (self.aside == 0), "what is set aside stands apart");
        }
    }

    /// Those of a table of few that can be matched: for checks that look at each.
    pub(super) fn few(&self) -> impl Iterator<Item = Label> {
        let few = if self.table.len() <= 8 { 8 } else { 0 };
        self.order.iter(self.order.end()).take(few).map(|slot| self.label(slot))
    }

    /// How many there is room for.
    pub(super) const fn slots(&self) -> u32 {
        self.table.slots()
    }

    /// Messages in the table, those set aside among them.
    pub(super) const fn len(&self) -> u32 {
        self.table.len()
    }

    /// Whether no message can be matched.
    #[inline(always)]
    pub(super) const fn none_waits(&self) -> bool {
        self.table.len() == self.aside
    }

    /// Adds a message as the youngest. `None` without room.
    #[inline(never)]
    pub(super) fn insert(&mut self, masks: &Masks, message: &Message) -> Option<MessageId> {
        let id = self.table.insert(Unexpected { message: *message, aside: false })?;
        self.order.append(self.order.end(), id.slot);
        for number in 0..masks.len() {
            self.list(masks, number, id.slot);
        }
        Some(MessageId(id))
    }

    /// Puts a message into the lists of a mask.
    #[inline(always)]
    fn list(&mut self, masks: &Masks, number: usize, slot: u32) {
        let (label, mask, table) = (self.label(slot), masks.get(number), &self.table);
        let lists = &mut self.alike[number];
        let bucket = lists.bucket(masks.hash(number, label));
        lists.append(bucket, slot, |other| mask.alike(label, table.at(other).message.label()));
    }

    /// Puts all that can be matched into the lists of a mask that is new.
    #[cold]
    pub(super) fn list_all(&mut self, masks: &Masks, number: usize) {
        let mut slot = self.order.after(self.order.end());
        while slot != self.order.end() {
            self.list(masks, number, slot);
            slot = self.order.after(slot);
        }
    }

    /// The oldest message that looks like `label` to a mask and its number.
    // spec: MATCH-4
    #[inline(never)]
    pub(super) fn oldest(
        &self,
        masks: &Masks,
        (mask, number): (Mask, usize),
        label: Label,
    ) -> Option<u32> {
        if self.none_waits() {
            return None;
        }
        let slot = if number == ODD {
            self.oldest_in_order(mask, label)
        } else {
            let lists = &self.alike[number];
            let bucket = lists.bucket(masks.hash(number, label));
            lists.first(bucket, |slot| mask.alike(label, self.label(slot)))
        };
        (slot != NONE).then_some(slot)
    }

    #[cold]
    fn oldest_in_order(&self, mask: Mask, label: Label) -> u32 {
        let mut slots = self.order.iter(self.order.end());
        slots.find(|slot| mask.alike(label, self.label(*slot))).unwrap_or(NONE)
    }

    /// The message in a slot that is taken.
    pub(super) fn get(&self, slot: u32) -> (MessageId, Message) {
        (MessageId(self.table.id(slot)), self.table.at(slot).message)
    }

    /// Takes a message out of the table.
    #[inline(never)]
    pub(super) fn take(&mut self, masks: &Masks, slot: u32) -> Message {
        if self.table.at(slot).aside {
            self.order.remove(slot);
            self.aside -= 1;
        } else {
            self.unlist(masks, slot);
        }
        self.table.remove(slot).message
    }

    /// Takes a message out of the lists where receives find it.
    #[inline(always)]
    fn unlist(&mut self, masks: &Masks, slot: u32) {
        let label = self.label(slot);
        self.order.remove(slot);
        for number in 0..masks.len() {
            let lists = &mut self.alike[number];
            lists.remove(lists.bucket(masks.hash(number, label)), slot);
        }
    }

    /// The slot of a message that is still there.
    pub(super) fn find(&self, id: MessageId) -> Option<u32> {
        self.table.has(id.0).then_some(id.0.slot)
    }

    /// Sets a message aside. False if it is already.
    // spec: MATCH-7
    pub(super) fn set_aside(&mut self, masks: &Masks, slot: u32) -> bool {
        if self.table.at(slot).aside {
            return false;
        }
        self.unlist(masks, slot);
        self.order.append(self.order.other_end(), slot);
        self.table.at_mut(slot).aside = true;
        self.aside += 1;
        true
    }

    /// Those that are set aside, in the order in which they were.
    pub(super) fn aside(&self) -> impl Iterator<Item = (MessageId, Message)> {
        self.order.iter(self.order.other_end()).map(|slot| self.get(slot))
    }

    /// The body of a message is here.
    pub(super) fn complete(&mut self, slot: u32) {
        self.table.at_mut(slot).message.whole = true;
    }

    /// Drops what is of a source and has no whole body.
    // spec: MATCH-14
    pub(super) fn drop_from(
        &mut self,
        masks: &Masks,
        source: u32,
        removed: &mut impl FnMut(Removed),
    ) {
        for end in [self.order.end(), self.order.other_end()] {
            let mut next = self.order.after(end);
            while next != end {
                let slot = next;
                next = self.order.after(slot);
                let (id, message) = self.get(slot);
                if message.source == Some(source) && !message.whole {
                    self.take(masks, slot);
                    removed(Removed::Message { id, handle: message.handle });
                }
            }
        }
    }

    #[inline(always)]
    fn label(&self, slot: u32) -> Label {
        self.table.at(slot).message.label()
    }
}

impl Message {
    #[inline(always)]
    pub(super) const fn label(&self) -> Label {
        Label::new(self.source, self.tag)
    }
}

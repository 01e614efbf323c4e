//! The messages that a member keeps because another one may lack them.
use super::Label;
use alloc::collections::VecDeque;

/// The contents of a ticket.
#[derive(Debug)]
pub(super) enum Item<P> {
    Message(Label, P),
    /// A view that is not open yet: there is only one, the last.
    View,
}

/// The last items up to the highest ticket that a member has.
#[derive(Debug)]
pub(super) struct Log<P> {
    have: u64,
    items: VecDeque<Item<P>>,
}

impl<P> Log<P> {
    /// Room for a window of messages, and a view; allocates.
    // spec: GRP-20
    pub(super) fn new(window: u64) -> Self {
        Self { have: 0, items: VecDeque::with_capacity(window as usize + 1) }
    }

    /// The highest ticket; it and all before it were delivered.
    pub(super) const fn have(&self) -> u64 {
        self.have
    }

    /// All members have everything up to this ticket, for all that is known here.
    pub(super) fn stable(&self) -> u64 {
        self.have - self.items.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// A new member's begins behind this ticket.
    pub(super) fn begin(&mut self, have: u64) {
        assert!(self.have == 0 && self.items.is_empty(), "a joiner has nothing yet");
        self.items.clear();
        self.have = have;
    }

    pub(super) fn push(&mut self, item: Item<P>) {
        debug_assert!(self.items.len() < self.items.capacity(), "it was allocated when made");
        self.have += 1;
        self.items.push_back(item);
    }

    pub(super) fn get(&self, ticket: u64) -> &Item<P> {
        debug_assert!(self.stable() < ticket, "stable messages are not kept");
        debug_assert!(ticket <= self.have, "only messages here can be given");
        &self.items[(ticket - self.stable() - 1) as usize]
    }

    /// Drops what all have.
    // spec: GRP-13
    pub(super) fn trim(&mut self, stable: u64) {
        debug_assert!(stable <= self.have, "all have no more than this one");
        while self.stable() < stable {
            self.items.pop_front();
        }
    }
}

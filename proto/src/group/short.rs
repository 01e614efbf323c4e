//! The short way of messages, used while only messages are under way. In a few steps a root orders
//! its own message, and a member without children takes the next one. The effects are those of
//! `order`.
use super::log::Item;
use super::view::View;
use super::{Group, Label, Life};

impl<P: Clone> Group<P> {
    /// Orders a message of its own at once, if this member is the root and nothing waits for a
    /// ticket before it. `spread` does the work of [`Effects::spread`](super::Effects::spread), and
    /// returns the copy to keep; if it returns none, nothing has happened. The caller delivers the
    /// message here. Returns false if the message must go the long way.
    // spec: GRP-7, GRP-8, GRP-20
    #[inline]
    pub fn multicast_at_once(
        &mut self,
        spread: impl FnOnce(&View, u64, Label) -> Option<P>,
    ) -> bool {
        let is_idle = self.queue.is_empty() && self.outbox.is_idle();
        if !self.change.orders || !is_idle || self.life != Life::In || !self.has_room() {
            return false;
        }
        let (ticket, number) = (self.log.have() + 1, self.outbox.last() + 1);
        let label = Label { ticket, number, sender: self.me, origin: self.me };
        let Some(kept) = spread(&self.roster.view, self.log.stable(), label) else { return false };
        self.outbox.skip();
        // The root has the first seat.
        let (seat, note) = self.roster.seat(0);
        debug_assert_eq!(seat.member, self.me, "the root orders");
        (seat.ordered, note.queued) = (number, number);
        self.log.push(Item::Message(label, kept));
        self.trim_alone();
        true
    }

    /// Takes what has come along the tree from the parent, if that is the next message, and nothing
    /// is to be said of it to anybody. The caller delivers it. False where nothing has happened:
    /// then [`Group::on_message`] says what it is.
    // spec: GRP-6, GRP-8, GRP-9
    #[inline]
    pub fn take_at_once(&mut self, (view, stable): (u64, u64), label: Label, kept: P) -> bool {
        let is_leaf = self.branch.parent.is_some() && self.branch.children.is_empty();
        let is_open = self.opened && self.listening && view == self.roster.view.number();
        let is_told = label.ticket >= self.told + self.stride() || label.sender == self.me;
        if !is_leaf || !is_open || is_told || self.life != Life::In || !self.is_next(&label, stable)
        {
            return false;
        }
        let Some(at) = self.roster.find(label.sender) else { return false };
        let (seat, note) = self.roster.seat(at);
        if note.queued >= label.number {
            return false;
        }
        (seat.ordered, note.queued) = (label.number, label.number);
        self.log.trim(stable);
        self.log.push(Item::Message(label, kept));
        true
    }
}

//! The order of messages: requests get tickets at the root, go along the tree, and are delivered.
use super::log::Item;
use super::message::Message;
use super::requests::{Request, What};
use super::view::Standing;
use super::{Effects, Group, Label, Life, Member, Refusal};
use crate::lane::Malformed;

impl<P: Clone> Group<P> {
    /// Notes what is to be ordered, and sends it to the root if there is one. While none leads, it
    /// waits here.
    // spec: GRP-7, GRP-17
    pub(super) fn request(
        &mut self,
        what: What<P>,
        effects: &mut impl Effects<P>,
    ) -> Result<u64, Refusal> {
        if self.life != Life::In || self.outbox.leaves() {
            return Err(Refusal::Outside);
        }
        if self.outbox.is_full() {
            return Err(Refusal::Busy);
        }
        let number = self.outbox.push(what.clone());
        if self.asked == Some(self.me) {
            self.enqueue(self.me, number, what);
        } else if let Some(root) = self.asked {
            effects.send(root, Message::Request { number, what });
        }
        self.run(effects);
        Ok(number)
    }

    /// Sends the outbox to the root, where that is another one than before. What the one before had
    /// ordered is not in the outbox any more, so nothing is ordered twice.
    // spec: GRP-17
    pub(super) fn ask_again(&mut self, effects: &mut impl Effects<P>) {
        let root = self.circle.leader();
        if root == self.asked {
            return;
        }
        self.asked = root;
        let Some(root) = root else { return };
        for (number, what) in self.outbox.iter() {
            let what = what.clone();
            if root == self.me {
                self.queue.push(Request { sender: root, number, what });
            } else {
                effects.send(root, Message::Request { number, what });
            }
        }
        if root == self.me {
            self.count_queued(self.me, self.outbox.last());
        }
    }

    fn enqueue(&mut self, sender: Member, number: u64, what: What<P>) {
        self.queue.push(Request { sender, number, what });
        self.count_queued(sender, number);
    }

    fn count_queued(&mut self, sender: Member, number: u64) {
        if let Some(at) = self.circle.find(sender) {
            self.circle.seat(at).1.queued = number;
        }
    }

    pub(super) fn on_request(
        &mut self,
        at: usize,
        number: u64,
        what: What<P>,
    ) -> Result<(), Malformed> {
        let limit = u64::from(self.options.requests);
        let (seat, note) = self.circle.seat(at);
        if number <= seat.ordered {
            // The root before had ordered it, and its sender did not know.
            return Ok(());
        }
        let is_member = seat.standing != Standing::Leaves;
        if !is_member || number != note.queued + 1 || number - seat.ordered > limit {
            return Err(Malformed);
        }
        let sender = seat.member;
        self.enqueue(sender, number, what);
        Ok(())
    }

    /// The root orders the oldest request. Whether it has.
    // spec: GRP-7, GRP-20
    pub(super) fn order(&mut self, effects: &mut impl Effects<P>) -> bool {
        let Some(Request { sender, number, what }) = self.queue.front() else { return false };
        let What::Message(origin, payload) = what else {
            self.close(effects);
            return true;
        };
        if self.log.have() - self.log.stable() >= u64::from(self.options.window) {
            return false;
        }
        let (ticket, payload) = (self.log.have() + 1, payload.clone());
        let label = Label { ticket, number: *number, sender: *sender, origin: *origin };
        self.queue.pop();
        self.accept(label, payload, Some(self.log.stable()), effects);
        self.acknowledge(effects);
        true
    }

    /// The next message, from the parent.
    // spec: GRP-6, GRP-9
    pub(super) fn on_tree(
        &mut self,
        from: Member,
        (view, stable): (u64, u64),
        label: Label,
        payload: P,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let current = self.circle.view.number();
        if view > current || view == current && self.circle.view.parent(self.me) != Some(from) {
            return Err(Malformed);
        }
        if view < current || !self.listening {
            // Of a view that has ended; it was told what is here, and what lacks will be filled.
            return Ok(());
        }
        if !self.is_next(&label, stable) {
            return Err(Malformed);
        }
        self.open_view(effects);
        if !self.listening {
            return Ok(());
        }
        self.log.trim(stable);
        self.accept(label, payload, Some(stable), effects);
        self.acknowledge(effects);
        Ok(())
    }

    /// Whether a message can be the next one, and there is room for it where all have everything
    /// up to `stable`.
    // spec: GRP-8, GRP-9, GRP-20
    pub(super) fn is_next(&self, label: &Label, stable: u64) -> bool {
        let seat = self.circle.find(label.sender).map(|at| &self.circle.view.seats[at]);
        label.ticket == self.log.have() + 1
            && stable <= self.log.have()
            && label.ticket - stable <= u64::from(self.options.window)
            && self.circle.view.members().any(|member| member == self.me)
            && seat.is_some_and(|seat| label.number == seat.ordered + 1)
    }

    /// Takes the next message: keeps it, passes it on, where it came along the tree, and delivers
    /// it.
    // spec: GRP-6, GRP-8, GRP-11
    pub(super) fn accept(
        &mut self,
        label: Label,
        payload: P,
        stable: Option<u64>,
        effects: &mut impl Effects<P>,
    ) {
        if let Some(at) = self.circle.find(label.sender) {
            let (seat, note) = self.circle.seat(at);
            seat.ordered = label.number;
            if note.queued >= label.number && !self.change.orders {
                // Another one has ordered what was asked of this one: a root that lies.
                self.queue.retain(|sender, number| sender != label.sender || number > label.number);
            }
            note.queued = note.queued.max(label.number);
        }
        if label.sender == self.me {
            self.outbox.pop_ordered(label.number);
        }
        self.log.push(Item::Message(label, payload));
        let Item::Message(_, payload) = self.log.get(label.ticket) else { return };
        if let Some(stable) = stable {
            let (view, payload) = (&self.circle.view, payload.clone());
            let message = Message::Tree { view: view.number(), stable, label, payload };
            effects.spread(view.children(self.me), message);
        }
        effects.deliver(label, payload);
        if label.sender == self.me && label.origin != self.me {
            effects.send(label.origin, Message::Done);
        }
    }

    /// A child and all behind it have everything up to this ticket.
    // spec: GRP-13
    pub(super) fn on_ack(
        &mut self,
        at: usize,
        view: u64,
        ticket: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let current = self.circle.view.number();
        if view < current {
            return Ok(());
        }
        let (seat, _) = self.circle.seat(at);
        let child = seat.member;
        let is_child = self.circle.view.children(self.me).any(|other| other == child);
        let note = self.circle.seat(at).1;
        let sound = view == current && self.opened && is_child;
        if !sound || ticket < note.acked || ticket > self.log.have() {
            return Err(Malformed);
        }
        note.acked = ticket;
        self.acknowledge(effects);
        Ok(())
    }

    /// Tells the parent what this one and all below it have: not every ticket, but the same ones at
    /// all levels of the tree, so that none waits for another. The root may drop it.
    // spec: GRP-13
    fn acknowledge(&mut self, effects: &mut impl Effects<P>) {
        let view = &self.circle.view;
        let acked = |child| view.find(child).map(|at| self.circle.note(at).acked);
        let all = view.children(self.me).filter_map(acked).fold(self.log.have(), u64::min);
        let step = (u64::from(self.options.window) / 4).max(1);
        match view.parent(self.me) {
            None => self.log.trim(all),
            Some(parent) if all >= self.told + step => {
                self.told = all;
                effects.send(parent, Message::Ack { view: view.number(), ticket: all });
            }
            Some(_) => {}
        }
    }
}

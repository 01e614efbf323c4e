//! The order of messages: requests get tickets at the root, go along the tree, and are delivered.
use super::log::Item;
use super::message::Message;
use super::requests::{Request, What};
use super::view::Standing;
use super::{Effects, Group, Label, Life, Member, Refusal};
use crate::lane::Malformed;

/// After at most this number of tickets a member reports to its parent, however wide the window is.
// spec: GRP-13
const STRIDE_MAX: u64 = 16;

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

    /// Sends the outbox to the root if the root has changed. Messages that the former root has
    /// ordered are not in the outbox any more, so nothing is ordered twice.
    // spec: GRP-17
    pub(super) fn ask_again(&mut self, effects: &mut impl Effects<P>) {
        let root = self.roster.leader();
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
        if let Some(at) = self.roster.find(sender) {
            self.roster.seat(at).1.queued = number;
        }
    }

    pub(super) fn on_request(
        &mut self,
        at: usize,
        number: u64,
        what: What<P>,
    ) -> Result<(), Malformed> {
        let limit = u64::from(self.options.requests);
        let (seat, note) = self.roster.seat(at);
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
        let Some(oldest) = self.queue.front() else { return false };
        if oldest.what.is_change() {
            self.close(effects);
            return true;
        }
        if !self.has_room() {
            return false;
        }
        let Some(Request { sender, number, what: What::Message(origin, payload) }) =
            self.queue.pop()
        else {
            return false;
        };
        let label = Label { ticket: self.log.have() + 1, number, sender, origin };
        self.accept(label, payload, Some(self.log.stable()), effects);
        self.trim_alone();
        true
    }

    /// Whether one more message may be under way.
    // spec: GRP-20
    pub(super) fn has_room(&self) -> bool {
        self.log.have() - self.log.stable() < u64::from(self.options.window)
    }

    /// Drops kept messages if this is the only member.
    pub(super) fn trim_alone(&mut self) {
        if self.branch.children.is_empty() {
            self.log.trim(self.log.have());
        }
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
        let current = self.roster.view.number();
        if view == current && self.branch.parent != Some(from) {
            return Err(Malformed);
        }
        if view < current || !self.listening {
            // The view has ended. The root knows which messages are here, and sends the others.
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
        let seat = self.roster.find(label.sender).map(|at| &self.roster.view.seats[at]);
        label.ticket == self.log.have() + 1
            && stable <= self.log.have()
            && label.ticket - stable <= u64::from(self.options.window)
            && self.branch.is_in
            && seat.is_some_and(|seat| label.number == seat.ordered + 1)
    }

    /// Takes the next message: keeps it, passes it on if it came along the tree, and delivers it.
    // spec: GRP-6, GRP-8, GRP-11
    pub(super) fn accept(
        &mut self,
        label: Label,
        payload: P,
        stable: Option<u64>,
        effects: &mut impl Effects<P>,
    ) {
        debug_assert!(label.ticket == self.log.have() + 1, "tickets have no gaps");
        if let Some(at) = self.roster.find(label.sender) {
            let (seat, note) = self.roster.seat(at);
            seat.ordered = label.number;
            if note.queued >= label.number && !self.change.orders {
                // Another root has ordered a request to this one: it lies.
                self.queue.retain(|sender, number| sender != label.sender || number > label.number);
            }
            note.queued = note.queued.max(label.number);
        }
        if label.sender == self.me {
            self.outbox.pop_ordered(label.number);
        }
        let (view, places) = (&self.roster.view, &self.branch.children);
        let kept = match stable {
            Some(stable) if !places.is_empty() => {
                let children = view.members().skip(places.start).take(places.len());
                effects.spread(children, (view.number(), stable), label, &payload)
            }
            _ => payload.clone(),
        };
        self.log.push(Item::Message(label, kept));
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
        let current = self.roster.view.number();
        if view < current {
            return Ok(());
        }
        // In a view that is open, seats are members.
        let sound = self.opened && self.branch.children.contains(&at);
        let note = self.roster.seat(at).1;
        if !sound || ticket < note.acked || ticket > self.log.have() {
            return Err(Malformed);
        }
        note.acked = ticket;
        self.acknowledge(effects);
        Ok(())
    }

    /// Reports to the parent the tickets that this member and all below it have. It reports not
    /// every ticket, but the same ones at all levels of the tree, so that none waits for another.
    /// The root may drop them.
    // spec: GRP-13
    fn acknowledge(&mut self, effects: &mut impl Effects<P>) {
        let have = self.log.have();
        let all = self.roster.acked(&self.branch.children).map_or(have, |acked| acked.min(have));
        let stride = self.stride();
        match self.branch.parent {
            None => self.log.trim(all),
            Some(parent) if all >= self.told + stride => self.tell(parent, all, effects),
            Some(_) => {}
        }
    }

    /// The number of tickets after which a member reports to its parent.
    pub(super) fn stride(&self) -> u64 {
        (u64::from(self.options.window) / 4).clamp(1, STRIDE_MAX)
    }

    fn tell(&mut self, parent: Member, ticket: u64, effects: &mut impl Effects<P>) {
        debug_assert!(ticket >= self.told, "reported messages stay here");
        self.told = ticket;
        effects.send(parent, Message::Ack { view: self.roster.view.number(), ticket });
    }

    /// Tells the parent at once what is here, for one that passes nothing on.
    // spec: GRP-13
    pub fn acknowledge_early(&mut self, effects: &mut impl Effects<P>) {
        let is_leaf = self.opened && self.listening && self.branch.children.is_empty();
        if let Some(parent) = self.branch.parent.filter(|_| is_leaf && self.is_in())
            && self.told < self.log.have()
        {
            self.tell(parent, self.log.have(), effects);
        }
    }
}

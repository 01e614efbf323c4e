//! Changes of view: by the root, or by who takes over from it.
use super::log::Item;
use super::message::Message;
use super::requests::What;
use super::view::{Note, SEATS_MAX, Seat, Standing, View};
use super::{Effects, Group, Label, Life, Member};
use crate::lane::Malformed;
use arrayvec::ArrayVec;

/// What who leads is about.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// No change is under way: this one orders messages.
    orders: bool,
    /// There is to be another view even if nobody comes or goes.
    due: bool,
    /// Who was asked for what this one lacks.
    fetching: Option<Member>,
}

impl Change {
    pub(super) const fn found(&mut self) {
        self.orders = true;
    }

    pub(super) const fn orders(&self) -> bool {
        self.orders
    }
}

impl<P: Clone> Group<P> {
    /// Does what can be done by who leads.
    pub(super) fn run(&mut self, effects: &mut impl Effects<P>) {
        while self.life == Life::In && self.circle.leader() == Some(self.me) {
            let goes_on = if self.change.orders { self.order(effects) } else { self.step(effects) };
            if !goes_on {
                break;
            }
        }
    }

    /// The next step of a change, if nobody must be waited for. Whether there may be another one.
    // spec: GRP-10, GRP-12, GRP-14
    fn step(&mut self, effects: &mut impl Effects<P>) -> bool {
        let is_heard = |(seat, note): (&Seat, &Note)| {
            note.known.is_some() || seat.member == self.me || seat.standing == Standing::Joins
        };
        let are_heard = self.circle.alive().all(is_heard);
        if !are_heard || !self.has_all(effects) || !self.fill(effects) {
            return false;
        }
        if !self.opened {
            return self.welcome(effects) && self.go(effects);
        }
        if self.change.due || self.circle.all().any(|(_, note)| note.dead) || self.is_change_asked()
        {
            self.make_view(effects);
            return true;
        }
        self.start();
        true
    }

    /// Whether nobody has what this one lacks. Else, it asks for it.
    // spec: GRP-14
    fn has_all(&mut self, effects: &mut impl Effects<P>) -> bool {
        let known = self.circle.alive().filter_map(|(seat, note)| Some((note.known?, seat.member)));
        let best = known.max_by_key(|(known, _)| *known);
        let whom = best.filter(|best| best.0 > self.log.have()).map(|(_, member)| member);
        if let Some(whom) = whom
            && self.change.fetching.is_none()
        {
            self.change.fetching = Some(whom);
            effects.send(whom, Message::Fetch { after: self.log.have() });
        }
        if whom.is_none() {
            self.change.fetching = None;
        }
        whom.is_none()
    }

    /// Sends everybody what it lacks. Whether all have everything.
    // spec: GRP-10
    fn fill(&mut self, effects: &mut impl Effects<P>) -> bool {
        let (have, stable) = (self.log.have(), self.log.stable());
        let mut are_full = true;
        for at in 0..self.circle.view.seats().len() {
            let (seat, note) = self.circle.seat(at);
            let (to, Some(known)) = (seat.member, note.known) else { continue };
            let sent = known.max(note.sent).max(stable);
            note.sent = have;
            are_full &= known == have;
            self.send_log(to, sent, effects);
        }
        are_full
    }

    /// Sends one member all that comes behind a ticket.
    fn send_log(&self, to: Member, after: u64, effects: &mut impl Effects<P>) {
        let stable = self.log.stable();
        for ticket in after + 1..=self.log.have() {
            match self.log.get(ticket) {
                Item::Message(label, payload) => {
                    let (label, payload) = (*label, payload.clone());
                    effects.send(to, Message::Fill { stable, label, payload });
                }
                Item::View => {
                    effects.send(to, Message::View { ticket, view: &self.circle.view });
                }
            }
        }
    }

    /// Gets those who join in, one after the other: who is in knows that all before it are. Whether
    /// all are.
    // spec: GRP-4
    fn welcome(&mut self, effects: &mut impl Effects<P>) -> bool {
        let ticket = self.log.have();
        let is_missing = |(seat, note): (&Seat, &Note)| {
            !note.dead && note.known.is_none() && seat.member != self.me
        };
        let Some(at) = self.circle.all().position(is_missing) else { return true };
        let (seat, note) = self.circle.seat(at);
        let to = seat.member;
        if note.sent < ticket {
            note.sent = ticket;
            effects.send(to, Message::View { ticket, view: &self.circle.view });
        }
        false
    }

    /// All have the view. Those who leave are told first: who knows that it is open knows that
    /// none of them leads any more. Then the others in their order, so that who will lead is told
    /// before all who will follow it.
    // spec: GRP-12
    fn go(&mut self, effects: &mut impl Effects<P>) -> bool {
        let view = self.circle.view.number();
        for leaves in [true, false] {
            for (seat, _) in self.circle.alive().filter(|(seat, _)| seat.member != self.me) {
                if (seat.standing == Standing::Leaves) == leaves {
                    effects.send(seat.member, Message::Go { view });
                }
            }
        }
        self.open_view(effects);
        true
    }

    /// Whether the oldest request is about who is in the group.
    fn is_change_asked(&self) -> bool {
        self.queue.front().is_some_and(|request| request.what.is_change())
    }

    /// The next view: who is dead is missing, who asked to leave leaves, who asked to join joins if
    /// there is room.
    // spec: GRP-3, GRP-4, GRP-5, GRP-13
    fn make_view(&mut self, effects: &mut impl Effects<P>) {
        let mut view = View { number: self.circle.view.number() + 1, ..View::default() };
        view.seats.extend(self.circle.alive().map(|(seat, _)| *seat));
        let mut joiners = ArrayVec::<Member, SEATS_MAX>::new();
        while let Some(request) = self.queue.front() {
            if let Some(at) = view.find(request.sender) {
                let seat = &mut view.seats[at];
                match request.what {
                    What::Message(..) => break,
                    What::Leave => seat.standing = Standing::Leaves,
                    What::Join(joiner) => joiners.push(joiner),
                }
                seat.ordered = request.number;
            }
            self.queue.pop();
            if joiners.is_full() {
                break;
            }
        }
        for member in joiners {
            let is_new = view.find(member).is_none() && !effects.is_dead(member);
            if is_new && !view.seats.is_full() {
                view.seats.push(Seat { member, standing: Standing::Joins, ordered: 0 });
            }
        }
        self.change.due = false;
        self.adopt(self.log.have() + 1, &view, effects);
    }

    /// Takes up the next view.
    // spec: GRP-3
    fn adopt(&mut self, ticket: u64, view: &View, effects: &mut impl Effects<P>) {
        self.circle.adopt(view, |who| effects.is_dead(who));
        (self.opened, self.listening) = (false, true);
        self.log.push(Item::View);
        self.queue.retain(|sender, number| {
            view.find(sender).is_some_and(|at| view.seats[at].ordered < number)
        });
        let mine = view.find(self.me).map_or(0, |at| view.seats[at].ordered);
        while let Some(what) = self.outbox.pop_ordered(mine) {
            match what {
                What::Join(joiner) if view.find(joiner).is_none() => {
                    effects.send(joiner, Message::Out);
                }
                _ => {}
            }
        }
        effects.view_changed(ticket, view);
    }

    /// Messages of this view may be ordered: nobody lacks anything, and who leaves has left.
    // spec: GRP-5, GRP-11, GRP-12, GRP-15
    pub(super) fn open_view(&mut self, effects: &mut impl Effects<P>) {
        if self.opened {
            return;
        }
        if self.circle.view.members().all(|member| member != self.me) {
            self.depart(effects);
            return;
        }
        self.opened = true;
        self.told = self.log.have();
        self.log.trim(self.told);
        self.circle.open(self.told);
        self.ask_again(effects);
        if self.circle.view.members().next() != self.circle.leader() {
            // Who should order messages has died meanwhile.
            self.listening = false;
            self.confirm(effects);
        }
    }

    /// Messages are ordered from now on.
    fn start(&mut self) {
        self.change.orders = true;
        for note in self.circle.notes_mut() {
            (note.known, note.sent) = (None, 0);
        }
    }

    /// No more messages are ordered: the root begins a change.
    // spec: GRP-10
    pub(super) fn close(&mut self, effects: &mut impl Effects<P>) {
        self.start();
        self.change = Change { due: true, ..Change::default() };
        self.listening = false;
        let view = self.circle.view.number();
        for (seat, _) in self.circle.alive().filter(|(seat, _)| seat.member != self.me) {
            effects.send(seat.member, Message::Stop { view });
        }
    }

    /// This one is dead, or has gone. If it led, somebody else leads now, and is told what is here.
    // spec: GRP-13, GRP-14
    pub(super) fn lose(&mut self, who: Member, effects: &mut impl Effects<P>) {
        let Some(at) = self.circle.find(who) else { return };
        let led = self.circle.leader();
        let (seat, note) = self.circle.seat(at);
        let leaves = seat.standing == Standing::Leaves;
        if note.dead {
            return;
        }
        (note.dead, note.known) = (true, None);
        if self.asked == Some(who) {
            self.asked = None;
        }
        if self.change.fetching == Some(who) {
            self.change.fetching = None;
        }
        if led == Some(who) {
            // One that leaves orders nothing in the view by which it leaves.
            self.listening &= leaves;
            self.confirm(effects);
            if self.circle.leader() == Some(self.me) {
                self.seek(effects);
            }
        } else if self.change.orders {
            self.close(effects);
        }
    }

    /// Who has gone, and nobody waits for it but this one, does not know that this one leads.
    // spec: GRP-14
    fn seek(&self, effects: &mut impl Effects<P>) {
        let silent = self.circle.alive().filter(|(_, note)| note.known.is_none());
        for (seat, _) in silent.filter(|(seat, _)| seat.member != self.me) {
            effects.send(seat.member, Message::Seek);
        }
    }

    /// The root begins a change.
    // spec: GRP-10
    pub(super) fn on_stop(
        &mut self,
        from: Member,
        view: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let current = self.circle.view.number();
        if view < current {
            return Ok(());
        }
        // Where an heir leads, the view is open, and the word of who left has been overtaken.
        let is_heir = !self.opened && self.circle.heir() == Some(from);
        if view > current || self.circle.leader() != Some(from) && !is_heir {
            return Err(Malformed);
        }
        self.open_view(effects);
        if self.life == Life::Left {
            return Ok(());
        }
        self.listening = false;
        effects.send(from, Message::Have { ticket: self.log.have() });
        Ok(())
    }

    /// Somebody has stopped, and follows this one, or will when this one knows that it leads.
    // spec: GRP-10, GRP-14
    pub(super) fn on_have(
        &mut self,
        at: usize,
        ticket: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let most = self.log.have() + u64::from(self.options.window) + 1;
        let least = self.log.stable();
        let note = self.circle.seat(at).1;
        if ticket < least || ticket > most || note.known.is_some_and(|known| ticket < known) {
            return Err(Malformed);
        }
        note.known = Some(ticket);
        if self.change.orders {
            // It has lost who led before, and missed that this one does.
            self.close(effects);
        }
        Ok(())
    }

    /// Who leads lacks something.
    // spec: GRP-14
    pub(super) fn on_fetch(
        &mut self,
        from: Member,
        after: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let is_kept = after >= self.log.stable() && after <= self.log.have();
        if self.circle.leader() != Some(from) || !is_kept {
            return Err(Malformed);
        }
        self.send_log(from, after, effects);
        Ok(())
    }

    /// Whether this one may say what is next: who leads, or who was asked by this one, who does.
    fn may_fill(&self, from: Member) -> bool {
        self.change.fetching.or_else(|| self.circle.leader()) == Some(from)
    }

    /// Tells who leads what is here.
    fn confirm(&self, effects: &mut impl Effects<P>) {
        if let Some(leader) = self.circle.leader().filter(|leader| *leader != self.me) {
            effects.send(leader, Message::Have { ticket: self.log.have() });
        }
    }

    /// A message that was lacking here.
    // spec: GRP-10, GRP-9
    pub(super) fn on_fill(
        &mut self,
        from: Member,
        stable: u64,
        label: Label,
        payload: P,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        if label.ticket <= self.log.have() {
            return Ok(());
        }
        if !self.may_fill(from) || !self.is_next(&label, stable) {
            return Err(Malformed);
        }
        // A message behind a view that is not open here: it was open elsewhere.
        self.open_view(effects);
        self.log.trim(stable);
        self.accept(label, payload, None, effects);
        self.confirm(effects);
        Ok(())
    }

    /// The next view.
    // spec: GRP-3, GRP-17
    pub(super) fn on_view(
        &mut self,
        from: Member,
        ticket: u64,
        view: &View,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        if ticket <= self.log.have() {
            return Ok(());
        }
        let is_next = ticket == self.log.have() + 1 && view.follows(&self.circle.view, self.me);
        if !self.may_fill(from) || !is_next {
            return Err(Malformed);
        }
        self.open_view(effects);
        self.adopt(ticket, view, effects);
        self.confirm(effects);
        Ok(())
    }

    /// The view is open.
    // spec: GRP-12
    pub(super) fn on_go(
        &mut self,
        from: Member,
        view: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let current = self.circle.view.number();
        let leads = self.circle.leader() == Some(from);
        if view > current || view == current && !self.opened && !leads {
            return Err(Malformed);
        }
        if view < current || !leads {
            return Ok(());
        }
        self.listening = true;
        self.open_view(effects);
        if self.life == Life::In && self.circle.leader() == Some(self.me) {
            self.begin(effects);
        }
        Ok(())
    }

    /// This one leads from the beginning of a view on.
    // spec: GRP-12, GRP-14
    fn begin(&mut self, effects: &mut impl Effects<P>) {
        let is_calm = |(_, note): (&Seat, &Note)| !note.dead && note.known.is_none();
        if self.circle.view.members().next() != Some(self.me) {
            // Who should lead has died. All learn that, and tell what they have.
            self.seek(effects);
        } else if self.circle.all().all(is_calm) {
            self.start();
        } else {
            self.close(effects);
        }
    }

    /// What comes for one that joins: its first view, or that there will be none.
    // spec: GRP-4
    pub(super) fn on_answer(
        &mut self,
        from: Member,
        door: Member,
        message: Message<'_, P>,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        match message {
            Message::Out => self.depart(effects),
            Message::Gone if from == door => self.depart(effects),
            Message::View { ticket, view } => {
                let seat = |who| view.find(who).map(|at| (at, view.seats[at].standing));
                let (Some((leads, _)), Some((_, Standing::Joins))) = (seat(from), seat(self.me))
                else {
                    return Err(Malformed);
                };
                if ticket == 0 {
                    return Err(Malformed);
                }
                self.life = Life::In;
                self.log.begin(ticket - 1);
                self.adopt(ticket, view, effects);
                // Since this one leads, none before it does.
                self.circle.notes_mut().take(leads).for_each(|note| note.dead = true);
                effects.send(from, Message::Have { ticket });
            }
            Message::Join => effects.send(from, Message::Out),
            Message::Ask { .. } => effects.send(from, Message::Refused),
            Message::Seek => {}
            _ => return Err(Malformed),
        }
        Ok(())
    }
}

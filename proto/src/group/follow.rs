//! Changes of view as followers see them, and the choice of the leader.
use super::log::Item;
use super::message::Message;
use super::requests::What;
use super::view::{Standing, View};
use super::{Effects, Group, Label, Life, Member};
use crate::lane::Malformed;

impl<P: Clone> Group<P> {
    /// Takes up the next view.
    // spec: GRP-3
    pub(super) fn adopt(&mut self, ticket: u64, view: &View, effects: &mut impl Effects<P>) {
        assert!(ticket == self.log.have() + 1, "tickets have no gaps");
        self.roster.adopt(view, |who| effects.is_dead(who));
        self.branch = view.branch(self.me);
        (self.opened, self.listening) = (false, true);
        self.log.push(Item::View);
        self.queue.retain(|sender, number| {
            view.find(sender).is_some_and(|at| view.seats[at].ordered < number)
        });
        let mine = view.find(self.me).map_or(0, |at| view.seats[at].ordered);
        while let Some(what) = self.outbox.pop_ordered(mine) {
            if let What::Join(joiner) = what
                && view.find(joiner).is_none()
            {
                effects.send(joiner, Message::Out);
            }
        }
        effects.view_changed(ticket, view);
    }

    /// Messages of this view may be ordered: no member lacks anything, and leavers have left.
    // spec: GRP-5, GRP-13, GRP-14, GRP-17
    pub(super) fn open_view(&mut self, effects: &mut impl Effects<P>) {
        if self.opened {
            return;
        }
        if self.roster.view.members().all(|member| member != self.me) {
            self.depart(effects);
            return;
        }
        self.tell_who_missed(effects);
        self.opened = true;
        self.told = self.log.have();
        self.log.trim(self.told);
        let seeker = self.roster.open(self.told);
        self.ask_again(effects);
        if self.roster.view.members().next() != self.roster.leader() {
            // The root has died meanwhile.
            self.listening = false;
            self.confirm(effects);
        }
        if let Some(seeker) = seeker {
            self.answer_seek(seeker, effects);
        }
    }

    /// This member is dead, or has gone. If it led, another member leads now, and is told which
    /// messages are here.
    // spec: GRP-15, GRP-16
    pub(super) fn lose(&mut self, who: Member, effects: &mut impl Effects<P>) {
        let Some(at) = self.roster.find(who) else { return };
        let led = self.roster.leader();
        let (seat, note) = self.roster.seat(at);
        let leaves = seat.standing == Standing::Leaves;
        if note.dead {
            return;
        }
        (note.dead, note.known) = (true, None);
        if led == Some(who) {
            // One that leaves orders nothing in the view by which it leaves.
            self.listening &= leaves;
            self.confirm(effects);
            if self.roster.leader() == Some(self.me) {
                self.seek(effects);
            }
        } else if self.change.orders {
            self.close(effects);
        }
    }

    /// Tells the leader which messages are here.
    pub(super) fn confirm(&mut self, effects: &mut impl Effects<P>) {
        if let Some(leader) = self.roster.leader().filter(|leader| *leader != self.me) {
            self.confirm_to(leader, effects);
        }
    }

    fn confirm_to(&mut self, leader: Member, effects: &mut impl Effects<P>) {
        self.confirmed = Some(leader);
        effects.send(leader, Message::Have { ticket: self.log.have() });
    }

    /// The leader lacks a message that this member has. It was told, or will be told, once it hears
    /// of the death by which it leads. But a member may leave by a view, tell this one that the
    /// view is open, and die before the leader hears of it. So this member does not act on the
    /// death of a leaver.
    // spec: GRP-16
    pub(super) fn on_seek(&mut self, at: usize, effects: &mut impl Effects<P>) {
        self.roster.seat(at).1.seeks = !self.opened;
        if self.opened {
            let from = self.roster.seat(at).0.member;
            self.answer_seek(from, effects);
        }
    }

    /// It goes on listening: nothing is ordered in the view before the leader knows that it is
    /// open.
    fn answer_seek(&mut self, from: Member, effects: &mut impl Effects<P>) {
        let leader = self.roster.leader();
        if leader == Some(from) && self.confirmed != leader {
            self.confirm(effects);
        }
    }

    /// The view is open, but the news for a leaver may be lost, with the former leader. Then the
    /// leaver has reported its messages to this member, or has sought it.
    // spec: GRP-5, GRP-16
    fn tell_who_missed(&mut self, effects: &mut impl Effects<P>) {
        for (seat, note) in self.roster.alive() {
            let waits = note.seeks || note.known.is_some();
            if seat.standing == Standing::Leaves && seat.member != self.me && waits {
                effects.send(seat.member, Message::Out);
            }
        }
    }

    /// Whether this member lacks the ticket. The sender must be the leader, or the member that this
    /// leader has asked; and the ticket must be the next one.
    // spec: GRP-22
    fn lacks(
        &self,
        from: Member,
        ticket: u64,
        is_next: impl FnOnce(&Self) -> bool,
    ) -> Result<bool, Malformed> {
        if ticket <= self.log.have() {
            return Ok(false);
        }
        let says = self.change.fetching.or_else(|| self.roster.leader());
        if says == Some(from) && is_next(self) { Ok(true) } else { Err(Malformed) }
    }

    /// The root begins a change.
    // spec: GRP-12
    pub(super) fn on_stop(
        &mut self,
        from: Member,
        view: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let current = self.roster.view.number();
        if view < current {
            return Ok(());
        }
        // If the next leader leads already, the view is open: a leaver's news was overtaken.
        let is_next_leader = !self.opened && self.roster.next_leader() == Some(from);
        if self.roster.leader() != Some(from) && !is_next_leader {
            return Err(Malformed);
        }
        self.open_view(effects);
        if self.life == Life::Left {
            return Ok(());
        }
        self.listening = false;
        self.confirm_to(from, effects);
        Ok(())
    }

    /// The leader lacks a message.
    // spec: GRP-16
    pub(super) fn on_fetch(
        &mut self,
        from: Member,
        after: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let is_kept = after >= self.log.stable() && after <= self.log.have();
        if self.roster.leader() != Some(from) || !is_kept {
            return Err(Malformed);
        }
        self.send_log(from, after, effects);
        Ok(())
    }

    /// A message that was lacking here.
    // spec: GRP-9, GRP-12
    pub(super) fn on_fill(
        &mut self,
        from: Member,
        stable: u64,
        label: Label,
        payload: P,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        if !self.lacks(from, label.ticket, |group| group.is_next(&label, stable))? {
            return Ok(());
        }
        // A message behind a view that is not open here: it was open elsewhere.
        self.open_view(effects);
        self.log.trim(stable);
        self.accept(label, payload, None, effects);
        self.confirm(effects);
        Ok(())
    }

    /// The next view.
    // spec: GRP-3, GRP-22
    pub(super) fn on_view(
        &mut self,
        from: Member,
        ticket: u64,
        view: &View,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let is_next = |group: &Self| {
            ticket == group.log.have() + 1 && view.follows(&group.roster.view, group.me)
        };
        if !self.lacks(from, ticket, is_next)? {
            return Ok(());
        }
        self.open_view(effects);
        self.adopt(ticket, view, effects);
        self.confirm(effects);
        Ok(())
    }

    /// The view is open.
    // spec: GRP-14
    pub(super) fn on_go(
        &mut self,
        from: Member,
        view: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let current = self.roster.view.number();
        let leads = self.roster.leader() == Some(from);
        if view == current && !self.opened && !leads {
            return Err(Malformed);
        }
        if view < current || !leads {
            return Ok(());
        }
        self.listening = true;
        self.open_view(effects);
        if self.life == Life::In && self.roster.leader() == Some(self.me) {
            self.begin(effects);
        }
        Ok(())
    }

    /// A member that was taken for dead before this one joined may be alive, see
    /// [`Group::on_death`].
    // spec: GRP-18
    fn tell_the_dead(&self, effects: &mut impl Effects<P>) {
        for (seat, _) in self.roster.all().filter(|(_, note)| note.dead) {
            effects.send(seat.member, Message::Out);
        }
    }

    /// A message to a joining member: its first view, or a refusal.
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
            // Its door has no room for one more request yet.
            Message::Refused if from == door => effects.send(door, Message::Join(self.options)),
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
                self.tell_the_dead(effects);
                // Since this one leads, none before it does.
                self.roster.notes_mut().take(leads).for_each(|note| note.dead = true);
                self.confirm_to(from, effects);
            }
            Message::Join(_) => effects.send(from, Message::Out),
            Message::Ask { .. } => effects.send(from, Message::Refused),
            Message::Seek => {}
            _ => return Err(Malformed),
        }
        Ok(())
    }
}

//! Changes of view at the leader: the root, or its successor.
use super::log::Item;
use super::message::Message;
use super::requests::What;
use super::view::{Note, SEATS_MAX, Seat, Standing, View};
use super::{Effects, Group, Life, Member};
use crate::lane::Malformed;
use arrayvec::ArrayVec;

/// The progress of a change of view at its leader.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// No change is under way: this one orders messages.
    pub(super) orders: bool,
    /// Another view is needed even if no member comes or goes.
    due: bool,
    /// The member that was asked for the messages that this one lacks.
    pub(super) fetching: Option<Member>,
}

impl<P: Clone> Group<P> {
    /// Does the leader's work, as far as possible.
    pub(super) fn run(&mut self, effects: &mut impl Effects<P>) {
        while self.life == Life::In && self.roster.leader() == Some(self.me) {
            let goes_on = if self.change.orders { self.order(effects) } else { self.step(effects) };
            if !goes_on {
                break;
            }
        }
    }

    /// The next step of a change, if nobody must be waited for. Whether there may be another one.
    // spec: GRP-12, GRP-14, GRP-16
    fn step(&mut self, effects: &mut impl Effects<P>) -> bool {
        let is_heard = |(seat, note): (&Seat, &Note)| {
            note.known.is_some() || seat.member == self.me || seat.standing == Standing::Joins
        };
        let are_heard = self.roster.alive().all(is_heard);
        if !are_heard || !self.has_all(effects) || !self.fill(effects) {
            return false;
        }
        if !self.opened {
            return self.welcome(effects) && self.go(effects);
        }
        if self.change.due || self.roster.all().any(|(_, note)| note.dead) || self.is_change_asked()
        {
            self.make_view(effects);
            return true;
        }
        self.start();
        true
    }

    /// Whether this member has all messages that any other one has. If not, it asks a member with
    /// the most messages, and waits for them.
    // spec: GRP-16
    fn has_all(&mut self, effects: &mut impl Effects<P>) -> bool {
        let have = self.log.have();
        let known = self.roster.alive().filter_map(|(seat, note)| Some((note.known?, seat.member)));
        let more = known.filter(|(known, _)| *known > have);
        let asked = self.change.fetching;
        if asked.is_some() && more.clone().any(|(_, member)| asked == Some(member)) {
            return false;
        }
        let best = more.max().map(|(_, member)| member);
        self.change.fetching = best;
        if let Some(best) = best {
            effects.send(best, Message::Fetch { after: have });
        }
        best.is_none()
    }

    /// Sends everybody what it lacks. Whether all have everything.
    // spec: GRP-12
    fn fill(&mut self, effects: &mut impl Effects<P>) -> bool {
        let (have, stable) = (self.log.have(), self.log.stable());
        let mut are_full = true;
        for at in 0..self.roster.view.seats().len() {
            let (seat, note) = self.roster.seat(at);
            let (to, Some(known)) = (seat.member, note.known) else { continue };
            let sent = known.max(note.sent).max(stable);
            note.sent = have;
            are_full &= known == have;
            self.send_log(to, sent, effects);
        }
        are_full
    }

    /// Sends one member all that comes behind a ticket.
    pub(super) fn send_log(&self, to: Member, after: u64, effects: &mut impl Effects<P>) {
        let stable = self.log.stable();
        for ticket in after + 1..=self.log.have() {
            match self.log.get(ticket) {
                Item::Message(label, payload) => {
                    let (label, payload) = (*label, payload.clone());
                    effects.send(to, Message::Fill { stable, label, payload });
                }
                Item::View => {
                    debug_assert!(ticket == self.log.have(), "only the last view is not open");
                    effects.send(to, Message::View { ticket, view: &self.roster.view });
                }
            }
        }
    }

    /// Gets joiners in, one after the other: a joiner that is in knows that all before it are.
    /// Returns whether all are in.
    // spec: GRP-4
    fn welcome(&mut self, effects: &mut impl Effects<P>) -> bool {
        let ticket = self.log.have();
        let is_missing = |(seat, note): (&Seat, &Note)| {
            !note.dead && note.known.is_none() && seat.member != self.me
        };
        let Some(at) = self.roster.all().position(is_missing) else { return true };
        let (seat, note) = self.roster.seat(at);
        let to = seat.member;
        if note.sent < ticket {
            note.sent = ticket;
            effects.send(to, Message::View { ticket, view: &self.roster.view });
        }
        false
    }

    /// All have the view. Leavers are told first that it is open: a member that knows this knows
    /// that no leaver leads any more. Then the others are told in their order, so that the next
    /// leader knows before its followers.
    // spec: GRP-14
    fn go(&mut self, effects: &mut impl Effects<P>) -> bool {
        let view = self.roster.view.number();
        for leaves in [true, false] {
            for (seat, _) in self.roster.alive().filter(|(seat, _)| seat.member != self.me) {
                if (seat.standing == Standing::Leaves) == leaves {
                    effects.send(seat.member, Message::Go { view });
                }
            }
        }
        self.roster.forget_leavers();
        self.open_view(effects);
        true
    }

    /// Whether the oldest request changes the members.
    fn is_change_asked(&self) -> bool {
        self.queue.front().is_some_and(|request| request.what.is_change())
    }

    /// Makes the next view. Dead members are missing, members that asked to leave leave, and
    /// processes that asked to join join if there is room.
    // spec: GRP-3, GRP-4, GRP-5, GRP-15
    fn make_view(&mut self, effects: &mut impl Effects<P>) {
        let mut view = View { number: self.roster.view.number() + 1, ..View::default() };
        view.seats.extend(self.roster.alive().map(|(seat, _)| *seat));
        let mut joiners = ArrayVec::<Member, SEATS_MAX>::new();
        while let Some(request) = self.queue.front() {
            if let Some(at) = view.find(request.sender) {
                let seat = &mut view.seats[at];
                let mine = request.sender == self.me;
                match request.what {
                    What::Message(..) => break,
                    // If a joiner has given up, only the leader knows, and must not leave.
                    What::Leave if mine && !joiners.is_empty() => break,
                    What::Leave => seat.standing = Standing::Leaves,
                    What::Join(joiner) => joiners.push(joiner),
                }
                seat.ordered = request.number;
            }
            self.queue.pop();
            let leaves = view.find(self.me).map(|at| view.seats[at].standing);
            if joiners.is_full() || leaves == Some(Standing::Leaves) {
                break;
            }
        }
        for member in joiners {
            let is_new = view.find(member).is_none() && !effects.is_dead(member);
            if is_new && !view.seats.is_full() {
                view.seats.push(Seat { member, standing: Standing::Joins, ordered: 0 });
            }
        }
        assert!(view.find(self.me).is_some(), "the maker of a view has a seat in it");
        view.branches = effects.branches(&view);
        self.change.due = false;
        self.adopt(self.log.have() + 1, &view, effects);
    }

    /// This one leads from the beginning of a view on.
    // spec: GRP-14, GRP-16
    pub(super) fn begin(&mut self, effects: &mut impl Effects<P>) {
        let is_calm = |(_, note): (&Seat, &Note)| !note.dead && note.known.is_none();
        if self.roster.view.members().next() != Some(self.me) {
            // The leader has died. All learn that, and report their messages.
            self.seek(effects);
        } else if self.roster.all().all(is_calm) {
            self.start();
        } else {
            self.close(effects);
        }
    }

    /// Messages are ordered from now on.
    fn start(&mut self) {
        assert!(self.opened, "nothing is ordered in a view before all have it");
        self.change.orders = true;
        for note in self.roster.notes_mut() {
            (note.known, note.sent) = (None, 0);
        }
    }

    /// No more messages are ordered: the root begins a change.
    // spec: GRP-12
    pub(super) fn close(&mut self, effects: &mut impl Effects<P>) {
        self.start();
        self.change = Change { due: true, ..Change::default() };
        self.listening = false;
        let view = self.roster.view.number();
        for (seat, _) in self.roster.alive().filter(|(seat, _)| seat.member != self.me) {
            effects.send(seat.member, Message::Stop { view });
        }
    }

    /// Tells the members that have gone, and for which only this member waits, that it leads now.
    // spec: GRP-16
    pub(super) fn seek(&self, effects: &mut impl Effects<P>) {
        let silent = self.roster.alive().filter(|(_, note)| note.known.is_none());
        for (seat, _) in silent.filter(|(seat, _)| seat.member != self.me) {
            effects.send(seat.member, Message::Seek);
        }
    }

    /// Somebody has stopped, and follows this one, or will when this one knows that it leads.
    // spec: GRP-12, GRP-16
    pub(super) fn on_have(
        &mut self,
        at: usize,
        ticket: u64,
        effects: &mut impl Effects<P>,
    ) -> Result<(), Malformed> {
        let most = self.log.have() + u64::from(self.options.window) + 1;
        let note = self.roster.seat(at).1;
        if ticket > most || note.known.is_some_and(|known| ticket < known) {
            return Err(Malformed);
        }
        note.known = Some(ticket);
        if self.change.orders {
            // It has lost the former leader, and missed that this one leads.
            self.close(effects);
        }
        Ok(())
    }
}

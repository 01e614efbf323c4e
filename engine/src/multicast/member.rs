//! The memberships of a messenger.
use super::causes::Causes;
use super::content::{Buffer, Content, Kept};
use super::due::Due;
use super::names::{Names, is_nameless, port_of};
use super::shared_log::{Reading, SharedLog};
use crate::active::outgoing::{Outbound, Outgoing};
use ayre_proto::group::{Answer, Group, Guest, Member, Options, View};
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// One membership.
#[derive(Debug)]
pub(super) struct GroupMember {
    pub(super) id: u32,
    pub(super) me: Member,
    /// Who is to get this one in, and the ports that were connected when it was asked; none once
    /// it is in.
    pub(super) door: Option<(Member, Vec<PeerId>)>,
    pub(super) machine: Group<Kept>,
    pub(super) due: VecDeque<Due>,
    /// While it is the root of members of this host.
    pub(super) board: Option<SharedLog>,
    /// Of such a root.
    pub(super) reading: Option<Reading>,
    /// It is no member any more, or will not be one.
    pub(super) has_ended: bool,
}

/// An outsider's message under way.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) id: u32,
    pub(super) me: Member,
    pub(super) door: Member,
    pub(super) guest: Guest,
    pub(super) answer: Option<Answer>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct GroupMembers {
    pub(super) list: Vec<Box<GroupMember>>,
    pub(super) visit: Option<Visit>,
    /// Something is to be run.
    pub(super) has_due: bool,
    /// Some read a board.
    pub(super) has_boards: bool,
    /// Where views are read to; none while one is.
    pub(super) scratch: Option<Box<View>>,
    /// Where messages are copied to from a board; none while one is run.
    pub(super) buffer: Option<Buffer>,
    /// By port, whether they were told that it has gone.
    gone: Vec<bool>,
    names: Names,
}

impl GroupMembers {
    /// What holds between two calls.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let any = |is: fn(&GroupMember) -> bool| self.list.iter().any(|club| is(club));
            debug_assert!(self.has_due || !any(|club| !club.due.is_empty()), "polls know of it");
            debug_assert!(self.has_boards || !any(|club| club.reading.is_some()), "and read them");
            let is_both = any(|club| club.board.is_some() && club.reading.is_some());
            debug_assert!(!is_both, "a root reads no board");
            let has_left = any(|club| club.has_ended && club.board.is_some());
            debug_assert!(!has_left, "who has left has no board");
        }
    }

    pub(super) fn find(&mut self, me: Member) -> Option<&mut GroupMember> {
        self.list.iter_mut().map(Box::as_mut).find(|club| club.me == me)
    }

    /// The membership that a message is for.
    pub(super) fn addressed(&mut self, group: u32, to: Member) -> Option<&mut GroupMember> {
        let is_it = |club: &&mut GroupMember| {
            club.id == group && !club.has_ended && (club.me == to || is_nameless(to))
        };
        self.list.iter_mut().map(Box::as_mut).find(is_it)
    }

    /// Notes whether a port has gone; true where that is news.
    fn set_gone(&mut self, port: PeerId, gone: bool) -> bool {
        if self.gone.len() <= port.index() {
            self.gone.resize(port.index() + 1, false);
        }
        std::mem::replace(&mut self.gone[port.index()], gone) != gone
    }

    pub(super) fn forget(&mut self, me: Member) {
        let is_over = |club: &mut GroupMember| club.has_ended && club.due.is_empty();
        debug_assert!(self.find(me).is_none_or(is_over), "all of it was told");
        self.list.retain(|club| club.me != me);
        self.has_boards = self.list.iter().any(|club| club.reading.is_some());
    }

    /// Something can be read on a board.
    pub(super) fn has_news(&self) -> bool {
        self.list.iter().any(|club| club.reading.as_ref().is_some_and(Reading::has_news))
    }

    /// The next thing to run, and for which membership.
    pub(super) fn next_due(&mut self) -> Option<(Member, Due)> {
        let next = self.list.iter_mut().find_map(|club| Some((club.me, club.due.pop_front()?)));
        self.has_due = self.list.iter().any(|club| !club.due.is_empty());
        debug_assert!(next.is_some() || !self.has_due, "nothing is left out");
        next
    }
}

impl Outbound for GroupMembers {
    fn heed_peers(out: &mut Outgoing) -> bool {
        out.tell_of_deaths()
    }

    fn has_news(&self) -> bool {
        self.has_boards && Self::has_news(self)
    }
}

impl Outgoing {
    #[inline(always)]
    pub(super) fn clubs(&mut self) -> &mut GroupMembers {
        self.outbound.as_mut()
    }

    /// A name for a member at this port.
    pub(super) fn new_name(&mut self) -> Member {
        let Self { outbound, port, .. } = self;
        let clubs: &mut GroupMembers = outbound.as_mut();
        clubs.names.next(port)
    }

    pub(super) fn found_club(&mut self, id: u32, options: Options) -> Member {
        let me = self.new_name();
        let machine = Group::found(me, options);
        self.add_club(id, me, None, machine);
        me
    }

    pub(super) fn join_club(&mut self, id: u32, door: Member, options: Options) -> Member {
        let me = self.new_name();
        let connected = self.port.peers().collect();
        let mut due = VecDeque::new();
        let mut causes = Causes::new(self, (id, me), &mut due);
        let machine = Group::join(me, door, options, &mut causes);
        self.add_club(id, me, Some((door, connected)), machine);
        me
    }

    /// What was sent by the board is to be run here, too.
    pub(super) fn deliver_later(&mut self, me: Member, content: Content) {
        let own = self.port.id;
        if let Some(club) = self.clubs().find(me) {
            club.due.push_back(Due::Message(own, content));
            self.clubs().has_due = true;
        }
    }

    fn add_club(
        &mut self,
        id: u32,
        me: Member,
        door: Option<(Member, Vec<PeerId>)>,
        machine: Group<Kept>,
    ) {
        let due = VecDeque::new();
        let mut clubs = self.clubs().list.iter();
        let is_new = clubs.all(|club| club.me != me && club.id != id);
        debug_assert!(is_new, "a name is one member's, of one group");
        let (board, reading) = (None, None);
        let club = GroupMember { id, me, door, machine, due, board, reading, has_ended: false };
        self.clubs().list.push(Box::new(club));
    }

    /// Lets a member's machine do something; none where it is no member.
    pub(super) fn with_club<R>(
        &mut self,
        me: Member,
        act: impl FnOnce(&mut Group<Kept>, &mut Causes<'_>) -> R,
    ) -> Option<R> {
        let at = self.clubs().list.iter().position(|club| club.me == me && !club.has_ended)?;
        let mut club = self.clubs().list.swap_remove(at);
        let GroupMember { id, machine, due, board, reading, .. } = &mut *club;
        let mut causes = Causes::new(self, (*id, me), due);
        (causes.board, causes.reading) = (board.as_mut(), reading.as_ref());
        let result = act(machine, &mut causes);
        let (has_ended, wants_board) = (causes.has_ended, causes.wants_board);
        club.has_ended = has_ended;
        if club.machine.is_in() {
            club.door = None;
        }
        if wants_board {
            self.set_up_board(&mut club);
        }
        if club.has_ended {
            club.due.push_back(Due::Ended);
            club.reading = None;
            club.board.take().into_iter().for_each(|board| board.close(&mut self.port));
        }
        if let Some(reading) = &mut club.reading {
            reading.await_next(club.machine.next_of_tree());
        }
        self.clubs().has_due |= !club.due.is_empty();
        self.clubs().list.push(club);
        self.clubs().check();
        Some(result)
    }

    /// Tells machines of the deaths among their members, as soon as all has been taken that those
    /// had sent.
    // spec: GRP-15, GRP-16
    fn tell_of_deaths(&mut self) -> bool {
        let mut all = true;
        for number in 0..self.port.peers.count() {
            let port = PeerId(number as u16);
            if !self.port.is_silent(port) {
                all &= self.port.is_alive(port);
                self.clubs().set_gone(port, false);
            } else if self.clubs().set_gone(port, true) {
                self.tell_of_death(port);
            }
        }
        all
    }

    /// One after the other: a machine hears of a death before it asks whether somebody is dead.
    fn tell_of_death(&mut self, port: PeerId) {
        let members: Vec<_> = self.clubs().list.iter().map(|club| club.me).collect();
        for me in members {
            let Some(club) = self.clubs().find(me) else { continue };
            let seats = club.machine.view().seats().iter().map(|seat| seat.member);
            let door = club.door.iter().map(|(door, _)| *door);
            let others = seats.chain(door).filter(|other| *other != me && port_of(*other) == port);
            for other in others.collect::<Vec<_>>() {
                self.with_club(me, |machine, causes| machine.on_death(other, causes));
            }
        }
        self.stir();
        let visit = self.clubs().visit.as_mut().filter(|visit| port_of(visit.door) == port);
        visit.into_iter().for_each(|visit| visit.answer = Some(Answer::Gone));
    }

    /// Whether machines were told that a member has died.
    // spec: GRP-15
    pub(super) fn was_told_dead(&self, member: Member) -> bool {
        let port = port_of(member);
        let clubs: &GroupMembers = self.outbound.as_ref();
        match clubs.gone.get(port.index()) {
            Some(gone) => *gone && !self.port.is_alive(port),
            None => self.port.connection(port).is_err(),
        }
    }
}

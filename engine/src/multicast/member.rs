//! The memberships of a messenger.
use super::content::{Buffer, Content, Kept};
use super::due::Due;
use super::effects::MemberEffects;
use super::names::{Names, is_nameless, port_of};
use super::shared_log::{Reading, SharedLog};
use crate::active::outgoing::{Outbound, Outgoing};
use ayre_proto::group::{Answer, Group, Member, Options, Outsider, View};
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// One membership.
#[derive(Debug)]
pub(super) struct GroupMember {
    pub(super) id: u32,
    pub(super) me: Member,
    /// The member through which this one joins, and the ports that were connected then; none once
    /// this one is a member.
    pub(super) door: Option<(Member, Vec<PeerId>)>,
    pub(super) machine: Group<Kept>,
    pub(super) due: VecDeque<Due>,
    /// The own shared log, while this member is the root and all others are on its host.
    pub(super) log: Option<SharedLog>,
    /// The shared log of another root.
    pub(super) reading: Option<Reading>,
    /// It is no member any more, or does not become one.
    pub(super) has_ended: bool,
}

/// A message under way to a group of which this process is no member.
#[derive(Debug)]
pub(super) struct GuestSend {
    pub(super) id: u32,
    pub(super) me: Member,
    pub(super) door: Member,
    pub(super) guest: Outsider,
    pub(super) answer: Option<Answer>,
}

/// All memberships of a messenger.
#[derive(Debug, Default)]
pub(crate) struct GroupMembers {
    pub(super) list: Vec<Box<GroupMember>>,
    pub(super) guest_send: Option<GuestSend>,
    /// A delivery waits to be run.
    pub(super) has_due: bool,
    /// At least one membership reads a shared log.
    pub(super) has_logs: bool,
    /// A buffer for received views; none while it is in use.
    pub(super) scratch: Option<Box<View>>,
    /// A buffer for messages of shared logs; none while a message is run.
    pub(super) buffer: Option<Buffer>,
    /// By port, whether memberships were told that it has gone.
    gone: Vec<bool>,
    names: Names,
}

impl GroupMembers {
    /// Checks the invariants between two calls.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let any =
                |is: fn(&GroupMember) -> bool| self.list.iter().any(|membership| is(membership));
            debug_assert!(
                self.has_due || !any(|membership| !membership.due.is_empty()),
                "polls know of it"
            );
            debug_assert!(
                self.has_logs || !any(|membership| membership.reading.is_some()),
                "and read them"
            );
            let is_both =
                any(|membership| membership.log.is_some() && membership.reading.is_some());
            debug_assert!(!is_both, "a root reads no log");
            let has_left = any(|membership| membership.has_ended && membership.log.is_some());
            debug_assert!(!has_left, "who has left has no log");
        }
    }

    pub(super) fn find(&mut self, me: Member) -> Option<&mut GroupMember> {
        self.list.iter_mut().map(Box::as_mut).find(|membership| membership.me == me)
    }

    /// Returns the membership to which a message is addressed.
    pub(super) fn addressed(&mut self, group: u32, to: Member) -> Option<&mut GroupMember> {
        let is_it = |membership: &&mut GroupMember| {
            membership.id == group
                && !membership.has_ended
                && (membership.me == to || is_nameless(to))
        };
        self.list.iter_mut().map(Box::as_mut).find(is_it)
    }

    /// Notes whether a port has gone. Returns whether that is a change.
    fn set_gone(&mut self, port: PeerId, gone: bool) -> bool {
        if self.gone.len() <= port.index() {
            self.gone.resize(port.index() + 1, false);
        }
        std::mem::replace(&mut self.gone[port.index()], gone) != gone
    }

    pub(super) fn forget(&mut self, me: Member) {
        let is_over =
            |membership: &mut GroupMember| membership.has_ended && membership.due.is_empty();
        debug_assert!(self.find(me).is_none_or(is_over), "all of it was told");
        self.list.retain(|membership| membership.me != me);
        self.has_logs = self.list.iter().any(|membership| membership.reading.is_some());
    }

    /// Whether a shared log has a new message.
    pub(super) fn has_news(&self) -> bool {
        self.list
            .iter()
            .any(|membership| membership.reading.as_ref().is_some_and(Reading::has_news))
    }

    /// Takes the next delivery, with its membership.
    pub(super) fn next_due(&mut self) -> Option<(Member, Due)> {
        let next = self
            .list
            .iter_mut()
            .find_map(|membership| Some((membership.me, membership.due.pop_front()?)));
        self.has_due = self.list.iter().any(|membership| !membership.due.is_empty());
        debug_assert!(next.is_some() || !self.has_due, "nothing is left out");
        next
    }
}

impl Outbound for GroupMembers {
    fn heed_peers(out: &mut Outgoing) -> bool {
        out.tell_of_deaths()
    }

    fn has_news(&self) -> bool {
        self.has_logs && Self::has_news(self)
    }
}

impl Outgoing {
    #[inline(always)]
    pub(super) fn group_members(&mut self) -> &mut GroupMembers {
        self.outbound.as_mut()
    }

    /// Returns a new name for a member at this port.
    pub(super) fn new_name(&mut self) -> Member {
        let Self { outbound, port, .. } = self;
        let group_members: &mut GroupMembers = outbound.as_mut();
        group_members.names.next(port)
    }

    pub(super) fn found_group(&mut self, id: u32, options: Options) -> Member {
        let me = self.new_name();
        let machine = Group::found(me, options);
        self.add_membership(id, me, None, machine);
        me
    }

    pub(super) fn join_group(&mut self, id: u32, door: Member, options: Options) -> Member {
        let me = self.new_name();
        let connected = self.port.peers().collect();
        let mut due = VecDeque::new();
        let mut effects = MemberEffects::new(self, (id, me), &mut due);
        let machine = Group::join(me, door, options, &mut effects);
        self.add_membership(id, me, Some((door, connected)), machine);
        me
    }

    /// Adds a delivery of a message that this root has written to its shared log.
    pub(super) fn deliver_later(&mut self, me: Member, content: Content) {
        let own = self.port.id;
        if let Some(membership) = self.group_members().find(me) {
            membership.due.push_back(Due::Message(own, content));
            self.group_members().has_due = true;
        }
    }

    fn add_membership(
        &mut self,
        id: u32,
        me: Member,
        door: Option<(Member, Vec<PeerId>)>,
        machine: Group<Kept>,
    ) {
        let due = VecDeque::new();
        let mut group_members = self.group_members().list.iter();
        let is_new = group_members.all(|membership| membership.me != me && membership.id != id);
        debug_assert!(is_new, "a name is one member's, of one group");
        let (log, reading) = (None, None);
        let membership = GroupMember { id, me, door, machine, due, log, reading, has_ended: false };
        self.group_members().list.push(Box::new(membership));
    }

    /// Calls a function with a member's state machine, and applies the effects. Returns none if the
    /// membership does not exist.
    pub(super) fn with_member<R>(
        &mut self,
        me: Member,
        act: impl FnOnce(&mut Group<Kept>, &mut MemberEffects<'_>) -> R,
    ) -> Option<R> {
        let at = self
            .group_members()
            .list
            .iter()
            .position(|membership| membership.me == me && !membership.has_ended)?;
        let mut membership = self.group_members().list.swap_remove(at);
        let GroupMember { id, machine, due, log, reading, .. } = &mut *membership;
        let mut effects = MemberEffects::new(self, (*id, me), due);
        (effects.log, effects.reading) = (log.as_mut(), reading.as_ref());
        let result = act(machine, &mut effects);
        let (has_ended, wants_log) = (effects.has_ended, effects.wants_log);
        membership.has_ended = has_ended;
        if membership.machine.is_in() {
            membership.door = None;
        }
        if wants_log {
            self.set_up_log(&mut membership);
        }
        if membership.has_ended {
            membership.due.push_back(Due::Ended);
            membership.reading = None;
            membership.log.take().into_iter().for_each(|log| log.close(&mut self.port));
        }
        if let Some(reading) = &mut membership.reading {
            reading.await_next(membership.machine.next_of_tree());
        }
        self.group_members().has_due |= !membership.due.is_empty();
        self.group_members().list.push(membership);
        self.group_members().check();
        Some(result)
    }

    /// Tells state machines of dead members, when all messages of these members are taken.
    // spec: GRP-15, GRP-16
    fn tell_of_deaths(&mut self) -> bool {
        let mut all = true;
        for number in 0..self.port.peers.count() {
            let port = PeerId(number as u16);
            if !self.port.is_silent(port) {
                all &= self.port.is_alive(port);
                self.group_members().set_gone(port, false);
            } else if self.group_members().set_gone(port, true) {
                self.tell_of_death(port);
            }
        }
        all
    }

    /// Tells state machines of a port's death. A machine is told before it asks whether the port is
    /// dead.
    fn tell_of_death(&mut self, port: PeerId) {
        let members: Vec<_> =
            self.group_members().list.iter().map(|membership| membership.me).collect();
        for me in members {
            let Some(membership) = self.group_members().find(me) else { continue };
            let seats = membership.machine.view().seats().iter().map(|seat| seat.member);
            let door = membership.door.iter().map(|(door, _)| *door);
            let others = seats.chain(door).filter(|other| *other != me && port_of(*other) == port);
            for other in others.collect::<Vec<_>>() {
                self.with_member(me, |machine, effects| machine.on_death(other, effects));
            }
        }
        self.stir();
        let guest_send = self
            .group_members()
            .guest_send
            .as_mut()
            .filter(|guest_send| port_of(guest_send.door) == port);
        guest_send.into_iter().for_each(|guest_send| guest_send.answer = Some(Answer::Gone));
    }

    /// Whether state machines were told that a member has died.
    // spec: GRP-15
    pub(super) fn was_told_dead(&self, member: Member) -> bool {
        let port = port_of(member);
        let group_members: &GroupMembers = self.outbound.as_ref();
        match group_members.gone.get(port.index()) {
            Some(gone) => *gone && !self.port.is_alive(port),
            None => self.port.connection(port).is_err(),
        }
    }
}

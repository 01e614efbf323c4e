//! Views: the members of a group, their order, and the tree that messages go along.
use super::Member;
use arrayvec::ArrayVec;
use core::ops::Range;

/// Seats of a view: a view fits one short message.
// spec: GRP-2
pub const SEATS_MAX: usize = 64;

/// The effect of a view on one of its seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It was a member and stays one.
    #[default]
    Stays,
    /// It is no member any more: it delivers this view as its last.
    Leaves,
    /// It is a new member: it delivers this view as its first.
    Joins,
}

/// A line of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// The member that has the seat.
    pub member: Member,
    /// The effect of the view on it.
    pub standing: Standing,
    /// The number of its last request that has been ordered.
    pub ordered: u64,
}

/// Branches of a tree, where nobody has a reason for more.
const BRANCHES: u8 = 2;

/// Members in the order in which they joined, and those that leave by this view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub(super) number: u64,
    /// Number of members to which a member passes messages on.
    pub(super) branches: u8,
    pub(super) seats: ArrayVec<Seat, SEATS_MAX>,
}

impl Default for View {
    fn default() -> Self {
        Self { number: 0, branches: BRANCHES, seats: ArrayVec::new() }
    }
}

impl View {
    /// Which view it is: each has the number of the one before it, plus one.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Number of others to which each member passes messages on.
    pub const fn branches(&self) -> u8 {
        self.branches
    }

    /// All seats: members in their order, leavers among them, and then joiners.
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// The members, the root first.
    pub fn members(&self) -> impl Iterator<Item = Member> {
        let members = self.seats.iter().filter(|seat| seat.standing != Standing::Leaves);
        members.map(|seat| seat.member)
    }

    pub(super) fn find(&self, member: Member) -> Option<usize> {
        self.seats.iter().position(|seat| seat.member == member)
    }

    /// Whether members differ, joiners come last, and there is a tree.
    fn is_sound(&self) -> bool {
        let joins = |seat: &&Seat| seat.standing == Standing::Joins;
        let old = self.seats.iter().take_while(|seat| !joins(seat)).count();
        let mut rest = self.seats[old..].iter();
        let mut seats = self.seats.iter().enumerate();
        rest.all(|seat| joins(&seat) && seat.ordered == 0)
            && seats.all(|(at, seat)| self.find(seat.member) == Some(at))
            && (1..=SEATS_MAX).contains(&usize::from(self.branches))
    }

    /// The place of a member in the tree.
    // spec: GRP-6
    pub(super) fn branch(&self, of: Member) -> Branch {
        let count = self.members().count();
        let Some(at) = self.members().position(|member| member == of) else {
            return Branch::default();
        };
        debug_assert!(self.branches > 0, "a tree has branches");
        let branches = usize::from(self.branches);
        let first = count.min(branches * at + 1);
        let parent = at.checked_sub(1).and_then(|before| self.members().nth(before / branches));
        Branch { is_in: true, parent, children: first..count.min(first + branches) }
    }

    /// Whether this can be the next view, for `me`: members stand in their order, some may be
    /// missing, and joiners come last. Numbers only grow, so that a lie cannot undo an order.
    // spec: GRP-22
    pub(super) fn follows(&self, old: &Self, me: Member) -> bool {
        let mut before = old.seats.iter().filter(|seat| seat.standing != Standing::Leaves);
        let sound = self.seats.iter().all(|seat| match seat.standing {
            Standing::Joins => old.find(seat.member).is_none(),
            _ => before
                .find(|old| old.member == seat.member)
                .is_some_and(|old| old.ordered <= seat.ordered),
        });
        let mine = self.find(me).map(|at| self.seats[at].standing);
        let counted = old.number.checked_add(1) == Some(self.number);
        sound && counted && mine.is_some_and(|standing| standing != Standing::Joins)
    }
}

/// The place of a member in the tree of a view.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    /// Whether it is a member, and does not leave by the view.
    pub(super) is_in: bool,
    /// The member from which it gets messages.
    pub(super) parent: Option<Member>,
    /// The members to which it passes them on, by their places among the members.
    pub(super) children: Range<usize>,
}

/// The state of another member, as far as it is known here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Note {
    /// It is dead, or has gone.
    pub(super) dead: bool,
    /// It has stopped, and has reported that it has everything up to this ticket.
    pub(super) known: Option<u64>,
    /// Up to this ticket, the leader of the change has sent everything to it.
    pub(super) sent: u64,
    /// Up to this ticket, it and those behind it in the tree have everything.
    pub(super) acked: u64,
    /// The number of its last request.
    pub(super) queued: u64,
    /// It has sought this member as the leader before the view was open here.
    pub(super) seeks: bool,
}

/// A view, and what a member notes about its seats.
#[derive(Debug, Default)]
pub(super) struct Roster {
    pub(super) view: View,
    notes: ArrayVec<Note, SEATS_MAX>,
}

impl Roster {
    /// Invariants that hold between two steps, for all input of other members.
    pub(super) fn check(&self, is_open: bool) {
        debug_assert!(self.notes.len() == self.view.seats.len(), "each seat has its note");
        debug_assert!(self.view.is_sound(), "a view is one that can be told");
        let mut seats = self.view.seats.iter();
        let are_in = !is_open || seats.all(|seat| seat.standing == Standing::Stays);
        debug_assert!(are_in, "each seat of an open view is a member's");
        let is_sought = self.notes.iter().any(|note| note.seeks);
        debug_assert!(!is_open || !is_sought, "seekers are heard once the view is open");
    }

    pub(super) fn find(&self, member: Member) -> Option<usize> {
        self.view.find(member)
    }

    #[inline]
    pub(super) fn seat(&mut self, at: usize) -> (&mut Seat, &mut Note) {
        (&mut self.view.seats[at], &mut self.notes[at])
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Seat, &Note)> + Clone {
        self.view.seats.iter().zip(&self.notes)
    }

    pub(super) fn notes_mut(&mut self) -> impl Iterator<Item = &mut Note> {
        self.notes.iter_mut()
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = (&Seat, &Note)> + Clone {
        self.all().filter(|(_, note)| !note.dead)
    }

    /// Up to which ticket all of these have everything, in a view that is open: there, seats are
    /// members.
    pub(super) fn acked(&self, places: &Range<usize>) -> Option<u64> {
        self.notes[places.clone()].iter().map(|note| note.acked).min()
    }

    /// The leader: the oldest living member. Until a view is open its leavers count, so that
    /// members with the view and members without it agree.
    // spec: GRP-16
    pub(super) fn leader(&self) -> Option<Member> {
        self.alive().map(|(seat, _)| seat.member).next()
    }

    /// The leader once the view is open.
    pub(super) fn next_leader(&self) -> Option<Member> {
        let mut stay = self.alive().filter(|(seat, _)| seat.standing != Standing::Leaves);
        stay.next().map(|(seat, _)| seat.member)
    }

    /// Adopts a view; notes about members that stay are kept.
    pub(super) fn adopt(&mut self, view: &View, is_dead: impl Fn(Member) -> bool) {
        let noted = |seat: &Seat| {
            let old = self.view.find(seat.member).map(|at| self.notes[at]);
            let mut note =
                old.unwrap_or_else(|| Note { dead: is_dead(seat.member), ..Note::default() });
            note.queued = note.queued.max(seat.ordered);
            note
        };
        self.notes = view.seats.iter().map(noted).collect();
        self.view = view.clone();
        self.check(false);
    }

    /// The leavers know that the view is open; none of them waits for this member any more.
    pub(super) fn forget_leavers(&mut self) {
        let leaves = |(seat, _): &(&Seat, &mut Note)| seat.standing == Standing::Leaves;
        for (_, note) in self.view.seats.iter().zip(&mut self.notes).filter(leaves) {
            (note.known, note.seeks) = (None, false);
        }
    }

    /// The view is open: leavers have left, joiners are members, and all have every message up to
    /// `ticket`. Returns the leader if it has sought this member before.
    pub(super) fn open(&mut self, ticket: u64) -> Option<Member> {
        let stays = |seat: &Seat| seat.standing != Standing::Leaves;
        let kept = self.view.seats.iter().zip(&self.notes).filter(|(seat, _)| stays(seat));
        self.notes = kept.map(|(_, note)| Note { acked: ticket, ..*note }).collect();
        self.view.seats.retain(|seat| stays(seat));
        self.view.seats.iter_mut().for_each(|seat| seat.standing = Standing::Stays);
        let seeker =
            self.alive().next().filter(|(_, note)| note.seeks).map(|(seat, _)| seat.member);
        self.notes.iter_mut().for_each(|note| note.seeks = false);
        self.check(true);
        seeker
    }
}

//! A member of a group: the portions that have arrived, and the collective from which on the group
//! is given up.
use super::group::GroupError;
use crate::active::outgoing::Outgoing;
use arrayvec::ArrayVec;
use ayre_proto::active::long::Piece;
use ayre_proto::collective::portion::{HEADER, Notice, Window};
use ayre_proto::collective::{MEMBERS_MAX, Place};
use ayre_proto::limits::LINE_PAYLOAD;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// A portion that has arrived and that no collective has taken yet.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) sequence: u32,
    pub(super) signature: u32,
    pub(super) bytes: Portion,
}

/// The bytes of a portion: most are few.
#[derive(Debug)]
pub(super) enum Portion {
    Short(ArrayVec<u8, { LINE_PAYLOAD - HEADER }>),
    Long(Vec<u8>),
    /// They are still in the landing, until the messenger polls again.
    Landed(Piece),
}

impl Portion {
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Short(bytes) => bytes.len(),
            Self::Long(bytes) => bytes.len(),
            Self::Landed(piece) => piece.len as usize,
        }
    }
}

/// The portions between this member and another one.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub(super) window: Window,
    pub(super) inbox: VecDeque<Arrived>,
    is_of_member: bool,
    /// The peer sends nothing any more.
    pub(super) is_gone: bool,
}

/// This process as a member of a group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: u32,
    /// Empty until the program makes the group.
    pub(super) members: Vec<PeerId>,
    /// The peer that has sent the first portion before the program made the group.
    opener: Option<PeerId>,
    pub(super) own: usize,
    /// The number of the last collective that was begun.
    pub(super) sequence: u32,
    /// By peer number.
    ways: Vec<Way>,
    /// The first collective that is not done any more, and why.
    given_up: Option<(u32, GroupError)>,
}

impl Member {
    pub(super) fn new(id: u32, opener: Option<PeerId>) -> Self {
        let (members, ways) = (Vec::new(), Vec::new());
        Self { id, members, opener, own: 0, sequence: 0, ways, given_up: None }
    }

    /// Checks the invariants of the portions from a peer, between two steps.
    #[inline]
    pub(super) fn check_way(&self, peer: PeerId) {
        if !cfg!(debug_assertions) {
            return;
        }
        let Some(way) = self.ways.get(peer.index()) else { return };
        let (waiting, inbox) = (way.window.waiting() as usize, way.inbox.len());
        debug_assert!(waiting == inbox, "{waiting} portions wait, and {inbox} are kept");
        let is_members = self.members.is_empty() || way.is_of_member;
        debug_assert!(inbox == 0 || is_members, "nothing is kept of who is no member");
        debug_assert!(!way.is_gone || way.is_of_member, "only members are missed");
    }

    /// The program makes the group. Portions from processes that are no members are dropped.
    pub(super) fn make(&mut self, members: &[PeerId], own: usize) {
        assert!(self.members.is_empty(), "a group is made once");
        assert!(own < members.len(), "this process is a member");
        assert!(members.len() <= MEMBERS_MAX, "numbers of members fit their portions");
        assert!(self.sequence == 0, "nothing begins in a group before it is made");
        (self.members, self.own) = (members.to_vec(), own);
        members.iter().for_each(|member| self.way(*member).is_of_member = true);
        for way in self.ways.iter_mut().filter(|way| !way.is_of_member) {
            *way = Way::default();
        }
    }

    /// Whether this peer has sent the first portion, and the program has not made the group yet.
    pub(super) fn is_opened_by(&self, peer: PeerId) -> bool {
        self.members.is_empty() && self.opener == Some(peer)
    }

    /// Returns the portions between this member and a peer, or none if the peer is no member.
    #[inline]
    pub(super) fn way_of(&mut self, peer: PeerId) -> Option<&mut Way> {
        let is_made = !self.members.is_empty();
        Some(self.way(peer)).filter(|way| !is_made || way.is_of_member)
    }

    /// The peer has died, and everything that it had sent was taken.
    pub(super) fn on_death(&mut self, peer: PeerId) {
        let is_made = !self.members.is_empty();
        let way = self.way(peer);
        match is_made {
            true => way.is_gone = way.is_of_member,
            false => *way = Way::default(),
        }
        self.check_way(peer);
    }

    #[inline]
    pub(super) fn way(&mut self, peer: PeerId) -> &mut Way {
        if peer.index() >= self.ways.len() {
            self.ways.resize_with(peer.index() + 1, Way::default);
        }
        &mut self.ways[peer.index()]
    }

    /// Begins a collective, and returns its number.
    // spec: COLL-3
    #[inline]
    pub(super) fn begin(&mut self) -> Result<u32, GroupError> {
        let sequence = self.sequence.wrapping_add(1);
        self.check(sequence)?;
        self.sequence = sequence;
        Ok(sequence)
    }

    /// Returns the next portion of a collective from a peer, or none if it has not arrived yet.
    // spec: COLL-9
    pub(super) fn take_arrived(
        &mut self,
        peer: PeerId,
        sequence: u32,
        out: &mut Outgoing,
    ) -> Result<Option<Arrived>, GroupError> {
        let way = self.way(peer);
        let is_it = |arrived: &Arrived| arrived.sequence == sequence;
        let Some(at) = way.inbox.iter().position(is_it) else {
            // A process that has left tells nobody that it gives the group up.
            let is_gone = way.is_gone || out.port.is_silent(peer);
            self.check(sequence)?;
            return if is_gone { Err(GroupError::PeerDied(peer)) } else { Ok(None) };
        };
        let arrived = way.inbox.remove(at);
        way.window.take();
        self.tell_taken(peer, out);
        self.check_way(peer);
        Ok(arrived)
    }

    pub(super) fn place(&self) -> Place {
        debug_assert!(self.own < self.members.len(), "the program has made the group");
        Place { member: self.own, members: self.members.len() }
    }

    /// Whether a collective can still be done.
    // spec: COLL-9
    pub(super) fn check(&self, sequence: u32) -> Result<(), GroupError> {
        match self.given_up {
            Some((since, why)) if !is_before(sequence, since) => Err(why),
            _ => Ok(()),
        }
    }

    /// Notes that the group is given up from a collective on. The earliest one counts.
    // spec: COLL-9
    pub(super) fn note_given_up(&mut self, since: u32, why: GroupError) {
        if self.given_up.is_none_or(|(known, _)| is_before(since, known)) {
            self.given_up = Some((since, why));
        }
        debug_assert!(self.check(since).is_err(), "nothing is done from there on");
    }

    /// Gives the group up from a collective on, and tells all other members.
    // spec: COLL-9
    pub(super) fn give_up(&mut self, since: u32, why: GroupError, out: &mut Outgoing) {
        self.note_given_up(since, why);
        let (tag, record) = Notice::GivenUp(since).encode(self.id);
        for (number, member) in self.members.iter().enumerate() {
            if number != self.own {
                out.owe_bytes(*member, tag, &record);
            }
        }
    }

    /// Acknowledges the portions that were taken, if no portion carries this for long.
    // spec: COLL-11
    #[inline(always)]
    pub(super) fn tell_taken(&mut self, peer: PeerId, out: &mut Outgoing) {
        let group = self.id;
        let window = &mut self.way(peer).window;
        if window.is_due() {
            let taken = window.send(false);
            let (tag, record) = Notice::Taken(taken).encode(group);
            out.owe_bytes(peer, tag, &record);
        }
    }
}

/// Whether a collective comes before another one. Their numbers wrap around.
const fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) > u32::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members may give a group up at several collectives, and tell this in any order. From the
    /// earliest of them on nothing is done. All before it still is, also where numbers wrap around.
    // spec: COLL-9
    #[test]
    fn the_earliest_collective_given_up_ends_the_group() {
        for first in [7_u32, u32::MAX - 1] {
            let (why, other) = (GroupError::Invalid("first"), GroupError::Invalid("second"));
            let mut member = Member::new(1, None);
            member.note_given_up(first.wrapping_add(3), other);
            member.note_given_up(first, why);
            member.note_given_up(first.wrapping_add(1), other);
            assert_eq!(member.check(first.wrapping_sub(1)), Ok(()));
            assert_eq!(member.check(first), Err(why));
            assert_eq!(member.check(first.wrapping_add(3)), Err(why));
        }
    }
}

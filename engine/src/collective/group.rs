//! The groups of a messenger, and the portions that have come for them.
use super::adapt::Watch;
use super::running::Running;
use crate::active::outgoing::Outgoing;
use crate::error::{SetupError, debug_is_display};
use arrayvec::ArrayVec;
use ayre_proto::active::landing::Piece;
use ayre_proto::active::record::Record;
use ayre_proto::collective::call::Difference;
use ayre_proto::collective::portion::{HEADER, Header, Window};
use ayre_proto::collective::{Collective, Place, Schedule};
use ayre_proto::lane::Malformed;
use ayre_proto::limits::LINE_PAYLOAD;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// Groups that a peer may speak of first and the program has not made yet.
// spec: COLL-14
const UNMADE_MAX: usize = 16;

/// A group of processes that act together, at one of its messengers.
// spec: COLL-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    pub(super) index: usize,
}

/// Why a collective was not done.
// spec: COLL-9, COLL-10
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A member has died.
    #[error("peer {} died", .0.index())]
    PeerDied(PeerId),
    /// A member does something else, or with another number of bytes.
    #[error("peer {} does {difference}", .peer.index())]
    Mismatch {
        /// Which one.
        peer: PeerId,
        /// What it does, and what this member does.
        difference: Difference,
    },
    /// A member has seen one of the errors above, and has told us.
    #[error("peer {} has given the group up; its own error says why", .0.index())]
    GivenUp(PeerId),
    /// What was asked for contradicts itself.
    #[error("invalid: {0}")]
    Invalid(&'static str),
}

debug_is_display!(GroupError);

/// A portion that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) sequence: u32,
    pub(super) signature: u32,
    pub(super) bytes: Portion,
}

/// Its bytes: most are few.
#[derive(Debug)]
pub(super) enum Portion {
    Short(ArrayVec<u8, { LINE_PAYLOAD - HEADER }>),
    Long(Vec<u8>),
    /// They lie in the landing yet, until the messenger polls again.
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

/// What is between this member and another one.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub(super) window: Window,
    pub(super) inbox: VecDeque<Arrived>,
    is_of_member: bool,
    /// Nothing comes any more.
    pub(super) is_gone: bool,
}

/// What was begun and is not waited for yet.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) number: u64,
    pub(super) running: Running<'static>,
    pub(super) end: Option<Result<(), GroupError>>,
}

/// A group.
#[derive(Debug)]
pub(super) struct State {
    pub(super) id: u32,
    /// Empty until the program makes the group.
    pub(super) members: Vec<PeerId>,
    /// Who has spoken of it before the program made it.
    opener: Option<PeerId>,
    pub(super) own: usize,
    /// Of the last collective that was begun.
    pub(super) sequence: u32,
    /// By peer number.
    ways: Vec<Way>,
    /// From this collective on it is given up, as this peer says.
    given_up: Option<(u32, GroupError)>,
    pub(super) started: Vec<Started>,
    /// What the program wants to have done how.
    pub(super) fixed: [Option<Schedule>; Collective::ALL.len() + 1],
    /// Of a group that adapts, or is recorded.
    pub(super) watch: Option<Box<Watch>>,
}

impl State {
    pub(super) fn new(id: u32, opener: Option<PeerId>) -> Self {
        Self {
            id,
            members: Vec::new(),
            opener,
            own: 0,
            sequence: 0,
            ways: Vec::new(),
            given_up: None,
            started: Vec::new(),
            fixed: [None; Collective::ALL.len() + 1],
            watch: None,
        }
    }

    #[inline]
    pub(super) fn way(&mut self, peer: PeerId) -> &mut Way {
        if peer.index() >= self.ways.len() {
            self.ways.resize_with(peer.index() + 1, Way::default);
        }
        &mut self.ways[peer.index()]
    }

    /// The number of the collective that begins.
    // spec: COLL-3
    #[inline]
    pub(super) fn begin(&mut self) -> Result<u32, GroupError> {
        let sequence = self.sequence.wrapping_add(1);
        self.check(sequence)?;
        self.sequence = sequence;
        Ok(sequence)
    }

    /// A portion of this collective that has come; none where it has not yet.
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
            // Who has left tells nobody else.
            let is_gone = way.is_gone || out.port.is_silent(peer);
            self.check(sequence)?;
            return if is_gone { Err(GroupError::PeerDied(peer)) } else { Ok(None) };
        };
        let arrived = way.inbox.remove(at);
        way.window.take();
        self.tell_taken(peer, out);
        Ok(arrived)
    }

    /// Whether nothing that was started is under way.
    #[inline]
    pub(super) fn is_clear(&self) -> bool {
        self.started.iter().all(|one| one.end.is_some())
    }

    pub(super) fn place(&self) -> Place {
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

    /// The group is given up from a collective on; the earliest one counts.
    // spec: COLL-9
    fn note_given_up(&mut self, since: u32, why: GroupError) {
        if self.given_up.is_none_or(|(known, _)| is_before(since, known)) {
            self.given_up = Some((since, why));
        }
    }

    /// This member gives the group up, and tells all others.
    // spec: COLL-9
    pub(super) fn give_up(&mut self, since: u32, why: GroupError, out: &mut Outgoing) {
        self.note_given_up(since, why);
        let record = Record::GivenUp { group: self.id, since };
        for (number, member) in self.members.iter().enumerate() {
            if number != self.own {
                out.owe(*member, &record);
            }
        }
    }
}

/// Whether a collective comes before another one: their numbers go round.
const fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) > u32::MAX / 2
}

/// All groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(super) states: Vec<State>,
    /// Something has come that a collective may wait for.
    pub(super) has_come: bool,
    /// Whose portions of which collective are awaited at this moment, so that they need not be
    /// kept: the group, the member, the collective.
    pub(super) awaited: Option<(usize, PeerId, u32)>,
    /// Of these, some lie in a landing.
    pub(super) has_landed: bool,
    /// A collective was begun and is not waited for yet.
    pub(crate) has_started: bool,
    pub(super) requests: u64,
}

impl Groups {
    /// Makes a group, of which some may have come already.
    // spec: COLL-1, COLL-14
    pub(super) fn make(
        &mut self,
        id: u32,
        members: &[PeerId],
        own: usize,
    ) -> Result<usize, SetupError> {
        let index = match self.find(id) {
            Some(index) if self.states[index].members.is_empty() => index,
            Some(_) => {
                return Err(SetupError::invalid("a group of this name has been made already"));
            }
            None => {
                self.states.push(State::new(id, None));
                self.states.len() - 1
            }
        };
        let state = &mut self.states[index];
        (state.members, state.own) = (members.to_vec(), own);
        members.iter().for_each(|member| state.way(*member).is_of_member = true);
        // Who is no member has no business here.
        for way in state.ways.iter_mut().filter(|way| !way.is_of_member) {
            *way = Way::default();
        }
        Ok(index)
    }

    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        self.states.iter().position(|state| state.id == id)
    }

    /// The group that a peer speaks of.
    // spec: COLL-14
    #[inline]
    fn of(&mut self, source: PeerId, id: u32) -> Result<&mut State, Malformed> {
        let index = match self.find(id) {
            Some(index) => index,
            None => {
                let is_his =
                    |state: &&State| state.members.is_empty() && state.opener == Some(source);
                if self.states.iter().filter(is_his).count() == UNMADE_MAX {
                    return Err(Malformed);
                }
                self.states.push(State::new(id, Some(source)));
                self.states.len() - 1
            }
        };
        let state = &mut self.states[index];
        let sound = state.members.is_empty() || state.way(source).is_of_member;
        if sound { Ok(state) } else { Err(Malformed) }
    }

    /// A portion has come: its header, and its bytes behind.
    // spec: COLL-11, COLL-12, COLL-14
    #[inline]
    pub(crate) fn take(&mut self, source: PeerId, bytes: &[u8]) -> Result<(), Malformed> {
        let (header, bytes) = Header::parse(bytes)?;
        let portion = match bytes.try_into() {
            Ok(short) => Portion::Short(short),
            Err(_) => Portion::Long(bytes.to_vec()),
        };
        self.arrive(source, header, portion)
    }

    /// The same of a long one.
    pub(crate) fn take_long(
        &mut self,
        source: PeerId,
        header: &[u8],
        bytes: Vec<u8>,
    ) -> Result<(), Malformed> {
        let (header, rest) = Header::parse(header)?;
        if !rest.is_empty() {
            return Err(Malformed);
        }
        self.arrive(source, header, Portion::Long(bytes))
    }

    /// The same of one that lies in a landing and is awaited; false where it is not.
    pub(crate) fn take_landed(
        &mut self,
        source: PeerId,
        header: &[u8],
        piece: Piece,
    ) -> Result<bool, Malformed> {
        let (header, _) = Header::parse(header)?;
        let is_awaited = self.awaited.is_some_and(|(group, peer, sequence)| {
            let it = (self.states[group].id, peer, sequence);
            it == (header.group, source, header.sequence)
        });
        if is_awaited {
            self.has_landed = true;
            self.arrive(source, header, Portion::Landed(piece))?;
        }
        Ok(is_awaited)
    }

    /// Before the messenger polls again: what lies in a landing is kept elsewhere.
    pub(super) fn clear_landing(&mut self, out: &mut Outgoing) {
        self.has_landed = false;
        let Some((group, peer, _)) = self.awaited else { return };
        for arrived in &mut self.states[group].way(peer).inbox {
            if let Portion::Landed(piece) = arrived.bytes {
                let mut bytes = vec![0; piece.len as usize];
                out.read_landing(peer, piece.offset, &mut bytes);
                arrived.bytes = Portion::Long(bytes);
            }
        }
    }

    #[inline]
    fn arrive(&mut self, source: PeerId, header: Header, bytes: Portion) -> Result<(), Malformed> {
        let Header { group, sequence, signature, taken } = header;
        let way = self.of(source, group)?.way(source);
        way.window.on_taken(taken)?;
        way.window.on_portion()?;
        way.inbox.push_back(Arrived { sequence, signature, bytes });
        self.has_come = true;
        Ok(())
    }

    /// A member tells how many portions it has taken.
    // spec: COLL-11
    pub(crate) fn on_taken(
        &mut self,
        source: PeerId,
        group: u32,
        taken: u32,
    ) -> Result<(), Malformed> {
        self.of(source, group)?.way(source).window.on_taken(taken)?;
        self.has_come = true;
        Ok(())
    }

    /// A member gives a group up, from a collective on.
    // spec: COLL-9
    pub(crate) fn on_given_up(
        &mut self,
        source: PeerId,
        group: u32,
        since: u32,
    ) -> Result<(), Malformed> {
        let state = self.of(source, group)?;
        state.note_given_up(since, GroupError::GivenUp(source));
        self.has_come = true;
        Ok(())
    }

    /// Nothing comes from a peer any more.
    // spec: COLL-9
    pub(crate) fn on_death(&mut self, peer: PeerId) {
        for state in &mut self.states {
            if state.members.is_empty() {
                *state.way(peer) = Way::default();
            } else {
                let way = state.way(peer);
                way.is_gone = way.is_of_member;
            }
        }
        self.has_come = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members that give a group up at several collectives are heard in any order: nothing is done
    /// from the earliest on, and all that is before it still is, also where numbers go round.
    // spec: COLL-9
    #[test]
    fn the_earliest_who_gives_up_counts() {
        for first in [7_u32, u32::MAX - 1] {
            let (why, other) = (GroupError::Invalid("first"), GroupError::Invalid("second"));
            let mut state = State::new(1, None);
            state.note_given_up(first.wrapping_add(3), other);
            state.note_given_up(first, why);
            state.note_given_up(first.wrapping_add(1), other);
            assert_eq!(state.check(first.wrapping_sub(1)), Ok(()));
            assert_eq!(state.check(first), Err(why));
            assert_eq!(state.check(first.wrapping_add(3)), Err(why));
        }
    }
}

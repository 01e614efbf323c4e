//! The groups of a messenger, and the portions that have arrived for them.
use super::group::{Group, GroupError, NO_GROUP};
use super::member::{Arrived, Member, Portion};
use super::running::{Progress, Running};
use super::watch::Watch;
use crate::active::outgoing::Outgoing;
use crate::error::SetupError;
use ayre_proto::active::long::Piece;
use ayre_proto::collective::portion::{Header, Notice};
use ayre_proto::collective::{Collective, Schedule};
use ayre_proto::lane::Malformed;
use ayre_proto::units::PeerId;

/// The groups for which a peer may send portions before the program makes them.
// spec: COLL-14
const UNMADE_MAX: usize = 16;

/// A collective that was started and is not finished yet.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) number: u64,
    pub(super) running: Running<'static>,
    pub(super) end: Option<Result<(), GroupError>>,
}

/// A group, with its collectives that are under way.
#[derive(Debug)]
pub(super) struct State {
    pub(super) member: Member,
    pub(super) started: Vec<Started>,
    /// The schedules that the program has fixed, by collective.
    pub(super) fixed: [Option<Schedule>; Collective::ALL.len() + 1],
    /// Set if the group adapts or is recorded.
    pub(super) watch: Option<Box<Watch>>,
}

impl State {
    pub(super) fn new(id: u32, opener: Option<PeerId>) -> Self {
        let (started, fixed) = (Vec::new(), [None; Collective::ALL.len() + 1]);
        Self { member: Member::new(id, opener), started, fixed, watch: None }
    }

    /// Whether no started collective is under way.
    #[inline]
    pub(super) fn is_clear(&self) -> bool {
        self.started.iter().all(|one| one.end.is_some())
    }

    /// Checks the invariants of started collectives, between two steps.
    pub(super) fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let numbers = self.started.iter().map(|one| one.number);
        debug_assert!(numbers.is_sorted_by(|one, other| one < other), "they keep their order");
        let is_made = !self.member.members.is_empty();
        debug_assert!(self.started.is_empty() || is_made, "nothing begins before a group is made");
    }

    pub(super) fn watch_mut(&mut self) -> &mut Watch {
        let members = self.member.members.len();
        self.watch.get_or_insert_with(|| Box::new(Watch::new(members)))
    }

    /// Ends the watch if the group neither adapts nor is recorded.
    pub(super) fn unwatch(&mut self) {
        self.watch.take_if(|watch| watch.is_idle());
    }
}

/// All groups of a messenger.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(super) states: Vec<State>,
    /// A portion or notice has arrived that a collective may wait for.
    pub(super) has_come: bool,
    /// The awaited portions: group, member and number of the collective. They need not be kept when
    /// they arrive.
    pub(super) awaited: Option<(usize, PeerId, u32)>,
    /// Some arrived portions are still in a landing.
    pub(super) has_landed: bool,
    /// At least one collective was started and is not finished.
    pub(super) has_started: bool,
    pub(super) requests: u64,
}

impl Groups {
    /// Makes a group. Portions for it may have arrived already.
    // spec: COLL-1, COLL-14
    pub(super) fn make(
        &mut self,
        id: u32,
        members: &[PeerId],
        own: usize,
    ) -> Result<usize, SetupError> {
        let index = match self.find(id) {
            Some(index) if self.states[index].member.members.is_empty() => index,
            Some(_) => {
                return Err(SetupError::invalid("a group of this name has been made already"));
            }
            None => {
                self.states.push(State::new(id, None));
                self.states.len() - 1
            }
        };
        self.states[index].member.make(members, own);
        let of_id = self.states.iter().filter(|state| state.member.id == id);
        assert!(of_id.count() == 1, "there is one group of an id");
        Ok(index)
    }

    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        self.states.iter().position(|state| state.member.id == id)
    }

    /// Returns this process as a member of the group that a peer names.
    // spec: COLL-14
    #[inline]
    fn of(&mut self, source: PeerId, id: u32) -> Result<&mut Member, Malformed> {
        let index = match self.find(id) {
            Some(index) => index,
            None => {
                let is_his = |state: &&State| state.member.is_opened_by(source);
                let unmade = self.states.iter().filter(is_his).count();
                assert!(unmade <= UNMADE_MAX, "a peer opens no more than it may");
                if unmade == UNMADE_MAX {
                    return Err(Malformed);
                }
                self.states.push(State::new(id, Some(source)));
                self.states.len() - 1
            }
        };
        let member = &mut self.states[index].member;
        if member.way_of(source).is_some() { Ok(member) } else { Err(Malformed) }
    }

    /// Takes a portion: its header and its bytes.
    // spec: COLL-11, COLL-12, COLL-14
    #[inline]
    pub(super) fn take(&mut self, source: PeerId, bytes: &[u8]) -> Result<(), Malformed> {
        let (header, bytes) = Header::parse(bytes)?;
        let portion = match bytes.try_into() {
            Ok(short) => Portion::Short(short),
            Err(_) => Portion::Long(bytes.to_vec()),
        };
        self.arrive(source, header, portion)
    }

    /// Takes a portion that has come as a long message.
    pub(super) fn take_long(
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

    /// Takes a portion that lies in a landing, if it is awaited; false if not.
    pub(super) fn take_landed(
        &mut self,
        source: PeerId,
        header: &[u8],
        piece: Piece,
    ) -> Result<bool, Malformed> {
        let (header, _) = Header::parse(header)?;
        let is_awaited = self.awaited.is_some_and(|(group, peer, sequence)| {
            let it = (self.states[group].member.id, peer, sequence);
            it == (header.group, source, header.sequence)
        });
        if is_awaited {
            self.has_landed = true;
            self.arrive(source, header, Portion::Landed(piece))?;
        }
        Ok(is_awaited)
    }

    /// Copies portions out of landings, before the messenger polls again.
    pub(super) fn clear_landing(&mut self, out: &mut Outgoing) {
        self.has_landed = false;
        debug_assert!(self.awaited.is_some(), "what has landed was awaited");
        let Some((group, peer, _)) = self.awaited else { return };
        for arrived in &mut self.states[group].member.way(peer).inbox {
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
        let member = self.of(source, group)?;
        let way = member.way(source);
        way.window.on_taken(taken)?;
        way.window.on_portion()?;
        way.inbox.push_back(Arrived { sequence, signature, bytes });
        member.check_way(source);
        self.has_come = true;
        Ok(())
    }

    /// Takes a notice: an acknowledgement, or that a member gives the group up.
    // spec: COLL-9, COLL-11
    pub(super) fn on_notice(
        &mut self,
        source: PeerId,
        tag: u32,
        bytes: &[u8],
    ) -> Result<(), Malformed> {
        let (group, notice) = Notice::parse(tag, bytes)?;
        let member = self.of(source, group)?;
        match notice {
            Notice::Taken(taken) => member.way(source).window.on_taken(taken)?,
            Notice::GivenUp(since) => member.note_given_up(since, GroupError::GivenUp(source)),
        }
        self.has_come = true;
        Ok(())
    }

    /// A peer has died, and everything that it had sent was taken.
    // spec: COLL-9
    pub(super) fn on_death(&mut self, peer: PeerId) {
        self.states.iter_mut().for_each(|state| state.member.on_death(peer));
        self.has_come = true;
    }

    /// Returns the group of a handle. An error means that the handle is another messenger's.
    pub(super) fn state(&mut self, group: Group) -> Result<&mut State, GroupError> {
        let is_made = |state: &&mut State| !state.member.members.is_empty();
        self.states.get_mut(group.index).filter(is_made).ok_or(NO_GROUP)
    }

    /// Continues all started collectives.
    #[inline(never)]
    pub(super) fn advance_started(&mut self, out: &mut Outgoing) {
        let has_any = || self.states.iter().any(|state| !state.started.is_empty());
        debug_assert!(self.has_started && has_any(), "something was begun");
        for state in &mut self.states {
            state.check();
            let State { member, started, .. } = state;
            let under_way = started.iter_mut().filter(|one| one.end.is_none());
            for (earlier, one) in under_way.enumerate() {
                one.running.is_oldest = earlier == 0;
                one.end = match one.running.advance(member, out) {
                    Ok(Progress::Waits(_) | Progress::Busy) => None,
                    Ok(Progress::Done) => Some(Ok(())),
                    Err(why) => {
                        one.running.give_up(member, out);
                        member.give_up(one.running.sequence(), why, out);
                        Some(Err(why))
                    }
                };
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A handle of another messenger does not reach a group that only peers have named.
    // spec: COLL-14
    #[test]
    fn a_group_that_only_peers_know_is_none_of_the_program() {
        let (mut groups, peer, group) = (Groups::default(), PeerId(1), Group { index: 0 });
        let header = Header { group: 7, sequence: 1, signature: 0, taken: 0 };
        assert_eq!(groups.take(peer, &header.encode()), Ok(()));
        assert_eq!(groups.state(group).map(|_| ()), Err(NO_GROUP));
        assert_eq!(groups.make(7, &[PeerId(0), peer], 0).ok(), Some(group.index));
        assert!(groups.state(group).is_ok(), "the program has made it");
    }
}

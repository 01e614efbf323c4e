//! Barriers and short allreduces in few instructions. They do the steps of a `Running` where each
//! portion is one message and no other collective of the group is under way.
use super::group::{Group, GroupError};
use super::member::{Member, Portion};
use super::portions::WHOLE_MAX;
use super::running::{Progress, mismatch};
use super::state::{Groups, State};
use crate::active::Messenger;
use crate::active::outgoing::Outgoing;
use crate::error::PostError;
use crate::mem::lane::Probe;
use crate::port::Port;
use crate::port::message::Message;
use ayre_proto::collective::call::CallShape;
use ayre_proto::collective::portion::{HEADER, Header, PORTION};
use ayre_proto::collective::{Action, Collective, Exchange, Rounds, Schedule, Step, Task};
use ayre_proto::combine::{Combine, Number};
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::units::PeerId;

/// Polls of one peer's lane before the lanes of others are polled.
const LOOKS: u32 = 64;

/// A short collective under way.
struct Short<'a> {
    header: Header,
    operation: Option<(Combine, Number)>,
    bytes: &'a mut [u8],
}

impl<S> Messenger<S> {
    /// Whether a collective on `bytes` bytes can be done in this way.
    pub(super) fn is_short(&self, group: Group, collective: Collective, bytes: usize) -> bool {
        let fixed = |state: &State| state.fixed[collective as usize];
        let groups: &Groups = self.features.as_ref();
        let state = groups.states.get(group.index);
        let is_free = |state: &State| {
            fixed(state).is_none_or(|one| one == Schedule::Doubling) && state.watch.is_none()
        };
        state.is_some_and(is_free) && bytes <= WHOLE_MAX
    }

    /// Does a barrier, or an allreduce of at most [`WHOLE_MAX`] bytes, by doubling.
    // spec: COLL-5, COLL-7, COLL-8
    pub(super) fn do_short(
        &mut self,
        state: &mut S,
        group: Group,
        operation: Option<(Combine, Number)>,
        bytes: &mut [u8],
    ) -> Result<(), GroupError> {
        let collective =
            if operation.is_some() { Collective::Allreduce } else { Collective::Barrier };
        let at = self.groups().state(group)?;
        let place = at.member.place();
        debug_assert!(bytes.len() <= WHOLE_MAX, "each portion is one message");
        let sequence = at.member.begin()?;
        let signature = call_of(operation, bytes.len()).signature();
        let header = Header { group: at.member.id, sequence, signature, taken: 0 };
        let short = Short { header, operation, bytes };
        match collective {
            Collective::Barrier => self.follow(state, group, Rounds::new(place), short),
            _ => self.follow(state, group, Exchange::new(place, false), short),
        }
    }

    #[inline(always)]
    fn follow(
        &mut self,
        state: &mut S,
        group: Group,
        plan: impl Iterator<Item = Step>,
        mut short: Short<'_>,
    ) -> Result<(), GroupError> {
        for step in plan {
            let ended = match step {
                Step::Send { to, .. } => self.send_short(state, group, to, &short),
                Step::Receive { from, action, .. } => {
                    self.receive_short(state, group, (from, action), &mut short)
                }
                Step::PushOwn { .. } => Ok(()),
            };
            if let Err(why) = ended {
                let (groups, out) = self.groups_and_out();
                groups.states[group.index].member.give_up(short.header.sequence, why, out);
                return Err(why);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn send_short(
        &mut self,
        state: &mut S,
        group: Group,
        to: usize,
        short: &Short<'_>,
    ) -> Result<(), GroupError> {
        let mut rounds = 0;
        loop {
            let (groups, out) = self.groups_and_out();
            groups.has_come = false;
            let at = &mut groups.states[group.index];
            let peer = at.member.members[to];
            match short.post(at, peer, out)? {
                Progress::Done => return Ok(()),
                Progress::Waits(_) => {
                    at.member.check(short.header.sequence)?;
                    self.wait_for_portion(state, peer)?;
                }
                Progress::Busy => {
                    at.member.check(short.header.sequence)?;
                    self.pause_for_room(state, &mut rounds)?;
                }
            }
        }
    }

    #[inline(always)]
    fn receive_short(
        &mut self,
        state: &mut S,
        group: Group,
        (from, action): (usize, Action),
        short: &mut Short<'_>,
    ) -> Result<(), GroupError> {
        loop {
            let Self { features, out, buffer, .. } = self;
            let groups: &mut Groups = features.as_mut();
            debug_assert!(groups.awaited.is_none(), "nothing lies in a landing meanwhile");
            groups.has_come = false;
            let at = &mut groups.states[group.index].member;
            let peer = at.members[from];
            if at.way(peer).inbox.is_empty() {
                let looks = out.port.config.spin.polls.min(LOOKS);
                let found = (0..looks).find_map(|_| look(&mut out.port, peer, buffer));
                if let Some(message) = found {
                    let bytes = &mut buffer[..message.len];
                    if message.tag == PORTION && short.take(at, peer, action, bytes) {
                        at.tell_taken(peer, out);
                        return Ok(());
                    }
                    // Another message comes first: messages are run in their order.
                    self.take(state, &message);
                    continue;
                }
            }
            if short.take_arrived(at, peer, action, out)? {
                return Ok(());
            }
            self.wait_for_portion(state, peer)?;
        }
    }
}

/// Takes the next message of a peer, if there is one.
#[inline(always)]
fn look(port: &mut Port, peer: PeerId, into: &mut [u8; EAGER_MAX]) -> Option<Message> {
    match port.try_recv_short(peer.index(), into) {
        Probe::Taken(message) => Some(message),
        Probe::Other => port.try_recv_record(peer.index(), into),
        Probe::Nothing => None,
    }
}

/// The shape of the call: a barrier without an operation, else an allreduce.
#[inline(always)]
fn call_of(operation: Option<(Combine, Number)>, bytes: usize) -> CallShape {
    let collective = if operation.is_some() { Collective::Allreduce } else { Collective::Barrier };
    let task = Task { collective, schedule: Schedule::Doubling, root: 0 };
    CallShape { task, operation, bytes: bytes as u64 }
}

impl Short<'_> {
    // spec: COLL-11, COLL-12
    #[inline(always)]
    fn post(
        &self,
        at: &mut State,
        peer: PeerId,
        out: &mut Outgoing,
    ) -> Result<Progress, GroupError> {
        let is_oldest = at.is_clear();
        let window = &mut at.member.way(peer).window;
        if !window.is_open(is_oldest) {
            return Ok(Progress::Waits(peer));
        }
        if out.peer(peer).is_busy() {
            return Ok(Progress::Busy);
        }
        let header = Header { taken: window.taken(), ..self.header };
        match out.post_whole(peer, &header.encode(), self.bytes) {
            Ok(()) => {
                window.send(true);
                Ok(Progress::Done)
            }
            Err(PostError::Busy(_)) => Ok(Progress::Busy),
            Err(PostError::Fault(_)) => Err(GroupError::PeerDied(peer)),
        }
    }

    /// Takes a portion out of the lane, if it is the awaited one.
    #[inline(always)]
    fn take(&mut self, at: &mut Member, peer: PeerId, action: Action, portion: &mut [u8]) -> bool {
        let Ok((header, _)) = Header::parse(portion) else { return false };
        let bytes = &mut portion[HEADER..];
        let due = Header { taken: header.taken, ..self.header };
        if header != due || bytes.len() != self.bytes.len() {
            return false;
        }
        debug_assert!(at.way(peer).inbox.is_empty(), "what has come before goes first");
        let window = &mut at.way(peer).window;
        if window.on_taken(header.taken).is_err() {
            return false;
        }
        window.pass();
        self.combine(action, bytes);
        true
    }

    /// Takes a portion that has arrived before and was kept.
    // spec: COLL-9, COLL-10
    #[inline(never)]
    fn take_arrived(
        &mut self,
        at: &mut Member,
        peer: PeerId,
        action: Action,
        out: &mut Outgoing,
    ) -> Result<bool, GroupError> {
        let Some(arrived) = at.take_arrived(peer, self.header.sequence, out)? else {
            return Ok(false);
        };
        let is_due = arrived.signature == self.header.signature;
        match arrived.bytes {
            Portion::Short(mut bytes) if is_due && bytes.len() == self.bytes.len() => {
                self.combine(action, &mut bytes);
                Ok(true)
            }
            Portion::Long(mut bytes) if is_due && bytes.len() == self.bytes.len() => {
                self.combine(action, &mut bytes);
                Ok(true)
            }
            _ => {
                let call = call_of(self.operation, self.bytes.len());
                let due = (&arrived, self.bytes.len());
                Err(mismatch(peer, call, due, at.members.len()))
            }
        }
    }

    #[inline(always)]
    fn combine(&mut self, action: Action, bytes: &mut [u8]) {
        debug_assert!(bytes.len() == self.bytes.len(), "all members' vectors are as long");
        let Some((combine, number)) = self.operation else { return };
        if action == Action::FoldAfter {
            combine.apply(number, self.bytes, bytes, &[]);
        } else {
            combine.apply(number, bytes, self.bytes, &[]);
            self.bytes.copy_from_slice(bytes);
        }
    }
}

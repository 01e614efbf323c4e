//! A collective under way at one member: the steps of its plan, on bytes.
use super::group::GroupError;
use super::member::{Arrived, Member, Portion};
use super::work::Work;
use crate::active::outgoing::Outgoing;
use crate::error::PostError;
use ayre_proto::collective::call::{CallMismatch, CallShape};
use ayre_proto::collective::portion::{CHUNK, Header, PORTION};
use ayre_proto::collective::{
    Action, Blocks, Collective, MEMBERS_MAX, Place, Plan, Schedule, Step, Task,
};
use ayre_proto::units::PeerId;
use std::ops::Range;

/// Bytes of a portion at most: what a landing takes as one piece.
// spec: COLL-12
pub(super) const PORTION_MAX: usize = 1 << 15;

const _: () = {
    let least = PORTION_MAX * CHUNK as usize / MEMBERS_MAX;
    assert!(least >= 64, "a chunk has some bytes of each block");
    assert!(PORTION_MAX.is_multiple_of(16), "no number is cut in two");
};

/// Bytes that are done at a time: of a vector, or of each block, so that no more portions than a
/// window has are due from one member to another before anything is taken.
// spec: COLL-11, COLL-15
pub(super) const fn chunk_of(task: Task, place: Place) -> usize {
    match (is_vector(task.collective), task.schedule) {
        (false, _) => (PORTION_MAX * CHUNK as usize / place.members) & !63,
        (true, Schedule::Spread | Schedule::Ring) => PORTION_MAX * place.members,
        (true, _) => PORTION_MAX,
    }
}

/// Whether all members have vectors of the same number of elements, and it does not matter which
/// of them are whose.
const fn is_vector(collective: Collective) -> bool {
    use Collective as C;
    matches!(collective, C::Barrier | C::Broadcast | C::Reduce | C::Allreduce | C::Scan)
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// Something must come from this peer first.
    Waits(PeerId),
    /// Something must go out first, and nobody tells when there is room for it.
    Busy,
}

/// A collective that was begun.
#[derive(Debug)]
pub(super) struct Running<'a> {
    call: CallShape,
    place: Place,
    /// Of the chunk that is being done.
    plan: Plan,
    /// Bytes of each block that are before this chunk.
    done: usize,
    sequence: u32,
    signature: u32,
    pub(super) work: Work<'a>,
    /// No earlier collective of the group is under way here.
    pub(super) is_oldest: bool,
    step: Option<Step>,
    /// Bytes of the step, and how many of them are done.
    len: usize,
    at: usize,
    /// Blocks to be sent that do not lie one behind the other.
    packed: Vec<u8>,
    /// Bytes that are sent of a portion which a landing has no room for yet.
    half_sent: Option<usize>,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        (call, place): (CallShape, Place),
        plan: Plan,
        sequence: u32,
        work: Work<'a>,
    ) -> Self {
        debug_assert!(place.member < place.members, "a member does it");
        Self {
            call,
            place,
            plan,
            done: 0,
            sequence,
            signature: call.signature(),
            work,
            is_oldest: true,
            step: None,
            len: 0,
            at: 0,
            packed: Vec::new(),
            half_sent: None,
        }
    }

    pub(super) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// What holds between two steps.
    fn check(&self) {
        debug_assert!(self.at <= self.len, "no more is done of a step than it has");
        let is_sending = matches!(self.step, Some(Step::Send { .. }));
        debug_assert!(self.half_sent.is_none() || is_sending, "only what is sent is half sent");
    }

    /// Goes on as far as that is possible without waiting.
    // spec: COLL-8
    pub(super) fn advance(
        &mut self,
        group: &mut Member,
        out: &mut Outgoing,
    ) -> Result<Progress, GroupError> {
        loop {
            let step = match self.step {
                Some(step) => step,
                None => match self.plan.next() {
                    Some(step) if self.is_idle(step) => continue,
                    Some(step) => self.begin(step),
                    None if self.next_chunk() => continue,
                    None => return Ok(Progress::Done),
                },
            };
            let progress = match step {
                Step::Send { to, blocks } => self.send(group.members[to], blocks, group, out)?,
                Step::Receive { from, blocks, action } => {
                    self.receive(group.members[from], (blocks, action), group, out)?
                }
                Step::PushOwn { blocks } => {
                    self.work.push_own(blocks);
                    Progress::Done
                }
            };
            self.check();
            if progress != Progress::Done {
                group.check(self.sequence)?;
                return Ok(progress);
            }
            debug_assert!(self.half_sent.is_none(), "a step that is done is sent whole");
            self.step = None;
        }
    }

    /// What is long is done chunk by chunk, so that all that is under way stays in the caches, and
    /// those far from its source get the first one early.
    // spec: COLL-15
    fn next_chunk(&mut self) -> bool {
        debug_assert!(self.step.is_none(), "a chunk is done before the next one begins");
        let task = self.call.task;
        let chunk = chunk_of(task, self.place);
        self.done += chunk;
        let is_left = match is_vector(task.collective) {
            true => self.work.next_chunk(chunk),
            false => self.work.slice(self.done, chunk),
        };
        match Plan::new(task, self.place) {
            Some(plan) if is_left => {
                self.plan = plan;
                true
            }
            _ => false,
        }
    }

    /// Whether nothing is left of the blocks of a step: then it was done in an earlier chunk.
    fn is_idle(&self, step: Step) -> bool {
        self.done > 0 && self.work.len(step) == 0
    }

    fn begin(&mut self, step: Step) -> Step {
        let (Step::Send { blocks, .. } | Step::Receive { blocks, .. } | Step::PushOwn { blocks }) =
            step;
        self.step = Some(step);
        self.at = 0;
        self.len = self.work.len(step);
        if matches!(step, Step::Send { .. }) {
            let (bytes, layout) = self.work.sends();
            if layout.run(blocks).is_none() {
                self.packed = layout.pack(blocks, bytes);
            }
        }
        step
    }

    /// Portions of a step: one at least, for the news. True where that was the last.
    fn is_last(&mut self, len: usize) -> bool {
        self.at += len;
        self.at == self.len
    }

    // spec: COLL-11, COLL-12
    fn send(
        &mut self,
        peer: PeerId,
        blocks: Blocks,
        group: &mut Member,
        out: &mut Outgoing,
    ) -> Result<Progress, GroupError> {
        debug_assert!(peer != out.port.id, "nobody sends to itself");
        loop {
            let id = group.id;
            let window = &mut group.way(peer).window;
            let was_begun = self.half_sent.is_some();
            if !was_begun && !window.is_open(self.is_oldest) {
                return Ok(Progress::Waits(peer));
            }
            let len = PORTION_MAX.min(self.len - self.at);
            let (sequence, signature) = (self.sequence, self.signature);
            let header = Header { group: id, sequence, signature, taken: window.taken() };
            let bytes = portion(&self.work, &self.packed, blocks, self.at..self.at + len);
            let sent = out.send_portion(peer, header, bytes, &mut self.half_sent);
            if !was_begun && (sent == Ok(true) || self.half_sent.is_some()) {
                window.send(true);
            }
            match sent {
                Ok(true) if self.is_last(len) => return Ok(Progress::Done),
                Ok(true) => {}
                Ok(false) => return Ok(Progress::Waits(peer)),
                Err(PostError::Busy(_)) => return Ok(Progress::Busy),
                Err(PostError::Fault(_)) => return Err(GroupError::PeerDied(peer)),
            }
        }
    }

    // spec: COLL-9, COLL-10, COLL-11
    fn receive(
        &mut self,
        peer: PeerId,
        (blocks, action): (Blocks, Action),
        group: &mut Member,
        out: &mut Outgoing,
    ) -> Result<Progress, GroupError> {
        debug_assert!(self.half_sent.is_none(), "what is half sent goes first");
        debug_assert!(peer != out.port.id, "nobody hears from itself");
        loop {
            let Some(arrived) = group.take_arrived(peer, self.sequence, out)? else {
                return Ok(Progress::Waits(peer));
            };
            let len = PORTION_MAX.min(self.len - self.at);
            if arrived.signature != self.signature || arrived.bytes.len() != len {
                return Err(mismatch(peer, self.call, (&arrived, len), self.place.members));
            }
            let (to, at) = ((blocks, action), (self.at, self.len));
            match arrived.bytes {
                Portion::Short(mut bytes) => self.work.take(to, at, &mut bytes),
                Portion::Long(mut bytes) => self.work.take(to, at, &mut bytes),
                Portion::Landed(piece) => self.work.take_landed(to, at, (peer, piece), out),
            }
            if self.is_last(len) {
                return Ok(Progress::Done);
            }
        }
    }

    /// Gives up: what is half sent is sent all the same, for the peer takes nothing else before.
    pub(super) fn give_up(&mut self, group: &Member, out: &mut Outgoing) {
        if let (Some(sent), Some(Step::Send { to, blocks })) = (self.half_sent.take(), self.step) {
            let len = PORTION_MAX.min(self.len - self.at);
            let bytes = portion(&self.work, &self.packed, blocks, self.at..self.at + len);
            out.keep_rest(group.members[to], PORTION, bytes, sent);
        }
    }
}

/// What a peer's portion tells that does not fit a call, where so many bytes were due.
// spec: COLL-10, COLL-19
#[cold]
pub(super) fn mismatch(
    peer: PeerId,
    ours: CallShape,
    (arrived, due): (&Arrived, usize),
    members: usize,
) -> GroupError {
    let came = arrived.bytes.len();
    debug_assert!(arrived.signature != ours.signature() || came != due, "something differs");
    let theirs = match arrived.signature == ours.signature() {
        true => Some(ours),
        false => ours.of_signature(arrived.signature, members, came),
    };
    let bytes = [due, came].map(|bytes| bytes as u32);
    GroupError::Mismatch { peer, difference: CallMismatch { ours, theirs, bytes } }
}

/// Some bytes of blocks: as they lie, or packed.
#[inline]
fn portion<'a>(work: &'a Work<'_>, packed: &'a [u8], blocks: Blocks, at: Range<usize>) -> &'a [u8] {
    let (bytes, layout) = work.sends();
    match layout.run(blocks) {
        Some(range) => &bytes[range][at],
        None => &packed[at],
    }
}

//! A collective under way at one member: it carries out the steps of its plan on bytes.
use super::group::GroupError;
use super::member::{Arrived, Member, Portion};
use super::work::Work;
use crate::active::outgoing::Outgoing;
use crate::error::PostError;
use ayre_proto::collective::call::{CallMismatch, CallShape};
use ayre_proto::collective::portion::{Header, PORTION, PORTION_MAX, chunk_of};
use ayre_proto::collective::{Action, Blocks, Collective, Place, Plan, Step};
use ayre_proto::units::PeerId;
use std::ops::Range;

/// Whether the collective works on vectors of equal length, rather than on a block for each member.
const fn is_vector(collective: Collective) -> bool {
    use Collective as C;
    matches!(collective, C::Barrier | C::Broadcast | C::Reduce | C::Allreduce | C::Scan)
}

/// The progress of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// It waits for a portion of this peer.
    Waits(PeerId),
    /// It waits for room to send. No event tells of that.
    Busy,
}

/// A collective under way.
#[derive(Debug)]
pub(super) struct Running<'a> {
    call: CallShape,
    place: Place,
    /// The plan of the current chunk.
    plan: Plan,
    /// Bytes of each block before the current chunk.
    done: usize,
    sequence: u32,
    signature: u32,
    pub(super) work: Work<'a>,
    /// No earlier collective of the group is under way here.
    pub(super) is_oldest: bool,
    step: Option<Step>,
    /// Bytes of the current step, and how many of them are done.
    len: usize,
    at: usize,
    /// A copy of blocks to be sent that lie apart.
    packed: Vec<u8>,
    /// The bytes already sent of a portion that waits for room in a landing.
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

    /// Checks the invariants between two steps.
    fn check(&self) {
        debug_assert!(self.at <= self.len, "no more is done of a step than it has");
        let is_sending = matches!(self.step, Some(Step::Send { .. }));
        debug_assert!(self.half_sent.is_none() || is_sending, "only what is sent is half sent");
    }

    /// Does as many steps as possible without waiting.
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

    /// Goes to the next chunk of long values; false behind the last one. Chunks stay in the caches,
    /// and members far from the source get the first chunk early.
    // spec: COLL-15
    fn next_chunk(&mut self) -> bool {
        debug_assert!(self.step.is_none(), "a chunk is done before the next one begins");
        let task = self.call.task;
        let chunk = chunk_of(task, self.place.members);
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

    /// Whether a step has no bytes in this chunk, because earlier chunks have done all of them.
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

    /// Notes a portion of a step; true if it was the last. A step without bytes has one portion.
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

    /// Gives the collective up. A portion that is half sent is still sent whole, because the peer
    /// takes no other message before its end.
    pub(super) fn give_up(&mut self, group: &Member, out: &mut Outgoing) {
        if let (Some(sent), Some(Step::Send { to, blocks })) = (self.half_sent.take(), self.step) {
            let len = PORTION_MAX.min(self.len - self.at);
            let bytes = portion(&self.work, &self.packed, blocks, self.at..self.at + len);
            out.keep_rest(group.members[to], PORTION, bytes, sent);
        }
    }
}

/// Returns the error for a portion that does not fit this member's call, which has `due` bytes.
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

/// A part of the bytes of blocks, from their own place or from the packed copy.
#[inline]
fn portion<'a>(work: &'a Work<'_>, packed: &'a [u8], blocks: Blocks, at: Range<usize>) -> &'a [u8] {
    let (bytes, layout) = work.sends();
    match layout.run(blocks) {
        Some(range) => &bytes[range][at],
        None => &packed[at],
    }
}

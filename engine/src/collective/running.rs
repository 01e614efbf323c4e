//! A collective under way at one member: the steps of its plan, on bytes.
use super::group::{GroupError, Portion, State};
use super::layout::Layout;
use super::values::{Changed, Read};
use crate::active::outgoing::Outgoing;
use crate::error::{Busy, PostError};
use ayre_proto::active::landing::Piece;
use ayre_proto::active::record::PORTION;
use ayre_proto::collective::portion::{CHUNK, HEADER, Header};
use ayre_proto::collective::{
    Action, Blocks, Collective, Place, Plan, Schedule, Step, Task, bracket,
};
use ayre_proto::combine::{Combine, Number};
use ayre_proto::limits::{EAGER_MAX, LINE_PAYLOAD};
use ayre_proto::units::PeerId;
use std::ops::Range;

/// Bytes of a portion at most: what a landing takes as one piece.
// spec: COLL-12
pub(crate) const PORTION_MAX: usize = 1 << 15;

/// Bytes that are combined at a time out of a landing: what no peer can change meanwhile.
const READ_MAX: usize = 4096;

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

/// What a collective works on.
#[derive(Debug)]
pub(super) struct Work<'a> {
    /// What is sent, where that is not what comes: the root's of a scatter, everybody's of an
    /// alltoall.
    from: Option<(Read<'a>, Layout)>,
    /// What comes, and goes on.
    held: Held<'a>,
    layout: Layout,
    /// Where all of each block is, while `layout` and that of `from` say it of a chunk.
    whole: Option<(Layout, Option<Layout>)>,
    combine: Option<(Combine, Number)>,
    /// Of a scan, what this member has so far of those up to itself.
    prefix: Option<Vec<u8>>,
    /// Parts of a sum that wait for the other half of their bracket.
    stack: Vec<u8>,
    pushed: usize,
    members: usize,
}

/// The memory of a collective: the program's, or its own where a member holds others' blocks too.
#[derive(Debug)]
pub(super) enum Held<'a> {
    Values(Changed<'a>),
    Staged(Vec<u8>),
    /// Of what is staged only its own goes to the program.
    Through {
        staged: Vec<u8>,
        own: Range<usize>,
        values: Option<Changed<'a>>,
    },
}

impl<'a> Held<'a> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Values(values) => values.bytes(),
            Self::Staged(bytes) | Self::Through { staged: bytes, .. } => bytes,
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Values(values) => values.bytes_mut(),
            Self::Staged(bytes) | Self::Through { staged: bytes, .. } => bytes,
        }
    }

    /// The program's values, when all is done.
    fn finish(self) -> Option<Changed<'a>> {
        match self {
            Self::Values(values) => Some(values),
            Self::Staged(_) => None,
            Self::Through { staged, own, mut values } => {
                values
                    .iter_mut()
                    .for_each(|into| into.bytes_mut().copy_from_slice(&staged[own.clone()]));
                values
            }
        }
    }
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
    task: Task,
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
        (task, place): (Task, Place),
        plan: Plan,
        (sequence, signature): (u32, u32),
        work: Work<'a>,
    ) -> Self {
        Self {
            task,
            place,
            plan,
            done: 0,
            sequence,
            signature,
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

    /// Goes on as far as that is possible without waiting.
    // spec: COLL-8
    pub(super) fn advance(
        &mut self,
        group: &mut State,
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
            if progress != Progress::Done {
                group.check(self.sequence)?;
                return Ok(progress);
            }
            self.step = None;
        }
    }

    /// What is long is done chunk by chunk, so that all that is under way stays in the caches, and
    /// those far from its source get the first one early.
    // spec: COLL-15
    fn next_chunk(&mut self) -> bool {
        let chunk = chunk_of(self.task, self.place);
        self.done += chunk;
        let is_left = match is_vector(self.task.collective) {
            true => self.work.next_chunk(chunk),
            false => self.work.slice(self.done, chunk),
        };
        match Plan::new(self.task, self.place) {
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
        group: &mut State,
        out: &mut Outgoing,
    ) -> Result<Progress, GroupError> {
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
        group: &mut State,
        out: &mut Outgoing,
    ) -> Result<Progress, GroupError> {
        loop {
            let Some(arrived) = group.take_arrived(peer, self.sequence, out)? else {
                return Ok(Progress::Waits(peer));
            };
            let len = PORTION_MAX.min(self.len - self.at);
            if arrived.signature != self.signature || arrived.bytes.len() != len {
                return Err(GroupError::Mismatch(peer));
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
    pub(super) fn give_up(&mut self, group: &State, out: &mut Outgoing) {
        if let (Some(sent), Some(Step::Send { to, blocks })) = (self.half_sent.take(), self.step) {
            let len = PORTION_MAX.min(self.len - self.at);
            let bytes = portion(&self.work, &self.packed, blocks, self.at..self.at + len);
            out.keep_rest(group.members[to], PORTION, bytes, sent);
        }
    }
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

impl<'a> Work<'a> {
    pub(super) fn new(
        layout: Layout,
        from: Option<(Read<'a>, Layout)>,
        held: Held<'a>,
        (combine, members): (Option<(Combine, Number)>, usize),
    ) -> Self {
        let (prefix, stack) = (None, Vec::new());
        let whole = None;
        Self { from, held, layout, whole, combine, prefix, stack, pushed: 0, members }
    }

    /// The same of a scan.
    pub(super) fn with_prefix(mut self) -> Self {
        self.prefix = Some(self.held.bytes().to_vec());
        self
    }

    /// What the program gets.
    pub(super) fn finish(mut self) -> Option<Changed<'a>> {
        if let Some(prefix) = self.prefix.take() {
            self.held.bytes_mut().copy_from_slice(&prefix);
        }
        self.held.finish()
    }

    /// The first chunk of long blocks.
    pub(super) fn in_chunks(mut self, chunk: usize) -> Self {
        let from = self.from.as_ref().map(|(_, layout)| layout.clone());
        let whole = self.layout.clone().placed();
        if whole.longest().max(from.as_ref().map_or(0, Layout::longest)) > chunk {
            self.whole = Some((whole, from));
            self.slice(0, chunk);
        }
        self
    }

    /// The next chunk of each block; false where there is none.
    fn slice(&mut self, at: usize, chunk: usize) -> bool {
        let Some((layout, from)) = &self.whole else { return false };
        let longest = from.as_ref().map_or(0, Layout::longest);
        if at >= layout.longest().max(longest) {
            return false;
        }
        self.layout = layout.slice(at, chunk);
        if let (Some((_, layout)), Some(whole)) = (&mut self.from, from) {
            *layout = whole.slice(at, chunk);
        }
        true
    }

    /// The next chunk of a vector; false where there is none.
    fn next_chunk(&mut self, chunk: usize) -> bool {
        let next = self.layout.next_chunk(self.held.bytes().len(), chunk);
        let is_left = next.is_some();
        next.into_iter().for_each(|layout| self.layout = layout);
        is_left
    }

    /// Bytes of a step.
    fn len(&self, step: Step) -> usize {
        match step {
            Step::Send { blocks, .. } => self.sends().1.len(blocks),
            Step::Receive { blocks, .. } | Step::PushOwn { blocks } => self.layout.len(blocks),
        }
    }

    /// What is sent, and where blocks lie in it.
    fn sends(&self) -> (&[u8], &Layout) {
        match &self.from {
            Some((source, layout)) => (source.bytes(), layout),
            None => (self.held.bytes(), &self.layout),
        }
    }

    /// A portion has come: from so many bytes of its blocks on, of so many.
    fn take(
        &mut self,
        (blocks, action): (Blocks, Action),
        (at, len): (usize, usize),
        bytes: &mut [u8],
    ) {
        if action == Action::Place {
            return self.layout.place(blocks, at, bytes, self.held.bytes_mut());
        }
        if action == Action::Push {
            return self.push(blocks, (at, len), bytes);
        }
        let Some((combine, number)) = self.combine else { return };
        let first = self.layout.run(blocks).map_or(0, |range| range.start) + at;
        let range = first..first + bytes.len();
        if action == Action::FoldAfter {
            return combine.apply(number, &mut self.held.bytes_mut()[range], bytes, &[]);
        }
        if let Some(prefix) = &mut self.prefix {
            let mut before = bytes.to_vec();
            combine.apply(number, &mut before, &prefix[range.clone()], &[]);
            prefix[range.clone()].copy_from_slice(&before);
        }
        let held = &mut self.held.bytes_mut()[range];
        combine.apply(number, bytes, held, &[]);
        held.copy_from_slice(bytes);
    }

    /// The same of a portion that lies in a landing yet.
    fn take_landed(
        &mut self,
        (blocks, action): (Blocks, Action),
        (at, len): (usize, usize),
        (peer, piece): (PeerId, Piece),
        out: &mut Outgoing,
    ) {
        let bytes = piece.len as usize;
        if let (Action::Place, Some(range)) = (action, self.layout.run(blocks)) {
            let into = &mut self.held.bytes_mut()[range][at..at + bytes];
            return out.read_landing(peer, piece.offset, into);
        }
        let mut buffer = [0; READ_MAX];
        for done in (0..bytes).step_by(READ_MAX) {
            let read = &mut buffer[..READ_MAX.min(bytes - done)];
            out.read_landing(peer, piece.offset + done as u64, read);
            self.take((blocks, action), (at + done, len), read);
        }
    }

    fn push_own(&mut self, blocks: Blocks) {
        let range = self.layout.run(blocks).unwrap_or(0..0);
        let own = self.held.bytes()[range].to_vec();
        self.push(blocks, (0, own.len()), &own);
    }

    /// Bytes of the part that goes on top of the stack: into the one there, where they are its
    /// other half.
    // spec: COLL-7
    fn push(&mut self, blocks: Blocks, (at, len): (usize, usize), bytes: &[u8]) {
        let Some((combine, number)) = self.combine else { return };
        let closes = bracket::closes(self.pushed, self.members) as usize;
        if closes == 0 {
            self.stack.extend_from_slice(bytes);
        } else {
            let top = self.stack.len() - len + at;
            combine.apply(number, &mut self.stack[top..top + bytes.len()], bytes, &[]);
        }
        if at + bytes.len() < len {
            return;
        }
        for _ in 1..closes {
            let from = self.stack.len() - 2 * len;
            let (below, top) = self.stack.split_at_mut(from + len);
            combine.apply(number, &mut below[from..], top, &[]);
            self.stack.truncate(from + len);
        }
        self.pushed += 1;
        if self.pushed == self.members {
            self.pushed = 0;
            let stack = std::mem::take(&mut self.stack);
            let range = self.layout.run(blocks).unwrap_or(0..0);
            self.held.bytes_mut()[range].copy_from_slice(&stack);
        }
    }
}

impl Outgoing {
    /// Sends a portion, or as much of a long one as there is room for: true where that was all,
    /// false where the rest waits for a record of the peer.
    // spec: COLL-12
    #[inline]
    fn send_portion(
        &mut self,
        to: PeerId,
        header: Header,
        bytes: &[u8],
        half_sent: &mut Option<usize>,
    ) -> Result<bool, PostError> {
        if half_sent.is_none() && self.peer(to).is_busy() {
            return Err(Busy::MessageLaneFull.into());
        }
        let sent = self.post_portion(to, &header.encode(), bytes, half_sent);
        if let Err(PostError::Busy(_)) = sent {
            // Room in a lane wakes nobody.
            self.stir();
        }
        sent
    }

    #[inline]
    fn post_portion(
        &mut self,
        to: PeerId,
        header: &[u8; HEADER],
        bytes: &[u8],
        half_sent: &mut Option<usize>,
    ) -> Result<bool, PostError> {
        let len = HEADER + bytes.len();
        if len <= LINE_PAYLOAD {
            return self
                .port
                .send(to, PORTION, lay(&mut [0; LINE_PAYLOAD], header, bytes))
                .map(|()| true);
        }
        if len <= EAGER_MAX {
            return self
                .port
                .send(to, PORTION, lay(&mut [0; EAGER_MAX], header, bytes))
                .map(|()| true);
        }
        let mut sent = half_sent.unwrap_or(0);
        let advanced = self.advance(to, (PORTION, header), bytes, &mut sent);
        *half_sent = (sent > 0 && !matches!(advanced, Ok(true))).then_some(sent);
        // What others send to the peer meanwhile comes behind.
        let is_held = half_sent.is_some();
        if self.peer(to).is_held != is_held {
            self.peer(to).is_held = is_held;
            self.stir();
        }
        advanced
    }
}

/// A header and what comes behind.
#[inline]
fn lay<'a>(record: &'a mut [u8], header: &[u8; HEADER], bytes: &[u8]) -> &'a [u8] {
    let len = HEADER + bytes.len();
    record[..HEADER].copy_from_slice(header);
    record[HEADER..len].copy_from_slice(bytes);
    &record[..len]
}

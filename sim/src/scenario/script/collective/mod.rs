//! Collectives of the nodes that have any: each carries out the plan of the protocol.
//!
//! ```text
//!   statement --> Plan --steps--> Work: blocks of the chunk
//!                                   |  portions, as the protocol has them
//!                                   v
//!                                  exchange: a message, or puts into a landing
//! ```
mod work;

pub(super) use self::work::About;
use self::work::{NUMBER, Work};
use ayre_proto::collective::call::{CallMismatch, CallShape};
use ayre_proto::collective::portion::{Header, PORTION_MAX, chunk_of};
use ayre_proto::collective::{Blocks, Collective, MEMBERS_MAX, Place, Plan, Schedule, Step, Task};
use ayre_proto::combine::Combine;
use core::mem;

const _: () = assert!(MEMBERS_MAX >= ayre_proto::limits::PEERS_MAX, "all nodes may be members");

/// The group of a script: there is one.
pub(super) const GROUP: u32 = 1;

/// Collectives, by the first words of their statements.
pub(super) const COLLECTIVES: [(&str, Collective); Collective::ALL.len()] = [
    ("barrier", Collective::Barrier),
    ("broadcast", Collective::Broadcast),
    ("reduce", Collective::Reduce),
    ("allreduce", Collective::Allreduce),
    ("gather", Collective::Gather),
    ("scatter", Collective::Scatter),
    ("allgather", Collective::Allgather),
    ("alltoall", Collective::Alltoall),
    ("scan", Collective::Scan),
    ("reduce-scatter", Collective::ReduceScatter),
];

/// A statement of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joint {
    pub(super) collective: Collective,
    /// Bytes of the vector, or of each block.
    pub(super) len: u64,
    /// How numbers are combined, where they are.
    pub(super) combine: Option<Combine>,
    /// The root's node, if it is not the first member.
    pub(super) root: Option<u32>,
    /// If it is not the usual one.
    pub(super) schedule: Option<Schedule>,
}

impl Joint {
    /// The first word of the statement.
    pub(super) fn word(&self) -> &'static str {
        let is_it = |(_, collective): &&(&str, Collective)| *collective == self.collective;
        COLLECTIVES.iter().find(is_it).map_or("", |(word, _)| word)
    }

    /// The task of a group; nothing, if the root is no member of it.
    pub(super) fn task(&self, group: &[u32]) -> Option<Task> {
        let Self { collective, len, root, .. } = *self;
        let root = root.map_or(Some(0), |root| group.iter().position(|member| *member == root))?;
        let usual = || Schedule::usual(collective, group.len(), len as usize);
        Some(Task { collective, schedule: self.schedule.unwrap_or_else(usual), root })
    }

    pub(super) fn about(&self, task: Task, place: Place, sequence: u32) -> About {
        let chunk = chunk_of(task, place.members) as u64;
        About { joint: *self, place, root: task.root, sequence, chunk }
    }
}

/// A collective under way at a member.
#[derive(Debug)]
pub(super) struct Running {
    call: CallShape,
    about: About,
    plan: Plan,
    work: Work,
    step: Option<Step>,
    /// Bytes of the step, and how many of them are done.
    len: usize,
    at: usize,
    /// The bytes of a step: all that are sent, or those that have come.
    bytes: Vec<u8>,
    /// How much of a long portion has been sent.
    pub(super) half_sent: Option<usize>,
}

impl Running {
    pub(super) fn new(joint: &Joint, group: &[u32], node: u32, sequence: u32) -> Option<Self> {
        let member = group.iter().position(|member| *member == node)?;
        let place = Place { member, members: group.len() };
        let task = joint.task(group)?;
        let operation = joint.combine.map(|combine| (combine, NUMBER));
        let bytes = if joint.collective.has_vector() { joint.len } else { 0 };
        let about = joint.about(task, place, sequence);
        Some(Self {
            call: CallShape { task, operation, bytes },
            about,
            plan: Plan::new(task, place)?,
            work: Work::new(about, 0),
            step: None,
            len: 0,
            at: 0,
            bytes: vec![],
            half_sent: None,
        })
    }

    /// The step that is to be done; nothing, if all are done.
    pub(super) fn next(&mut self) -> Result<Option<Step>, String> {
        while self.step.is_none() {
            let Some(step) = self.plan.next() else {
                self.work.difference().map_or(Ok(()), Err)?;
                let chunk = self.work.chunk + 1;
                let plan = Plan::new(self.call.task, self.about.place);
                match plan.filter(|_| self.about.has_chunk(chunk)) {
                    Some(plan) => (self.plan, self.work) = (plan, Work::new(self.about, chunk)),
                    None => return Ok(None),
                }
                continue;
            };
            (self.len, self.at) = (self.work.len(step), 0);
            if self.len == 0 && self.work.chunk > 0 {
                continue;
            }
            self.bytes = match step {
                Step::Send { blocks, .. } => self.work.sent(blocks),
                _ => vec![],
            };
            self.step = Some(step);
        }
        Ok(self.step)
    }

    /// The header of a portion, without the count that its window adds.
    pub(super) fn header(&self) -> Header {
        let (sequence, signature) = (self.about.sequence, self.call.signature());
        Header { group: GROUP, sequence, signature, taken: 0 }
    }

    /// The bytes of the portion that is to be sent.
    pub(super) fn sent(&self) -> Vec<u8> {
        self.bytes[self.at..self.at + self.portion()].to_vec()
    }

    fn portion(&self) -> usize {
        PORTION_MAX.min(self.len - self.at)
    }

    /// The portion is sent. Returns whether the step is done.
    pub(super) fn on_sent(&mut self) -> bool {
        self.at += self.portion();
        self.half_sent = None;
        self.is_done()
    }

    /// Takes a portion of a member. Returns whether the step is done.
    pub(super) fn on_portion(
        &mut self,
        header: Header,
        mut bytes: Vec<u8>,
    ) -> Result<bool, String> {
        let due = self.header();
        if header.sequence != due.sequence {
            let [ours, theirs] = [due, header].map(|header| header.sequence);
            return Err(format!("is collective {ours} of this member, and {theirs} of that one"));
        }
        if header.signature != due.signature || bytes.len() != self.portion() {
            return Err(self.mismatch(header, bytes.len()).to_string());
        }
        self.at += bytes.len();
        self.bytes.append(&mut bytes);
        Ok(self.is_done())
    }

    fn is_done(&mut self) -> bool {
        let is_done = self.at == self.len;
        if let Some(Step::Receive { blocks, action, .. }) = self.step.filter(|_| is_done) {
            self.work.take(blocks, action, mem::take(&mut self.bytes));
        }
        if is_done {
            self.step = None;
        }
        is_done
    }

    /// The member's own blocks have their turn.
    pub(super) fn push_own(&mut self, blocks: Blocks) {
        self.work.push_own(blocks);
        self.step = None;
    }

    /// How a portion differs from what is due.
    fn mismatch(&self, header: Header, came: usize) -> CallMismatch {
        let (ours, due) = (self.call, self.portion());
        let theirs = match header.signature == ours.signature() {
            true => Some(ours),
            false => ours.of_signature(header.signature, self.about.place.members, came),
        };
        CallMismatch { ours, theirs, bytes: [due, came].map(|bytes| bytes as u32) }
    }
}

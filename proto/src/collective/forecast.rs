//! The forecast of a collective's time by each schedule, for links that differ.
//!
//! ```text
//!   member 0   o|send|o|send|                    o: a sender's and a receiver's own part, one
//!                  \      \                         behind the other
//!   link 0-1        |=====|\                     =: bytes pass a link one behind the other
//!   link 0-2               |=====|
//!                         L \     \              L: and are under way besides
//!   member 1                 |o receive|
//!   member 2                        |o receive|
//! ```
//!
//! All members' plans are run in virtual time: LogGP with a cost for each link. A link that carries
//! other traffic takes longer, and a schedule that avoids it wins. Everything is computed with
//! integers, from a table. So members with the same table choose the same schedule.
//!
//! A link holds one message that was not taken yet. That delays nobody: it only says in which order
//! the members are computed.
use super::portion::PORTION_MAX;
use super::{Blocks, Collective, MEMBERS_MAX, Place, Plan, Schedule, Step, Task};
use alloc::boxed::Box;
use alloc::vec;

/// Members of the largest group whose collectives are forecast; it bounds the work.
// spec: COLL-16
pub const FORECAST_MAX: usize = 64;
/// Chunks that are run through; what comes behind takes as long as the last one each.
const CHUNKS: u64 = 3;
/// Bytes of a portion.
const PORTION: u64 = PORTION_MAX as u64;
/// Another schedule is worth it when it saves an eighth of the usual one's time.
const GAIN: u64 = 8;

const _: () = assert!(FORECAST_MAX <= MEMBERS_MAX);

/// A cost in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Nanoseconds for each message.
    pub message_ns: u32,
    /// Picoseconds for each byte.
    pub byte_ps: u32,
}

impl Cost {
    /// The cost of bytes alone.
    fn bytes(self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.byte_ps.into()) / 1000
    }

    /// The cost of `bytes` bytes and of the messages that they take.
    fn messages(self, bytes: u64) -> u64 {
        let portions = bytes.div_ceil(PORTION).max(1);
        portions.saturating_mul(self.message_ns.into()).saturating_add(self.bytes(bytes))
    }
}

/// Bytes of a vector, or of each block, and how many of them are done at a time.
// spec: COLL-15
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of a chunk.
    pub chunk: u64,
}

/// A member in virtual time.
#[derive(Clone, Debug, Default)]
struct Member {
    plan: Option<Plan>,
    step: Option<Step>,
    now: u64,
    /// Bytes of chunks that it is done with.
    done: u64,
}

/// A link in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    cost: Cost,
    /// The time when the bytes before have passed.
    free_at: u64,
    /// The time of arrival of the last message, if it was not taken yet.
    arrives: Option<u64>,
}

/// The table, and room to compute in.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The cost of a message at its sender and at its receiver.
    ends: Cost,
    members: Box<[Member]>,
    /// The links from each member to each other one.
    links: Box<[Link]>,
}

impl Forecast {
    /// A forecast for a group, in which all links cost nothing. Returns `None` for more than
    /// [`FORECAST_MAX`] members.
    // spec: COLL-16
    pub fn new(members: usize, ends: Cost) -> Option<Self> {
        (1..=FORECAST_MAX).contains(&members).then(|| Self {
            ends,
            members: vec![Member::default(); members].into(),
            links: vec![Link::default(); members * members].into(),
        })
    }

    /// Says what the link from a member to another one costs.
    ///
    /// # Panics
    /// If there are no such members.
    pub fn set(&mut self, from: usize, to: usize, cost: Cost) {
        let members = self.members.len();
        assert!(from < members && to < members, "members of the group");
        self.links[from * members + to].cost = cost;
    }

    /// Nanoseconds until a collective that all members begin at once is over at all; none where
    /// there is no such plan.
    // spec: COLL-16
    pub fn time(&mut self, task: Task, volume: Volume) -> Option<u64> {
        let chunk = volume.chunk.max(1);
        let run = volume.bytes.min(chunk.saturating_mul(CHUNKS));
        let time = self.run(task, Volume { bytes: run, chunk })?;
        let left = volume.bytes - run;
        if left == 0 {
            return Some(time);
        }
        let before = self.run(task, Volume { bytes: run - chunk, chunk })?;
        let each = u128::from(time.saturating_sub(before)) * u128::from(left) / u128::from(chunk);
        Some(time.saturating_add(u64::try_from(each).unwrap_or(u64::MAX)))
    }

    /// The schedule that a collective takes the least time by: the usual one where all links are
    /// alike, and unless another is better by an eighth. Those with other brackets are for what
    /// does not round.
    // spec: COLL-7, COLL-16
    pub fn best(
        &mut self,
        (collective, root): (Collective, usize),
        (usual, is_exact): (Schedule, bool),
        volume: impl Fn(Schedule) -> Volume,
    ) -> Schedule {
        if self.is_even() {
            return usual;
        }
        let mut time = |schedule: Schedule| {
            self.time(Task { collective, schedule, root }, volume(schedule)).unwrap_or(u64::MAX)
        };
        let limit = time(usual);
        let limit = limit - limit / GAIN;
        let may = |one: &Schedule| {
            one.can(collective) && *one != usual && (is_exact || !one.is_exact_only(collective))
        };
        let others = Schedule::ALL.into_iter().filter(may).map(|one| (time(one), one));
        let best = others.min_by_key(|(time, _)| *time);
        best.filter(|(time, _)| *time < limit).map_or(usual, |(_, one)| one)
    }

    /// Whether all links cost the same.
    fn is_even(&self) -> bool {
        let members = self.members.len();
        let mut others = (0..self.links.len()).filter(|at| at / members != at % members);
        let cost = |at: usize| self.links[at].cost;
        let first = others.next().map(cost);
        others.all(|at| Some(cost(at)) == first)
    }

    fn run(&mut self, task: Task, volume: Volume) -> Option<u64> {
        let members = self.members.len();
        for (member, at) in self.members.iter_mut().enumerate() {
            let plan = Plan::new(task, Place { member, members })?;
            *at = Member { plan: Some(plan), ..Member::default() };
        }
        for link in &mut self.links {
            (link.free_at, link.arrives) = (0, None);
        }
        // Each round somebody goes on: what a plan waits for was sent, or is yet to be.
        while self.members.iter().any(|member| member.plan.is_some()) {
            let mut has_moved = false;
            for member in 0..members {
                has_moved |= self.advance(member, task, volume);
            }
            assert!(has_moved, "plans do not wait for each other in a circle");
        }
        let is_taken = |link: &Link| link.arrives.is_none();
        assert!(self.links.iter().all(is_taken), "what one plan sends another one takes");
        let is_done = |member: &Member| member.done >= volume.bytes;
        debug_assert!(self.members.iter().all(is_done), "a plan ends when all bytes are there");
        self.members.iter().map(|member| member.now).max()
    }

    /// Computes a member as far as is known what comes to it; false where that is not one step.
    fn advance(&mut self, member: usize, task: Task, volume: Volume) -> bool {
        let mut has_moved = false;
        while let Some(plan) = &mut self.members[member].plan {
            let Some(step) = self.members[member].step.take().or_else(|| plan.next()) else {
                self.begin_chunk(member, task, volume);
                has_moved = true;
                continue;
            };
            if !self.take(member, step, task.collective, volume) {
                self.members[member].step = Some(step);
                return has_moved;
            }
            has_moved = true;
        }
        has_moved
    }

    fn begin_chunk(&mut self, member: usize, task: Task, volume: Volume) {
        let place = Place { member, members: self.members.len() };
        let at = &mut self.members[member];
        at.done = at.done.saturating_add(volume.chunk);
        at.plan = if at.done < volume.bytes { Plan::new(task, place) } else { None };
    }

    /// Computes a step, if it can be.
    fn take(&mut self, member: usize, step: Step, of: Collective, volume: Volume) -> bool {
        let members = self.members.len();
        let at = &mut self.members[member];
        let chunk = volume.chunk.min(volume.bytes - at.done);
        match step {
            Step::Send { to, blocks } => {
                let bytes = bytes_of(of, blocks, (chunk, members));
                let link = &mut self.links[member * members + to];
                if link.arrives.is_some() {
                    return false;
                }
                at.now = at.now.saturating_add(self.ends.messages(bytes));
                link.free_at = at.now.max(link.free_at).saturating_add(link.cost.bytes(bytes));
                link.arrives = Some(link.free_at.saturating_add(link.cost.message_ns.into()));
            }
            Step::Receive { from, blocks, .. } => {
                let bytes = bytes_of(of, blocks, (chunk, members));
                let link = &mut self.links[from * members + member];
                let Some(arrives) = link.arrives.take() else { return false };
                at.now = at.now.max(arrives).saturating_add(self.ends.messages(bytes));
            }
            Step::PushOwn { .. } => {}
        }
        true
    }
}

/// Bytes of blocks of a chunk: parts of a vector, or each as long as the chunk.
fn bytes_of(collective: Collective, blocks: Blocks, (chunk, members): (u64, usize)) -> u64 {
    use Collective as C;
    let count = blocks.count as u64;
    match collective {
        C::Gather | C::Scatter | C::Allgather | C::Alltoall => chunk.saturating_mul(count),
        _ if blocks.count == members => chunk,
        _ => (chunk / members as u64).saturating_mul(count),
    }
}

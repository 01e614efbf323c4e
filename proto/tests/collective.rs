//! Plans of all members together, on symbols instead of numbers: every schedule of every
//! collective, for every number of members and every root, in any order of events.
use ayre_netsim::Channels;
use ayre_proto::collective::bracket;
use ayre_proto::collective::call::{CallMismatch, CallShape};
use ayre_proto::collective::portion::{
    HEADER, Header, Notice, PORTION, TAGS, WINDOW, Window, signature,
};
use ayre_proto::collective::{Action, Blocks, Collective, Place, Plan, Schedule, Step, Task};
use ayre_proto::combine::{Combine, Number};
use proptest::prelude::*;

/// A block as an expression, or nothing yet.
type Block = Option<String>;

/// One member at work.
struct Worker {
    plan: Plan,
    step: Option<Step>,
    blocks: Vec<Block>,
    /// The blocks to send, if they differ from those that arrive.
    sends: Option<Vec<Block>>,
    /// Of a scan: what this member has of those up to itself.
    prefix: Vec<Block>,
    stack: Vec<(Vec<Block>, usize)>,
    pushed: usize,
}

fn join(left: &Block, right: &Block) -> Block {
    Some(format!("({}{})", left.as_ref()?, right.as_ref()?))
}

fn join_all(left: &[Block], right: &[Block]) -> Vec<Block> {
    left.iter().zip(right).map(|(left, right)| join(left, right)).collect()
}

/// The order in which members are combined, written as in the specification and not as in the
/// machines.
fn canonical(members: std::ops::Range<usize>, block: usize) -> String {
    if members.len() == 1 {
        return leaf(members.start, block);
    }
    let half = members.len().next_power_of_two() / 2;
    let middle = members.start + half;
    format!(
        "({}{})",
        canonical(members.start..middle, block),
        canonical(middle..members.end, block)
    )
}

fn leaf(member: usize, block: usize) -> String {
    format!("{member}.{block} ")
}

impl Worker {
    fn new(task: Task, place: Place) -> Self {
        let Place { member, members } = place;
        let vector = |owner| (0..members).map(|block| Some(leaf(owner, block))).collect::<Vec<_>>();
        let own = |holds: &dyn Fn(usize) -> bool| {
            (0..members).map(|block| holds(block).then(|| leaf(block, block))).collect::<Vec<_>>()
        };
        let is_root = member == task.root;
        let (blocks, sends) = match task.collective {
            Collective::Barrier => (vec![], None),
            Collective::Broadcast if is_root => (vector(member), None),
            Collective::Broadcast => (vec![None; members], None),
            Collective::Gather | Collective::Allgather => (own(&|block| block == member), None),
            Collective::Scatter => (own(&|_| is_root), None),
            Collective::Alltoall => {
                let mut blocks = vec![None; members];
                blocks[member] = Some(leaf(member, member));
                (blocks, Some(vector(member)))
            }
            _ => (vector(member), None),
        };
        let plan = Plan::new(task, place).expect("there is such a plan");
        let prefix = blocks.clone();
        Self { plan, step: None, blocks, sends, prefix, stack: vec![], pushed: 0 }
    }

    fn read(&self, Blocks { first, count }: Blocks) -> Vec<Block> {
        let from = self.sends.as_ref().unwrap_or(&self.blocks);
        (first..first + count).map(|block| from[block % from.len()].clone()).collect()
    }

    fn write(&mut self, Blocks { first, count }: Blocks, blocks: Vec<Block>) {
        assert_eq!(blocks.len(), count);
        let members = self.blocks.len();
        for (at, block) in (first..).zip(blocks) {
            self.blocks[at % members] = block;
        }
    }

    fn push(&mut self, blocks: Blocks, came: Vec<Block>, members: usize) {
        self.stack.push((came, 1));
        for _ in 0..bracket::closes(self.pushed, members) {
            let (right, many) = self.stack.pop().expect("two parts");
            let (left, more) = self.stack.pop().expect("two parts");
            self.stack.push((join_all(&left, &right), many + more));
        }
        self.pushed += 1;
        assert!(self.stack.len() <= bracket::depth(members));
        if self.pushed == members {
            let (all, many) = self.stack.pop().expect("one part");
            assert_eq!((many, self.stack.len()), (members, 0));
            self.write(blocks, all);
        }
    }

    fn receive(&mut self, blocks: Blocks, action: Action, came: Vec<Block>, members: usize) {
        match action {
            Action::Place => self.write(blocks, came),
            Action::FoldAfter => self.write(blocks, join_all(&self.read(blocks), &came)),
            Action::FoldBefore => {
                self.prefix = join_all(&came, &self.prefix[..came.len()]);
                self.write(blocks, join_all(&came, &self.read(blocks)));
            }
            Action::Push => self.push(blocks, came, members),
        }
    }
}

/// Runs all members until nobody can go on; the order is the caller's. Returns the workers and the
/// longest chain of messages.
fn run(task: Task, members: usize, mut choose: impl FnMut(usize) -> usize) -> Vec<Worker> {
    let place = |member| Place { member, members };
    let mut workers: Vec<_> = (0..members).map(|member| Worker::new(task, place(member))).collect();
    let mut ways = Channels::new(members);
    let mut able: Vec<usize> = (0..members).collect();
    while !able.is_empty() {
        let turn = choose(able.len());
        let member = able[turn];
        let worker = &mut workers[member];
        let step = worker.step.take().or_else(|| worker.plan.next());
        match step {
            None => drop(able.swap_remove(turn)),
            Some(Step::Send { to, blocks }) => {
                assert!(to < members && to != member, "{to} of {members}");
                ways.push(member, to, worker.read(blocks));
                if workers[to].step.is_some() && !able.contains(&to) {
                    able.push(to);
                }
            }
            Some(Step::PushOwn { blocks }) => {
                let own = worker.read(blocks);
                worker.push(blocks, own, members);
            }
            Some(step @ Step::Receive { from, blocks, action }) => {
                assert!(from < members && from != member, "{from} of {members}");
                match ways.pop_from(from, member) {
                    Some(came) => worker.receive(blocks, action, came, members),
                    None => {
                        worker.step = Some(step);
                        able.swap_remove(turn);
                    }
                }
            }
        }
    }
    for (member, worker) in workers.iter().enumerate() {
        assert_eq!(worker.step, None, "member {member} waits for ever");
    }
    assert_eq!(ways.busy(), [], "a message that nobody takes");
    workers
}

/// Checks the blocks of a member, and their places.
fn check(task: Task, members: usize, member: usize, worker: &Worker) {
    let whole = |block| Some(canonical(0..members, block));
    let is_root = member == task.root;
    for block in 0..members {
        let found = worker.blocks.get(block).cloned().flatten();
        let expected = match task.collective {
            Collective::Barrier => None,
            Collective::Broadcast => Some(leaf(task.root, block)),
            Collective::Allreduce => whole(block),
            Collective::Reduce if is_root => whole(block),
            Collective::ReduceScatter if block == member => whole(block),
            Collective::Gather if is_root => Some(leaf(block, block)),
            Collective::Scatter if block == member => Some(leaf(block, block)),
            Collective::Allgather => Some(leaf(block, block)),
            Collective::Alltoall => Some(leaf(block, member)),
            Collective::Scan => {
                let prefix = worker.prefix[block].clone();
                assert_eq!(prefix, Some(canonical(0..member + 1, block)), "{task:?}");
                continue;
            }
            _ => continue,
        };
        assert_eq!(found, expected, "{task:?}: member {member} of {members}, block {block}");
    }
}

fn tasks(members: usize) -> impl Iterator<Item = Task> {
    let pairs = Collective::ALL
        .into_iter()
        .flat_map(|collective| Schedule::ALL.map(|schedule| (collective, schedule)));
    let can = pairs.filter(|(collective, schedule)| schedule.can(*collective));
    can.flat_map(move |(collective, schedule)| {
        let roots = if collective.has_root() { members } else { 1 };
        (0..roots).map(move |root| Task { collective, schedule, root })
    })
}

/// Of a sum whose brackets are anywhere: who is in it, sorted.
fn leaves(expression: &str) -> Vec<&str> {
    let mut leaves: Vec<_> =
        expression.split(['(', ')', ' ']).filter(|leaf| !leaf.is_empty()).collect();
    leaves.sort_unstable();
    leaves
}

fn check_all(task: Task, members: usize, workers: &[Worker]) {
    if !task.schedule.is_exact_only(task.collective) {
        for (member, worker) in workers.iter().enumerate() {
            check(task, members, member, worker);
        }
        return;
    }
    for (member, worker) in workers.iter().enumerate() {
        let (blocks, upto) = match task.collective {
            Collective::Scan => (0..members, member + 1),
            Collective::ReduceScatter => (member..member + 1, members),
            _ => (0..members, members),
        };
        for block in blocks {
            let found = worker.blocks[block].as_ref().expect("it has come");
            let all = canonical(0..upto, block);
            assert_eq!(leaves(found), leaves(&all), "{task:?}: member {member}");
        }
    }
}

/// Every plan, members in turn.
// spec: COLL-6, COLL-7
#[test]
fn every_plan_computes_its_collective() {
    for members in (1..=20).chain([31, 32, 33, 64]) {
        for task in tasks(members) {
            let workers = run(task, members, |_| 0);
            check_all(task, members, &workers);
        }
    }
}

proptest! {
    /// The result is the same for any order of the members' steps.
    // spec: COLL-6, COLL-7
    #[test]
    fn order_does_not_matter(members in 1_usize..24, seed in any::<u64>()) {
        let mut state = seed | 1;
        let mut choose = |many: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % many as u64) as usize
        };
        let all: Vec<_> = tasks(members).collect();
        for task in (0..8).map(|_| all[choose(all.len())]).collect::<Vec<_>>() {
            let workers = run(task, members, &mut choose);
            check_all(task, members, &workers);
        }
    }

    /// A header says what it was made of, and bytes behind it stay.
    // spec: COLL-12
    #[test]
    fn headers_travel(words in any::<[u32; 4]>(), rest in any::<Vec<u8>>()) {
        let [group, sequence, signature, taken] = words;
        let header = Header { group, sequence, signature, taken };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&rest);
        prop_assert_eq!(Header::parse(&bytes), Ok((header, &rest[..])));
        prop_assert!(Header::parse(&bytes[..HEADER - 1]).is_err());
    }
}

/// Plans that do not exist: a root that is no member, a missing root, a schedule for another
/// collective.
// spec: COLL-6
#[test]
fn there_are_no_other_plans() {
    let place = Place { member: 0, members: 4 };
    let plan = |collective, schedule, root| Plan::new(Task { collective, schedule, root }, place);
    assert!(plan(Collective::Broadcast, Schedule::Tree, 4).is_none());
    assert!(plan(Collective::Allreduce, Schedule::Tree, 1).is_none());
    assert!(plan(Collective::Alltoall, Schedule::Tree, 0).is_none());
    assert!(plan(Collective::Alltoall, Schedule::Spread, 0).is_some());
    let task = Task { collective: Collective::Barrier, schedule: Schedule::Star, root: 0 };
    assert!(Plan::new(task, Place { member: 4, members: 4 }).is_none());
    assert!(Plan::new(task, Place { member: 0, members: 0 }).is_none());
}

/// A header to the byte.
// spec: COLL-12
#[test]
fn a_header_in_bytes() {
    let header = Header { group: 0x0403_0201, sequence: 5, signature: 0xffff_fffe, taken: 256 };
    let bytes = [1, 2, 3, 4, 5, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0, 1, 0, 0];
    assert_eq!(header.encode(), bytes);
}

/// Signatures of what differs in one thing differ.
// spec: COLL-13
#[test]
fn signatures_tell_apart() {
    let mut seen = std::collections::BTreeSet::new();
    for what in 0..64_u64 {
        for bytes in (0..64).chain([1 << 20, 1 << 32, 1 << 40]) {
            assert!(seen.insert(signature(what << 8, bytes)), "{what} {bytes}");
        }
    }
}

/// The call of another member is found from the signature of its portion, for any difference.
// spec: COLL-19
#[test]
fn differing_signatures_are_detected_and_reported() {
    let task = Task { collective: Collective::Reduce, schedule: Schedule::Tree, root: 7 };
    let ours = CallShape { task, operation: Some((Combine::Sum, Number::U64)), bytes: 1 << 20 };
    let with = |task| CallShape { task, ..ours };
    let root = with(Task { root: 1000, ..task });
    let schedule = with(Task { schedule: Schedule::Star, ..task });
    let operation = CallShape { operation: Some((Combine::BXor, Number::U64)), ..ours };
    let narrow = CallShape { operation: Some((Combine::Sum, Number::F32)), bytes: 1 << 19, ..ours };
    let short = CallShape { bytes: 4096 * 8, task: schedule.task, ..ours };
    let sum = Task { collective: Collective::Allreduce, schedule: Schedule::Spread, root: 0 };
    let tree = |collective, root| Task { collective, schedule: Schedule::Tree, root };
    let broadcast =
        CallShape { operation: None, bytes: 24, ..with(tree(Collective::Broadcast, 3)) };
    let barrier = CallShape { operation: None, bytes: 0, ..with(tree(Collective::Barrier, 0)) };
    let gather = CallShape { operation: None, bytes: 0, ..with(tree(Collective::Gather, 5)) };
    for (theirs, told) in [
        (root, "root 1000"),
        (schedule, "schedule Star"),
        (operation, "BXor of U64"),
        (narrow, "Sum of F32, 524288 bytes"),
        (short, "Sum of U64, 32768 bytes"),
        (with(sum), "Allreduce (Sum of U64, 1048576 bytes, schedule Spread)"),
        (broadcast, "Broadcast (24 bytes, root 3, schedule Tree)"),
        (barrier, "Barrier (schedule Tree)"),
        (gather, "Gather (root 5, schedule Tree)"),
    ] {
        let found = ours.of_signature(theirs.signature(), 1024, 24);
        assert_eq!(found, Some(theirs), "{told}");
        let said = CallMismatch { ours, theirs: found, bytes: [32768, 24] }.to_string();
        assert!(said.contains(told) && said.contains("Reduce (Sum of U64, 1048576"), "{said}");
    }
    let strange = CallShape { bytes: 123_456_789, ..ours };
    let theirs = ours.of_signature(strange.signature(), 4, 24);
    assert_eq!(theirs, None, "that length is not tried");
    let said = CallMismatch { ours, theirs, bytes: [32768, 24] }.to_string();
    assert!(said.starts_with("another collective, or"), "{said}");
    let block = CallMismatch { ours: gather, theirs: Some(gather), bytes: [8, 24] }.to_string();
    assert!(block.ends_with("24 bytes of it came, and 8 were due"), "{block}");
}

// spec: COLL-9, COLL-11, COLL-12
#[test]
fn notices_are_read_as_written() {
    let taken = Notice::Taken(u32::MAX).encode(1);
    assert_eq!(taken, (11, [1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0]));
    assert_eq!((PORTION, TAGS), (10, 10..=12));
    for (group, notice) in [(1, Notice::Taken(u32::MAX)), (u32::MAX, Notice::GivenUp(1))] {
        let (tag, bytes) = notice.encode(group);
        assert_eq!(Notice::parse(tag, &bytes), Ok((group, notice)));
        assert!(Notice::parse(PORTION, &bytes).is_err(), "of no such tag");
        assert!(Notice::parse(tag, &bytes[..15]).is_err());
        assert!(Notice::parse(tag, &[&bytes[..], &[0]].concat()).is_err());
        for high in [7, 15] {
            let mut wrong = bytes;
            wrong[high] = 1;
            assert!(Notice::parse(tag, &wrong).is_err(), "numbers have 32 bits");
        }
    }
}

/// No more portions are on their way than the window has room for, counted round the last number.
// spec: COLL-11
#[test]
fn portions_under_way_stay_within_the_window() {
    let (mut near, mut far) = (Window::default(), Window::default());
    for round in 0..10_000_u32 {
        for sent in 0..WINDOW {
            assert!(near.is_open(true));
            assert_eq!(near.is_open(false), sent < WINDOW / 2);
            near.send(true);
            far.on_portion().expect("the window was open");
        }
        assert!(!near.is_open(true));
        assert!(far.on_portion().is_err(), "one too many");
        assert!(near.on_taken(round.wrapping_mul(WINDOW).wrapping_sub(1)).is_err() || round == 0);
        assert!(near.on_taken((round + 1).wrapping_mul(WINDOW) + 1).is_err());
        for taken in 0..WINDOW {
            assert_eq!(far.is_due(), taken >= WINDOW / 4);
            far.take();
        }
        assert!(far.is_due());
        near.on_taken(far.send(false)).expect("they were taken");
        assert!(!far.is_due());
    }
}

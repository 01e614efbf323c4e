//! Models of the protocols in shared memory. loom runs them through all interleavings, and all
//! values that a load may return.
//!
//! The lanes and the fences are the engine's own code over loom's words. A few lines of
//! [`crate::port::direct`], [`crate::port::wait`], [`crate::target`], [`crate::port::mediated`] and
//! [`crate::job`] around them are repeated here, with the same words in the same order. Data that
//! the protocols protect is [`Plain`]: loom fails where two accesses to it are not ordered.
//!
//! Each model has mutants, each without one ordering, fence or step. A test fails if one of its
//! mutants passes: the model would prove nothing.
use super::fence::{self, Fencing};
use super::lane::{LaneReceiver, LaneSender, Line, Probe, Words};
use crate::sync::{AtomicU64, Ordering, Weak};
use ayre_proto::execute::Report;
use ayre_proto::lane::{Kind, Sender, Status, lines_for, step};
use ayre_proto::limits::LINE_PAYLOAD;
use ayre_proto::notify::{Classes, Operation};
use ayre_proto::pending::Pending;
use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Thread switches at arbitrary moments per run: the known faults of this kind need two.
const PREEMPTIONS: usize = 4;

/// A step that a mutant leaves out, or takes at the wrong time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Omits the fence on the fast side.
    LightFence,
    /// Omits the fence on the slow side.
    HeavyFence,
    /// Looks before it announces itself.
    Announcement,
    /// Omits the second look.
    SecondLook,
    /// Rings for notifications only.
    Kick,
    /// Publishes a record's first line before the others.
    FirstLineLast,
    /// Gives lines back before it has copied them.
    CopyFirst,
    /// Counts a command before it is executed and answered.
    CountLast,
    /// Reads the count after it has looked for answers.
    CountFirst,
}

/// A fault of a model: words with relaxed accesses, or a missing step.
#[derive(Clone, Copy, Debug, Default)]
struct Mutant {
    status: Option<Weak>,
    control: Option<Weak>,
    step: Option<Step>,
}

impl Mutant {
    fn lacks(self, step: Step) -> bool {
        self.step == Some(step)
    }
}

fn check(model: fn(Mutant), mutant: Mutant) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS);
    builder.check(move || model(mutant));
}

/// Parts of the panics of loom and the models: accesses without an order, a deadlock, an assertion.
const FAILURES: [&str; 3] = ["Causality violation", "deadlock", "came first"];

/// Checks that the model holds, and that each of its mutants fails.
fn holds(model: fn(Mutant), mutants: &[Mutant]) {
    check(model, Mutant::default());
    for mutant in mutants {
        let run = AssertUnwindSafe(|| check(model, *mutant));
        let failure = catch_unwind(run).expect_err("some run of the model shows the mutant");
        let text = failure.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or_default();
        let is_known = FAILURES.iter().any(|known| text.contains(known));
        assert!(is_known, "{mutant:?} fails for another reason: {text}");
    }
}

fn without(step: Step) -> Mutant {
    Mutant { step: Some(step), ..Mutant::default() }
}

fn weak_status(weak: Weak) -> Mutant {
    Mutant { status: Some(weak), ..Mutant::default() }
}

fn weak_control(weak: Weak) -> Mutant {
    Mutant { control: Some(weak), ..Mutant::default() }
}

/// Ordinary memory, not an atomic.
#[derive(Debug)]
struct Plain(UnsafeCell<()>);

// SAFETY: it contains nothing; loom reports accesses that are not ordered.
unsafe impl Sync for Plain {}

impl Plain {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    fn read(&self) {
        self.0.with(|_| ());
    }

    fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

/// A lane's memory, with a piece of plain memory in each line, which the user of the line accesses
/// alone.
#[derive(Debug)]
struct Ring {
    lines: Vec<(Line, Plain)>,
    cursor: AtomicU64,
}

/// One side's view of a ring.
#[derive(Clone, Debug)]
struct View(Arc<Ring>);

impl View {
    fn new(lines: usize, mutant: Mutant) -> Self {
        let line = |_| {
            let word =
                |index| AtomicU64::weakened(0, if index == 0 { mutant.status } else { None });
            (std::array::from_fn(word), Plain::new())
        };
        let cursor = AtomicU64::weakened(0, mutant.control);
        Self(Arc::new(Ring { lines: (0..lines).map(line).collect(), cursor }))
    }

    fn count(&self) -> u32 {
        self.0.lines.len() as u32
    }

    fn sender(&self) -> LaneSender<Self> {
        LaneSender::over(self.clone(), self.count())
    }

    fn receiver(&self) -> LaneReceiver<Self> {
        LaneReceiver::over(self.clone(), self.count())
    }

    /// The plain memory of the lines of a record of `len` bytes, after `before` lines.
    fn plain(&self, before: u32, len: usize) -> impl Iterator<Item = &Plain> {
        let lines = before..before + lines_for(len);
        let place = |line| line * step(self.count()) % self.count();
        lines.map(move |line| &self.0.lines[place(line) as usize].1)
    }
}

impl Words for View {
    fn line(&self, position: u32) -> &Line {
        &self.0.lines[position as usize].0
    }

    fn cursor(&self) -> &AtomicU64 {
        &self.0.cursor
    }
}

/// Waits for the next record of a lane.
fn next(lane: &LaneReceiver<View>) -> Status {
    loop {
        match lane.peek() {
            Some(status) => return status.expect("the sender writes records"),
            None => thread::yield_now(),
        }
    }
}

/// Records of one and of two lines in a lane of three: the third record wraps, and from then on
/// lines are used again.
const RECORDS: [usize; 4] = [8, 8, LINE_PAYLOAD + 8, LINE_PAYLOAD + 8];
const LANE_LINES: usize = 3;

fn payload(record: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (record * 100 + at) as u8).collect()
}

fn lane(mutant: Mutant) {
    let view = View::new(LANE_LINES, mutant);
    let writer = view.clone();
    let thread = thread::spawn(move || {
        let (mut lane, mut before) = (writer.sender(), 0);
        for (record, len) in RECORDS.into_iter().enumerate() {
            while lane.reserve(len).is_err() {
                thread::yield_now();
            }
            writer.plain(before, len).for_each(Plain::write);
            let (status, data) = ((Kind::Message, record as u32), payload(record, len));
            let is_short = lane.push_short(status, [], &data);
            assert_eq!(is_short, len <= LINE_PAYLOAD, "room was reserved");
            if !is_short {
                lane.push(status, [], &data).expect("room was reserved");
            }
            before += lines_for(len);
        }
    });
    let (mut lane, mut before) = (view.receiver(), 0);
    for (record, len) in RECORDS.into_iter().enumerate() {
        let status = next(&lane);
        assert_eq!((status.tag, status.len as usize), (record as u32, len), "in order");
        let after = before + lines_for(len);
        if mutant.lacks(Step::CopyFirst) {
            // Relaxed: the fault is the time of the store.
            view.cursor().store(u64::from(after), Ordering::Relaxed);
        }
        view.plain(before, len).for_each(Plain::read);
        let mut data = vec![0; len];
        if len > LINE_PAYLOAD {
            lane.copy(0, &mut data);
            lane.consume(&status);
        } else {
            let taken = lane.take_short(Kind::Message, &mut data);
            assert!(matches!(taken, Probe::Taken(_)), "one line is taken in one step");
        }
        assert_eq!(data, payload(record, len), "whole");
        before = after;
    }
    thread.join().expect("the writer ends");
}

// spec: LANE-3, LANE-6, LANE-7, LANE-8
#[test]
fn records_come_whole_and_in_order() {
    holds(
        lane,
        &[
            weak_status(Weak::Stores),
            weak_status(Weak::Loads),
            weak_control(Weak::Stores),
            weak_control(Weak::Loads),
            without(Step::CopyFirst),
        ],
    );
}

/// One record of two lines. The writer stores its words one by one, so that a mutant can begin with
/// the first line, or stop in the middle.
fn first_line_last(mutant: Mutant) {
    let view = View::new(LANE_LINES, mutant);
    let writer = view.clone();
    let thread = thread::spawn(move || {
        let mut machine = Sender::new(writer.count());
        let mut lines = [Kind::Message, Kind::Continuation].map(|kind| (machine.take(), kind));
        if !mutant.lacks(Step::FirstLineLast) {
            lines.reverse();
        }
        for ((position, sequence), kind) in lines {
            writer.0.lines[position as usize].1.write();
            let status = Status { sequence, kind, len: LINE_PAYLOAD as u32 + 8, tag: 0 };
            // LANE-R1: as LaneSender::push, and stronger than that for the other lines.
            writer.line(position)[0].store(status.encode(), Ordering::Release);
        }
    });
    let lane = view.receiver();
    let status = next(&lane);
    view.plain(0, status.len as usize).for_each(Plain::read);
    thread.join().expect("the writer ends");
}

// spec: LANE-7, MSG-10
#[test]
fn a_record_is_visible_whole_or_not_at_all() {
    holds(first_line_last, &[without(Step::FirstLineLast)]);
}

/// A sleeper's flag in its page, its bell, and a lane to it.
#[derive(Debug)]
struct Bed {
    asleep: AtomicU64,
    bell: Notify,
}

impl Bed {
    fn new() -> Self {
        Self { asleep: AtomicU64::new(0), bell: Notify::new() }
    }

    /// As `Link::kick`.
    fn kick(&self, fencing: Fencing, mutant: Mutant) {
        if !mutant.lacks(Step::LightFence) {
            fencing.light();
        }
        // Relaxed: as PeerPage::is_asleep.
        if self.asleep.load(Ordering::Relaxed) != 0 {
            self.bell.notify();
        }
    }

    /// As `Port::sleep_unless`: sleeps unless there is a record.
    fn sleep_unless(&self, is_there: impl Fn() -> bool, mutant: Mutant) {
        let early = is_there();
        // Relaxed: as OwnPage::set_asleep.
        let announce = |asleep| self.asleep.store(asleep, Ordering::Relaxed);
        if !mutant.lacks(Step::Announcement) {
            announce(1);
        }
        if !mutant.lacks(Step::HeavyFence) {
            fence::heavy();
        }
        let found = if mutant.lacks(Step::SecondLook) { early } else { is_there() };
        if mutant.lacks(Step::Announcement) {
            announce(1);
        }
        if !found {
            self.bell.wait();
        }
        announce(0);
    }
}

/// A receiver that sleeps whenever there is no message, and a sender of two messages. A lost
/// wake-up leaves the receiver asleep for ever, which loom reports.
fn sleep(fencing: Fencing, mutant: Mutant) {
    let (view, bed) = (View::new(LANE_LINES, mutant), Arc::new(Bed::new()));
    let (writer, kicked) = (view.clone(), bed.clone());
    let thread = thread::spawn(move || {
        let mut lane = writer.sender();
        for tag in 0..2 {
            lane.push((Kind::Message, tag), [], &[]).expect("the lane has room for both");
            kicked.kick(fencing, mutant);
        }
    });
    let mut lane = view.receiver();
    for _ in 0..2 {
        while lane.peek().is_none() {
            bed.sleep_unless(|| lane.peek().is_some(), mutant);
        }
        let status = next(&lane);
        lane.consume(&status);
    }
    thread.join().expect("the sender ends");
}

// spec: LANE-12
#[test]
fn no_wake_up_is_lost() {
    let mutants = [
        without(Step::LightFence),
        without(Step::HeavyFence),
        without(Step::SecondLook),
        without(Step::Announcement),
    ];
    holds(|mutant| sleep(Fencing::Symmetric, mutant), &mutants);
    holds(|mutant| sleep(Fencing::Asymmetric, mutant), &mutants);
}

/// A message that must wait for a command before it, an engine thread that executes the command,
/// and the port's thread, which sleeps until it may receive the message.
fn message_behind_a_command(mutant: Mutant) {
    let (bed, target) = (Arc::new(Bed::new()), Arc::new(Plain::new()));
    let done = Arc::new(AtomicU64::weakened(0, mutant.control));
    let (kicked, memory, count) = (bed.clone(), target.clone(), done.clone());
    let engine = thread::spawn(move || {
        memory.write();
        // DONE-R1: as Served::serve.
        count.store(1, Ordering::Release);
        if !mutant.lacks(Step::Kick) {
            kicked.kick(Fencing::Symmetric, mutant);
        }
    });
    // DONE-A1: as Port::receive_from.
    let executed = || done.load(Ordering::Acquire) >= 1;
    while !executed() {
        bed.sleep_unless(executed, mutant);
    }
    target.read();
    engine.join().expect("the engine ends");
}

// spec: ORD-3
#[test]
fn a_message_behind_a_command_wakes_its_receiver() {
    holds(
        message_behind_a_command,
        &[
            without(Step::Kick),
            without(Step::LightFence),
            without(Step::HeavyFence),
            without(Step::SecondLook),
            weak_control(Weak::Stores),
            weak_control(Weak::Loads),
        ],
    );
}

const KEY: u64 = 1;

/// An initiator that performs two direct operations, and an owner that revokes the key at the same
/// time. Once the owner has seen the initiator outside, it alone uses the memory.
fn revocation(fencing: Fencing, mutant: Mutant) {
    let memory = Arc::new(Plain::new());
    let active = Arc::new(AtomicU64::weakened(0, mutant.control));
    let generation = Arc::new(AtomicU64::new(0));
    let initiator = {
        let (memory, active, generation) = (memory.clone(), active.clone(), generation.clone());
        thread::spawn(move || {
            for _ in 0..2 {
                // Relaxed: as Port::perform_direct.
                let is_alive = || generation.load(Ordering::Relaxed) == 0;
                let early = is_alive();
                // Relaxed: as Port::perform_direct.
                active.store(KEY, Ordering::Relaxed);
                if !mutant.lacks(Step::LightFence) {
                    fencing.light();
                }
                if if mutant.lacks(Step::Announcement) { early } else { is_alive() } {
                    memory.write();
                }
                // REV-R1: as Port::perform_direct.
                active.store(0, Ordering::Release);
            }
        })
    };
    // Relaxed: as OwnPage::set_generation.
    generation.store(1, Ordering::Relaxed);
    if !mutant.lacks(Step::HeavyFence) {
        fence::heavy();
    }
    // REV-A1: as Connection::peer_is_using.
    while !mutant.lacks(Step::SecondLook) && active.load(Ordering::Acquire) == KEY {
        thread::yield_now();
    }
    memory.write();
    initiator.join().expect("the initiator ends");
}

// spec: REV-1
#[test]
fn no_write_lands_after_a_revocation() {
    let mutants = [
        without(Step::LightFence),
        without(Step::HeavyFence),
        without(Step::Announcement),
        without(Step::SecondLook),
        weak_control(Weak::Stores),
        weak_control(Weak::Loads),
    ];
    holds(|mutant| revocation(Fencing::Symmetric, mutant), &mutants);
    holds(|mutant| revocation(Fencing::Asymmetric, mutant), &mutants);
}

/// Commands that are gets of one operation each.
const COMMANDS: u32 = 2;

/// The target: takes commands, accesses its memory, answers, and counts.
fn respond(
    requests: &View,
    responses: &View,
    (memory, done): (&Plain, &AtomicU64),
    mutant: Mutant,
) {
    let (mut commands, mut answers) = (requests.receiver(), responses.sender());
    for number in 1..=COMMANDS {
        let status = next(&commands);
        // DONE-R1: as Served::serve.
        let count = || done.store(u64::from(number), Ordering::Release);
        if mutant.lacks(Step::CountLast) {
            count();
        }
        memory.write();
        let answer = answers.push((Kind::Response, number), [], &[]);
        answer.expect("the lane has room for the answers of all commands");
        commands.consume(&status);
        if !mutant.lacks(Step::CountLast) {
            count();
        }
    }
}

fn command_and_answer(mutant: Mutant) {
    let lanes = || View::new(LANE_LINES, Mutant::default());
    let (requests, responses, memory) = (lanes(), lanes(), Arc::new(Plain::new()));
    let done = Arc::new(AtomicU64::weakened(0, mutant.control));
    let target = {
        let (requests, responses) = (requests.clone(), responses.clone());
        let (memory, done) = (memory.clone(), done.clone());
        thread::spawn(move || respond(&requests, &responses, (&memory, &done), mutant))
    };
    let (mut commands, mut answers) = (requests.sender(), responses.receiver());
    let (mut pending, mut answered) = (Pending::new(), 0);
    let get = Operation::Get;
    let report = Report { operation: get, classes: Classes::empty(), tag: 0, value: 0 };
    for _ in 0..COMMANDS {
        pending.submit(report, 1);
        commands.push((Kind::Command, 0), [], &[]).expect("the lane has room for all commands");
    }
    while !pending.is_empty() {
        // DONE-A1: as mediated::take_responses.
        let look = || done.load(Ordering::Acquire);
        let early = look();
        while let Some(status) = answers.peek() {
            let status = status.expect("the target writes records");
            answered = status.tag;
            answers.consume(&status);
        }
        let executed = if mutant.lacks(Step::CountFirst) { look() } else { early };
        pending.on_done(executed).expect("the target counts what it executes");
        let mut ended = false;
        while let Some((_, outstanding)) = pending.pop() {
            assert!(u64::from(answered) >= outstanding.last, "the answer came first");
            ended = true;
        }
        if !ended {
            thread::yield_now();
        }
    }
    memory.read();
    target.join().expect("the target ends");
}

// spec: LANE-10, ORD-9
#[test]
fn counted_commands_are_executed_and_answered() {
    holds(
        command_and_answer,
        &[
            weak_control(Weak::Stores),
            weak_control(Weak::Loads),
            without(Step::CountLast),
            without(Step::CountFirst),
        ],
    );
}

/// Two ranks that each write, meet, and read what the other one wrote. They do so twice with roles
/// exchanged, so they must meet again.
fn barrier(mutant: Mutant) {
    let memory = Arc::new([Plain::new(), Plain::new()]);
    let words = Arc::new([0, 1].map(|_| AtomicU64::weakened(0, mutant.control)));
    let rank = move |memory: &[Plain; 2], words: &[AtomicU64; 2], own: usize| {
        for count in 1..=2 {
            memory[(own + count) % 2].write();
            // BAR-R1: as Port::barrier.
            words[own].store(count as u64, Ordering::Release);
            // BAR-A1: as Port::barrier_reached.
            while words[1 - own].load(Ordering::Acquire) < count as u64 {
                thread::yield_now();
            }
        }
    };
    let other = {
        let (memory, words) = (memory.clone(), words.clone());
        thread::spawn(move || rank(&memory, &words, 1))
    };
    rank(&memory, &words, 0);
    other.join().expect("the other rank ends");
}

#[test]
fn ranks_meet_in_a_barrier() {
    holds(barrier, &[weak_control(Weak::Stores), weak_control(Weak::Loads)]);
}

//! Random lists of operations against byte arrays and queues that change in posted order.
use crate::data::{assert_same, contents, fill, pattern};
use crate::fabric::Fabric;
use crate::model::{OPERATIONS, WIDTHS, model};
use crate::port::{Options, Port, Region};
use crate::seed::{Dice, cases};
use crate::world::{Memory, World, is_raised_at_target, next_message, next_notification};
use ayre::error::Status;
use ayre::memory::{Atomic, Classes, Operation, Strided};
use ayre::{Busy, Notification, PostError};
use std::collections::VecDeque;

/// Operations of a list.
const STEPS: u32 = 60;
/// Bytes of the target's region, and of the initiator's two.
const LEN: usize = 2048;

/// One thing that the initiator does.
#[derive(Clone, Debug)]
enum Step {
    Put { at: usize, data: Vec<u8> },
    PutFromRegion { at: usize, from: usize, len: usize },
    PutStrided { at: usize, data: Vec<u8>, rows: Strided },
    Get { at: usize, len: usize },
    GetIntoRegion { at: usize, into: usize, len: usize },
    Immediate { at: usize, value: u64 },
    Atomic { at: usize, atomic: Atomic },
    Fetch { at: usize, atomic: Atomic },
    Notify,
    Send { data: Vec<u8> },
    Enqueue { data: Vec<u8> },
}

/// The notifications that are asked for, and what they say.
#[derive(Clone, Copy, Debug)]
struct Ask {
    classes: Classes,
    tag: u32,
    value: u64,
}

/// The state that there must be if every operation was executed when it was posted.
#[derive(Debug, Default)]
struct Expected {
    target: Vec<u8>,
    source: Vec<u8>,
    sink: Vec<u8>,
    notes_here: VecDeque<Notification>,
    notes_there: VecDeque<Notification>,
    messages: VecDeque<(u32, Vec<u8>)>,
    records: VecDeque<Vec<u8>>,
}

/// A world with everything that a list needs, and what is expected of it.
#[derive(Debug)]
struct Stage<F: Fabric> {
    world: World<F>,
    memory: Memory<F::Port>,
    source: <F::Port as Port>::Region,
    sink: <F::Port as Port>::Region,
    queue: <F::Port as Port>::Queue,
    remote_queue: <F::Port as Port>::RemoteQueue,
    expected: Expected,
}

/// Lists of puts, gets, atomics, immediate and notification puts, messages and records leave what
/// the oracle says: in memory, in results, and in what is delivered, in its order.
// spec: ORD-1, ORD-9, PUT-1, GET-1, GET-3, ATOM-1, STR-1, MSG-4, QUE-6, NOTI-2, NOTI-12, POST-1
// spec: POST-7, POST-9, ERR-4, LIM-3
pub fn lists_agree_with_the_oracle<F: Fabric>(fabric: F) {
    let mut stage = Stage::new(fabric);
    for list in 0..cases(300) {
        let mut dice = Dice::new(list);
        stage.reset(list);
        for tag in 0..STEPS {
            let step = draw(&mut dice);
            let classes = Classes::from_bits_truncate(dice.below(8) as u8);
            let ask = Ask { classes, tag, value: dice.word() };
            stage.perform(&step, &ask);
            if dice.below(8) == 0 {
                stage.deliver();
            }
            if dice.below(12) == 0 {
                stage.world.serve();
            }
        }
        stage.finish();
    }
}

fn draw(dice: &mut Dice) -> Step {
    let long = if dice.below(10) == 0 { LEN } else { 100 };
    let len = dice.index(long.min(LEN));
    let at = dice.index(LEN - len + 1);
    let word = dice.index(LEN / 8) * 8;
    match dice.below(11) {
        0 => Step::Put { at, data: dice.bytes(len) },
        1 => Step::PutFromRegion { at, from: dice.index(LEN - len + 1), len },
        2 => draw_strided(dice),
        3 => Step::Get { at, len },
        4 => Step::GetIntoRegion { at, into: dice.index(LEN - len + 1), len },
        5 => Step::Immediate { at: word, value: dice.word() },
        6 => Step::Atomic { at: word, atomic: draw_atomic(dice) },
        7 => Step::Fetch { at: word, atomic: draw_atomic(dice) },
        8 => Step::Notify,
        9 => Step::Send {
            data: {
                let len = 1 + dice.index(200);
                dice.bytes(len)
            },
        },
        _ => Step::Enqueue {
            data: {
                let len = 1 + dice.index(300);
                dice.bytes(len)
            },
        },
    }
}

fn draw_strided(dice: &mut Dice) -> Step {
    let (row_len, rows) = (dice.below(60), dice.below(6));
    let (local_stride, remote_stride) = (row_len + dice.below(9), row_len + dice.below(300));
    let span = |stride| if rows == 0 { 0 } else { ((rows - 1) * stride + row_len) as usize };
    let at = dice.index(LEN - span(remote_stride) + 1);
    let rows = Strided { row_len, rows, local_stride, remote_stride };
    Step::PutStrided { at, data: dice.bytes(span(local_stride)), rows }
}

fn draw_atomic(dice: &mut Dice) -> Atomic {
    let (op, width) = (dice.pick(&OPERATIONS), dice.pick(&WIDTHS));
    Atomic { width, op, operand: dice.word(), compare: dice.word() }
}

impl<F: Fabric> Stage<F> {
    fn new(fabric: F) -> Self {
        let mut world = World::open(fabric);
        let memory = world.memory(LEN);
        let (source, sink) = (world.own_memory(LEN), world.own_memory(LEN));
        let (initiator, target) = (world.initiator_id(), world.target_id());
        let mut queue = world.target().create_queue(4096).expect("a queue");
        world.target().share_queue(initiator, &mut queue, 1).expect("a producer");
        let remote_queue = world.initiator().accept_queue(target, 1).expect("a queue");
        let expected = Expected::default();
        Self { world, memory, source, sink, queue, remote_queue, expected }
    }

    /// Starts a list on fresh contents.
    fn reset(&mut self, list: u64) {
        let [target, source, sink] = [1, 2, 3].map(|salt| pattern(list * 3 + salt, LEN));
        fill(&self.memory.region, &target);
        fill(&self.source, &source);
        fill(&self.sink, &sink);
        self.expected = Expected { target, source, sink, ..Expected::default() };
    }

    /// Posts a step until there is room, and checks what it returns.
    fn perform(&mut self, step: &Step, ask: &Ask) {
        let fetched = loop {
            match self.post(step, ask) {
                Ok(result) => break result,
                Err(PostError::Busy(busy)) => self.make_room(busy, step),
                Err(PostError::Fault(fault)) => panic!("{step:?} faulted: {fault}"),
            }
        };
        let expected = self.expected.apply(step);
        match step {
            Step::Get { at, len } => {
                assert_same(&fetched.bytes, &self.expected.target[*at..][..*len], step);
            }
            Step::Fetch { .. } => {
                assert_eq!((fetched.value, fetched.success), expected, "{step:?}");
            }
            _ => {}
        }
        self.expect_signals(step, ask, expected);
    }

    fn post(&mut self, step: &Step, ask: &Ask) -> Result<Fetched, PostError> {
        let Self { world, memory, source, sink, remote_queue, .. } = self;
        let (target, remote) = (world.target_id(), &memory.remote);
        let options = Options::new().notify(ask.classes).tag(ask.tag).value(ask.value);
        let mut result = Fetched::default();
        let into = &mut result;
        let post = |port: &mut F::Port| match step {
            Step::Put { at, data } => port.put(remote, *at as u64, data, options).map(drop),
            Step::PutFromRegion { at, from, len } => {
                port.put(remote, *at as u64, source.slice(*from..from + len), options).map(drop)
            }
            Step::PutStrided { at, data, rows } => {
                port.put_strided(remote, *at as u64, data, *rows, options).map(drop)
            }
            Step::Get { at, len } => {
                into.bytes = vec![0; *len];
                port.get(remote, *at as u64, &mut into.bytes, options).map(drop)
            }
            Step::GetIntoRegion { at, into, len } => {
                port.get(remote, *at as u64, sink.slice(*into..into + len), options).map(drop)
            }
            Step::Immediate { at, value } => {
                port.put_immediate(remote, *at as u64, *value, options).map(drop)
            }
            Step::Atomic { at, atomic } => {
                port.atomic(remote, *at as u64, *atomic, options).map(drop)
            }
            Step::Fetch { at, atomic } => {
                let fetched = port.fetch(remote, *at as u64, *atomic, options)?;
                (into.value, into.success) = (fetched.value, fetched.success);
                Ok(())
            }
            Step::Notify => port.notify(target, options).map(drop),
            Step::Send { data } => port.send(target, ask.tag, data),
            Step::Enqueue { data } => port.enqueue(remote_queue, data),
        };
        world.drive(post).map(|()| result)
    }

    /// Does what the reason of a refusal asks for.
    fn make_room(&mut self, busy: Busy, step: &Step) {
        let fits = match step {
            Step::Send { .. } => busy == Busy::MessageLaneFull,
            Step::Enqueue { .. } => busy == Busy::QueueFull,
            _ => matches!(busy, Busy::RequestLaneFull | Busy::TooManyOutstanding),
        };
        assert!(fits, "{busy:?} is no reason to refuse {step:?}");
        self.deliver();
        self.world.serve();
    }

    /// The signals that a step brings to both sides.
    fn expect_signals(&mut self, step: &Step, ask: &Ask, fetched: (u64, bool)) {
        match step {
            Step::Send { data } => self.expected.messages.push_back((ask.tag, data.clone())),
            Step::Enqueue { data } => self.expected.records.push_back(data.clone()),
            _ => self.expect_notes(step, ask, fetched),
        }
    }

    fn expect_notes(&mut self, step: &Step, ask: &Ask, (value, success): (u64, bool)) {
        let operation = step.operation();
        let classes = match operation {
            Operation::NotificationPut => ask.classes & Classes::REQUESTER | Classes::COMPLETER,
            Operation::Put | Operation::ImmediatePut => {
                ask.classes & (Classes::REQUESTER | Classes::COMPLETER)
            }
            _ => ask.classes,
        };
        for class in classes.iter() {
            let source = self.world.target_id();
            let (status, tag) = (Status::Ok, ask.tag);
            let mut note = Notification { source, class, status, operation, tag, value: ask.value };
            if operation == Operation::FetchAtomic && class != Classes::RESPONDER {
                note.value = if class == Classes::COMPLETER { value } else { ask.value };
                note.status = if success { Status::Ok } else { Status::Declined };
            }
            if is_raised_at_target(&note) {
                note.source = self.world.initiator_id();
                self.expected.notes_there.push_back(note);
            } else {
                self.expected.notes_here.push_back(note);
            }
        }
    }

    /// Takes whatever has arrived, and compares it with what is next in turn.
    fn deliver(&mut self) {
        let Self { world, queue, expected, .. } = self;
        let (source, mut buffer) = (world.initiator_id(), [0; 300]);
        while let Some(message) = next_message(world.target(), &mut buffer) {
            let (tag, data) = expected.messages.pop_front().expect("a message too many");
            assert_eq!((message.source, message.tag), (source, tag));
            assert_same(&buffer[..message.len], &data, &message);
        }
        while let Some(record) = world.target().dequeue(queue, &mut buffer).expect("long enough") {
            let data = expected.records.pop_front().expect("a record too many");
            assert_eq!(record.source, source);
            assert_same(&buffer[..record.len], &data, &record);
        }
        for end in [World::initiator, World::target] {
            while let Some(note) = next_notification(end(world)) {
                let queue = match is_raised_at_target(&note) {
                    true => &mut expected.notes_there,
                    false => &mut expected.notes_here,
                };
                assert_eq!(Some(note), queue.pop_front(), "a notification out of turn");
            }
        }
    }

    /// Lets everything end, and compares all that is left.
    fn finish(&mut self) {
        for _ in 0..10_000_000 {
            self.world.serve();
            self.deliver();
            let peer = self.world.target_id();
            if self.world.initiator().is_flushed(peer) && self.expected.nothing_is_due() {
                break;
            }
            std::thread::yield_now();
        }
        let due = &self.expected;
        assert!(due.nothing_is_due(), "not delivered: {:?} {:?}", due.notes_here, due.notes_there);
        self.world.settle_ok();
        assert_same(&contents(&self.memory.region), &self.expected.target, &"the target's region");
        assert_same(&contents(&self.source), &self.expected.source, &"the source region");
        assert_same(&contents(&self.sink), &self.expected.sink, &"the sink region");
        assert!(self.world.raised().is_empty(), "a notification too many");
    }
}

/// The result of a call.
#[derive(Debug, Default)]
struct Fetched {
    bytes: Vec<u8>,
    value: u64,
    success: bool,
}

impl Step {
    fn operation(&self) -> Operation {
        match self {
            Self::Put { .. } | Self::PutFromRegion { .. } | Self::PutStrided { .. } => {
                Operation::Put
            }
            Self::Get { .. } | Self::GetIntoRegion { .. } => Operation::Get,
            Self::Immediate { .. } => Operation::ImmediatePut,
            Self::Atomic { .. } => Operation::Atomic,
            Self::Fetch { .. } => Operation::FetchAtomic,
            Self::Notify | Self::Send { .. } | Self::Enqueue { .. } => Operation::NotificationPut,
        }
    }
}

impl Expected {
    /// Whether everything was delivered.
    fn nothing_is_due(&self) -> bool {
        let notes = self.notes_here.is_empty() && self.notes_there.is_empty();
        notes && self.messages.is_empty() && self.records.is_empty()
    }

    /// Changes memory; returns what a fetching atomic returns.
    fn apply(&mut self, step: &Step) -> (u64, bool) {
        match step {
            Step::Put { at, data } => self.target[*at..][..data.len()].copy_from_slice(data),
            Step::PutFromRegion { at, from, len } => {
                self.target[*at..][..*len].copy_from_slice(&self.source[*from..][..*len]);
            }
            Step::PutStrided { at, data, rows } => {
                for row in 0..rows.rows {
                    let len = rows.row_len as usize;
                    let from = (row * rows.local_stride) as usize;
                    let to = at + (row * rows.remote_stride) as usize;
                    self.target[to..][..len].copy_from_slice(&data[from..][..len]);
                }
            }
            Step::GetIntoRegion { at, into, len } => {
                self.sink[*into..][..*len].copy_from_slice(&self.target[*at..][..*len]);
            }
            Step::Immediate { at, value } => {
                self.target[*at..][..8].copy_from_slice(&value.to_le_bytes());
            }
            Step::Atomic { at, atomic } | Step::Fetch { at, atomic } => {
                return self.apply_atomic(*at, atomic);
            }
            Step::Get { .. } | Step::Notify | Step::Send { .. } | Step::Enqueue { .. } => {}
        }
        (0, true)
    }

    fn apply_atomic(&mut self, at: usize, atomic: &Atomic) -> (u64, bool) {
        let word = &mut self.target[at..][..8];
        let old = u64::from_le_bytes(std::array::from_fn(|i| word[i]));
        let (new, value, success) = model(atomic, old);
        let len = atomic.width.bytes() as usize;
        word[..len].copy_from_slice(&new.to_le_bytes()[..len]);
        (value, success)
    }
}

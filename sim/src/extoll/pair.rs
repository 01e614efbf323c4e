//! Two nodes and the link between them, made of units.
//!
//! ```text
//!              .-- a unit is kept from its command until its packet has left --.
//!   processor  | command   translation   read    packet                        |
//!   --hold-->  | unit ---> ATU --------> HTAX -> link =======================> | -> trip
//!                                                                              |
//!   program <- write <- HTAX <- ATU <- completer <-----------------------------'
//! ```
//!
//! Each unit of RMA is one state machine (section 7.5.6), so it has one command at a time. Data
//! passes on as it comes: the link begins with the first bytes of a read. A packet ends where its
//! tail does.
use super::mailbox::slots;
use super::{Operation, Parameters, frame, part};
use crate::machine::{Course, Machine, Step, UnitId};
use crate::time::Time;

/// Cycles of the crossbar on the chip for each word of 64 bits (section 5.2.9).
const CYCLES_PER_WORD: u64 = 2;
/// Bytes of a word, and of the longest packet of HyperTransport.
const WORD: u32 = 8;
const LINE: u32 = 64;
/// The longest message of VELO (section 7.4).
const MESSAGE: u32 = 64;
/// The longest put or get (section 7.5.1).
const PAGE: u32 = 4096;
/// Bytes of a notification (section 7.5).
const NOTIFICATION: u32 = 16;

/// The units of a node.
#[derive(Clone, Copy, Debug)]
struct Node {
    processor: UnitId,
    /// The crossbar on the chip, from the host and to it.
    from_host: UnitId,
    to_host: UnitId,
    velo: UnitId,
    requester: UnitId,
    responder: UnitId,
    completer: UnitId,
    /// The link to the other node.
    link: UnitId,
}

impl Node {
    fn new(machine: &mut Machine, place: &'static str) -> Self {
        let mut unit = |name| machine.named(place, name);
        Self {
            processor: unit("processor"),
            from_host: unit("crossbar from the host"),
            to_host: unit("crossbar to the host"),
            velo: unit("VELO"),
            requester: unit("requester"),
            responder: unit("responder"),
            completer: unit("completer"),
            link: unit("link"),
        }
    }
}

/// A way of moving bytes from one node to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Messages of at most 64 bytes.
    Velo,
    /// Puts of at most 4 KiB. The last one is seen by the data that it writes.
    Put,
    /// Gets of at most 4 KiB, the last one notified.
    Get,
}

impl Transfer {
    fn operation(self) -> Operation {
        match self {
            Self::Velo => Operation::Velo,
            Self::Put => Operation::Put { notified: false },
            Self::Get => Operation::Get,
        }
    }
}

/// Two nodes. The first one gives the commands.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    times: Parameters,
    nodes: [Node; 2],
}

impl Pair {
    /// Adds the units of two nodes to a machine.
    pub fn new(machine: &mut Machine, times: Parameters) -> Self {
        Self { times, nodes: ["initiator", "target"].map(|place| Node::new(machine, place)) }
    }

    /// The steps of an operation of the first node that moves this number of bytes, up to the
    /// program that sees its end.
    pub fn course(&self, operation: Operation, bytes: u32) -> Course {
        let [first, second] = &self.nodes;
        let mut course = self.post(operation, bytes);
        self.request(&mut course, operation, bytes);
        if operation.is_answered() {
            self.respond(&mut course, operation, bytes);
        }
        let end = if operation.is_answered() { first } else { second };
        self.complete(&mut course, operation, bytes, end);
        course.push(self.see(operation, bytes, end));
        course
    }

    /// A program gives the command.
    fn post(&self, operation: Operation, bytes: u32) -> Course {
        let (times, node) = (&self.times, &self.nodes[0]);
        let kernel = times.kernel.map_or(Time::ZERO, |kernel| kernel.send);
        let half = Time(times.software.0 / 2) + kernel;
        // A command has as many bytes as a notification.
        let words = if operation == Operation::Velo { bytes } else { NOTIFICATION }.div_ceil(WORD);
        vec![
            Step::pipelined(part::SOFTWARE, node.processor, half + times.issue, half),
            Step::pipelined(part::PIO_WRITE, node.from_host, self.words(words), times.pio_write),
        ]
    }

    /// The time of a packet of `words` words and its header on the crossbar.
    fn words(&self, words: u32) -> Time {
        self.times.cycles((u64::from(words) + 1) * CYCLES_PER_WORD)
    }

    /// The time of `bytes` bytes on the crossbar, in packets of a cache line.
    fn data(&self, bytes: u32) -> Time {
        self.times.cycles(u64::from(bytes.div_ceil(WORD) + bytes.div_ceil(LINE)) * CYCLES_PER_WORD)
    }

    /// The requester makes a packet of the command.
    fn request(&self, course: &mut Course, operation: Operation, bytes: u32) {
        let (times, node) = (&self.times, &self.nodes[0]);
        if operation == Operation::Velo {
            course.push(Step::take(part::QUEUE, node.velo, 1));
            // A message has whole words.
            let cycles = frame::cycles(bytes.next_multiple_of(WORD), false);
            self.send(course, node, cycles, (node.velo, 0));
            return;
        }
        course.push(Step::take(part::QUEUE, node.requester, 1));
        course.push(Step::delay(part::UNIT, times.unit));
        let mut payload = 0;
        if matches!(operation, Operation::Put { .. }) {
            self.read(course, node, bytes, true);
            payload = bytes;
        }
        self.send(course, node, frame::cycles(payload, true), (node.requester, times.turnaround));
    }

    /// A read of the host's memory.
    fn read(&self, course: &mut Course, node: &Node, bytes: u32, translated: bool) {
        if translated {
            course.push(Step::delay(part::TRANSLATION, self.times.translation));
        }
        let hold = self.data(bytes);
        course.push(Step::pipelined(part::DMA_READ, node.from_host, hold, self.times.dma_read));
    }

    /// A packet leaves a node, and comes to the other one. Its unit is given back when it has left,
    /// and some cycles later.
    fn send(&self, course: &mut Course, node: &Node, cycles: u32, unit: (UnitId, u64)) {
        let times = &self.times;
        let shortest = times.shortest();
        let whole = times.cycles(cycles.into());
        let (unit, turnaround) = unit;
        let left = shortest + times.cycles(turnaround);
        course.extend([
            Step::pipelined(part::TAIL, node.link, whole, whole - shortest),
            Step::give_after(part::QUEUE, unit, 1, left),
            Step::delay(part::TRIP, times.trip),
        ]);
    }

    /// The responder of the second node reads, and sends the answer.
    fn respond(&self, course: &mut Course, operation: Operation, bytes: u32) {
        let (times, node) = (&self.times, &self.nodes[1]);
        course.push(Step::take(part::QUEUE, node.responder, 1));
        course.push(Step::delay(part::UNIT, times.unit));
        self.read(course, node, bytes, operation == Operation::Get);
        if operation == Operation::Lock {
            let hold = self.words(1);
            course.push(Step::pipelined(part::DMA_WRITE, node.to_host, hold, times.dma_write));
        }
        self.send(course, node, frame::cycles(bytes, true), (node.responder, times.turnaround));
    }

    /// The completer writes data and a notification.
    fn complete(&self, course: &mut Course, operation: Operation, bytes: u32, node: &Node) {
        let times = &self.times;
        let write = |hold| Step::pipelined(part::DMA_WRITE, node.to_host, hold, times.dma_write);
        if operation == Operation::Velo {
            course.push(write(self.data(bytes + slots(bytes) * WORD)));
            return;
        }
        course.push(Step::take(part::QUEUE, node.completer, 1));
        course.push(Step::delay(part::UNIT, times.unit));
        if operation.writes_data() {
            course.push(Step::delay(part::TRANSLATION, times.translation));
        }
        let mut writes = Vec::new();
        // The data before the last line have passed while the packet came in.
        if operation.writes_data() {
            writes.push(write(self.data(bytes.min(LINE))));
        }
        if operation.is_notified() {
            writes.push(write(self.words(NOTIFICATION / WORD)));
        }
        // Posted: the unit is free as soon as its last write has begun.
        let free = Step::give_after(part::QUEUE, node.completer, 1, times.cycles(times.turnaround));
        writes.insert(writes.len() - 1, free);
        course.extend(writes);
    }

    /// A program sees the end. Each slot of a message costs it an end's software, and a store that
    /// frees the slot; so does a notification. Reconstructed, from the software of table 9-2.
    fn see(&self, operation: Operation, bytes: u32, node: &Node) -> Step {
        let times = &self.times;
        let kernel = times.kernel.map_or(Time::ZERO, |kernel| kernel.receive);
        let one = Time(times.software.0 / 2) + times.store;
        let slots = if operation == Operation::Velo { slots(bytes) } else { 1 };
        let hold = Time(one.0 * u64::from(slots)) + kernel;
        Step::pipelined(part::SOFTWARE, node.processor, hold, hold - times.store)
    }
}

/// The bytes of each operation that moves a part of these. Those with a limit move it whole.
pub fn pieces(operation: Operation, bytes: u32) -> Vec<u32> {
    let most = match operation {
        Operation::Velo => MESSAGE,
        Operation::Put { .. } | Operation::Get => PAGE,
        _ => bytes,
    };
    let whole = bytes.checked_div(most).unwrap_or(0);
    let rest = bytes - whole * most;
    let last = (rest > 0 || whole == 0).then_some(rest);
    core::iter::repeat_n(most, whole as usize).chain(last).collect()
}

/// Operations of a stream.
const STREAM: usize = 400;

impl Parameters {
    /// The time of an operation that is alone.
    pub fn alone(self, operation: Operation, bytes: u32) -> Time {
        let mut machine = Machine::default();
        let pair = Pair::new(&mut machine, self);
        let item = machine.add(pair.course(operation, bytes), [Time::ZERO]);
        machine.run();
        machine.passage(item).time()
    }

    /// From a program's put until its packet has left the node.
    pub(super) fn left(&self, bytes: u32) -> Time {
        let mut machine = Machine::default();
        let pair = Pair::new(&mut machine, *self);
        let mut course = pair.course(Operation::Put { notified: false }, bytes);
        let leaves = course.iter().position(|step| step.part == part::TAIL).expect("it sends");
        course.truncate(leaves + 1);
        let item = machine.add(course, [Time::ZERO]);
        machine.run();
        machine.passage(item).time() + self.shortest()
    }

    /// The time of the shortest packet on a link.
    fn shortest(&self) -> Time {
        self.cycles(frame::cycles(WORD, false).into())
    }

    /// Operations per second that a node can do.
    pub fn rate(self, operation: Operation, bytes: u32) -> f64 {
        let mut machine = Machine::default();
        let pair = Pair::new(&mut machine, self);
        machine.per_second(pair.course(operation, bytes), STREAM)
    }

    /// From the first command until a program has all bytes: half of a round trip, or the whole one
    /// of a get.
    pub fn latency(self, transfer: Transfer, bytes: u32) -> Time {
        let mut machine = Machine::default();
        let pieces = Pair::new(&mut machine, self).pieces(transfer.operation(), bytes);
        let items: Vec<_> =
            pieces.into_iter().map(|course| machine.add(course, [Time::ZERO])).collect();
        machine.run();
        items.into_iter().map(|item| machine.passage(item).ended).max().unwrap_or_default()
    }

    /// Bytes per second of operations of this length in a row. Nobody looks at the end of one, but
    /// of messages. The kernel has one operation under way at a time.
    pub fn stream(self, transfer: Transfer, bytes: u32) -> f64 {
        let mut machine = Machine::default();
        let pair = Pair::new(&mut machine, self);
        let course = pair.in_a_row(transfer.operation(), bytes);
        machine.per_second(course, STREAM) * f64::from(bytes)
    }
}

impl Pair {
    /// The steps of operations that move these bytes, each of as many as it can. A program looks
    /// at the end of messages and of the last operation.
    pub fn pieces(&self, operation: Operation, bytes: u32) -> Vec<Course> {
        let pieces = pieces(operation, bytes);
        let others = pieces.len() - 1;
        let mut courses: Vec<_> =
            pieces.into_iter().map(|piece| self.course(operation, piece)).collect();
        if operation != Operation::Velo {
            courses[..others].iter_mut().for_each(|course| {
                course.pop();
            });
        }
        courses
    }

    /// The steps of one of many operations in a row. Nobody looks at the end of a put or a get, but
    /// at messages, notifications and locks. The kernel has one operation under way at a time.
    pub fn in_a_row(&self, operation: Operation, bytes: u32) -> Course {
        let mut course = self.course(operation, bytes);
        if let Some(kernel) = self.times.kernel {
            self.one_at_a_time(&mut course, kernel.receive);
        } else if operation == Operation::Get || !operation.is_notified() {
            course.pop();
        }
        course
    }

    /// The program gives its next command when it has seen the requester's notification, which
    /// tells that the packet has left.
    fn one_at_a_time(&self, course: &mut Course, receive: Time) {
        let times = &self.times;
        let processor = self.nodes[0].processor;
        let shortest = times.shortest();
        let seen = shortest + times.dma_write + Time(times.software.0 / 2) + receive;
        course.pop();
        course[0] = Step::delay(part::SOFTWARE, course[0].latency);
        course.insert(0, Step::take(part::QUEUE, processor, 1));
        let left = course.iter().position(|step| step.part == part::TAIL).expect("it sends");
        course.insert(left + 1, Step::give_after(part::QUEUE, processor, 1, seen));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extoll::prototype_clock;
    use crate::host::Host;

    fn times() -> Parameters {
        Parameters::composed(&Host::HT400, prototype_clock())
    }

    #[test]
    fn a_stream_of_puts_has_the_period_of_the_requester() {
        let times = times();
        for bytes in [8, 64, 512, 4096] {
            let packet = times.cycles(u64::from(frame::cycles(bytes, true)) + times.turnaround);
            let period = times.unit + times.translation + times.dma_read + packet;
            let ours = times.stream(Transfer::Put, bytes) * period.0 as f64 / 1e12;
            assert!((ours / f64::from(bytes) - 1.0).abs() < 1e-6, "{bytes}: {ours}");
        }
    }

    #[test]
    fn a_long_transfer_nears_the_rate_of_its_stream() {
        let times = times();
        for transfer in [Transfer::Velo, Transfer::Put, Transfer::Get] {
            let bytes = 1 << 20;
            let ours = f64::from(bytes) * 1e12 / times.latency(transfer, bytes).0 as f64;
            let piece = pieces(transfer.operation(), bytes)[0];
            assert!((ours / times.stream(transfer, piece) - 1.0).abs() < 0.01, "{transfer:?}");
        }
    }

    #[test]
    fn pieces_hold_all_bytes() {
        for operation in [Operation::Velo, Operation::Get] {
            for bytes in [8, 64, 72, 4096, 4104, 10_000] {
                assert_eq!(pieces(operation, bytes).iter().sum::<u32>(), bytes);
            }
        }
    }

    #[test]
    fn the_kernel_adds_its_calls_less_the_translations() {
        let (user, host) = (times(), Host::HT400);
        let kernel = user.by_kernel(&host);
        let put = Operation::Put { notified: false };
        let added = kernel.alone(put, 8).0 + 2 * user.translation.0 - user.alone(put, 8).0;
        assert_eq!(added, 2 * host.kernel_path().0 + 3 * host.memory.0);
    }
}

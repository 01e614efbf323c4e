//! Two interfaces and the way between them, made of units.
use super::{INLINE, LINE, Parameters, Unit, part};
use crate::machine::{Course, Machine, Part, Passage, Step, UnitId};
use crate::time::Time;
use ayre_proto::command::{COMMAND_BYTES, RESPONSE_BYTES};
use ayre_proto::limits::LINE_PAYLOAD;
use ayre_proto::link::frame::{HEAD_BYTES, HEADER_BYTES};

/// An operation between two nodes, up to the program that learns of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Memory to memory; the target is notified.
    Put,
    /// Eight bytes in the command, written to memory; the target is notified.
    Immediate,
    /// A short message, whose lines the processor stores.
    Message,
    /// From memory of the target; the initiator is notified.
    Get,
    /// A fetching atomic on a word of 64 bits; the initiator is notified.
    Atomic,
}

impl Operation {
    fn is_answered(self) -> bool {
        matches!(self, Self::Get | Self::Atomic)
    }

    /// Bytes of the request's record, which has this number of bytes of data.
    fn request(self, data: u32) -> u32 {
        let own = match self {
            // The number of commands before it, and the message.
            Self::Message => 8 + data,
            Self::Put => COMMAND_BYTES as u32 + data,
            Self::Immediate | Self::Get | Self::Atomic => COMMAND_BYTES as u32,
        };
        HEAD_BYTES as u32 + own.next_multiple_of(8)
    }
}

/// Whether the TLBs have the addresses of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// All of them.
    Hit,
    /// None: each is read from the host's memory.
    Miss,
}

/// The units of an interface.
#[derive(Clone, Copy, Debug)]
struct Node {
    units: [UnitId; 12],
    /// The link to the host, from it and to it.
    from_host: UnitId,
    to_host: UnitId,
    /// Tags of reads, and places for frames that are not acknowledged.
    tags: UnitId,
    places: UnitId,
    /// The link to the network.
    link: UnitId,
    /// One atomic is under way at a time.
    word: UnitId,
}

impl Node {
    fn new(machine: &mut Machine, place: &'static str, parameters: &Parameters) -> Self {
        Self {
            units: parameters.table.map(|row| machine.named(place, row.unit.name())),
            from_host: machine.named(place, "link from the host"),
            to_host: machine.named(place, "link to the host"),
            tags: machine.named_of(place, "tags", parameters.pcie.tags),
            places: machine.named_of(place, "places for frames", parameters.places),
            link: machine.named(place, "link to the network"),
            word: machine.named(place, "turn for an atomic"),
        }
    }
}

/// Two interfaces. The program of the first one posts.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    parameters: Parameters,
    nodes: [Node; 2],
}

impl Pair {
    /// Adds the units of two interfaces to a machine.
    pub fn new(machine: &mut Machine, parameters: Parameters) -> Self {
        let node = |place| Node::new(machine, place, &parameters);
        Self { parameters, nodes: ["initiator", "target"].map(node) }
    }

    /// The courses of an operation's pieces. The program learns of the end of the last one.
    pub fn courses(&self, operation: Operation, bytes: u32, lookup: Lookup) -> Vec<Course> {
        let pieces = self.parameters.pieces(bytes);
        let course = |(number, data): (usize, &u32)| {
            let mut way = Way { pair: self, lookup, course: self.post(operation, *data) };
            if number > 0 {
                // The command was stored once. The other pieces come from the segmenter.
                way.course = vec![self.stored()];
            }
            way.initiate(operation, *data);
            way.course
        };
        pieces.iter().enumerate().map(course).collect()
    }

    /// The processor stores a command, or the lines of a message.
    fn post(&self, operation: Operation, data: u32) -> Course {
        let (parameters, node) = (&self.parameters, &self.nodes[0]);
        let lines = match operation {
            Operation::Message => data.div_ceil(LINE_PAYLOAD as u32).max(1),
            _ => 1,
        };
        let pcie = &parameters.pcie;
        let span = Time(pcie.write_span(LINE).0 * u64::from(lines));
        vec![
            Step::pipelined(part::STORE, node.from_host, span, span + pcie.latency),
            self.pass(part::COMMAND, node, Unit::Window, lines * LINE),
            self.pass(part::COMMAND, node, Unit::Decode, 0),
        ]
    }

    /// The time of a command up to the segmenter.
    fn stored(&self) -> Step {
        let parameters = &self.parameters;
        let time = parameters.latency(&[Unit::Window, Unit::Decode]);
        Step::delay(part::STORE, parameters.pcie.write_time(LINE) + time)
    }

    /// The step of an item through a unit.
    fn pass(&self, part: Part, node: &Node, unit: Unit, bytes: u32) -> Step {
        let parameters = &self.parameters;
        let (hold, latency) = (parameters.hold(unit, bytes), parameters.latency(&[unit]));
        Step::pipelined(part, node.units[unit as usize], hold, latency)
    }
}

/// The course of a piece as it grows.
struct Way<'a> {
    pair: &'a Pair,
    lookup: Lookup,
    course: Course,
}

impl Way<'_> {
    /// From the segmenter to the program.
    fn initiate(&mut self, operation: Operation, data: u32) {
        let [first, second] = &self.pair.nodes;
        self.pass(part::COMMAND, first, Unit::Segmenter, 0);
        if operation == Operation::Put && data > INLINE {
            self.translate(first);
            self.read(first, data);
        }
        self.cross([first, second], operation.request(data));
        match operation {
            Operation::Message => {
                let lines = data.div_ceil(LINE_PAYLOAD as u32).max(1);
                self.write(second, lines * LINE, false);
            }
            Operation::Put | Operation::Immediate => {
                self.translate(second);
                self.write(second, data, true);
            }
            Operation::Get => {
                self.translate(second);
                self.read(second, data);
            }
            Operation::Atomic => {
                self.translate(second);
                self.compute(second);
            }
        }
        if operation.is_answered() {
            self.answer(operation, data);
        }
        // Writes are posted, and the program finds the line in memory.
        let parameters = &self.pair.parameters;
        self.course.push(Step::delay(part::WRITE, parameters.pcie.latency));
        self.course.push(Step::delay(part::POLL, parameters.memory));
    }

    /// The answer comes, and the program is notified.
    fn answer(&mut self, operation: Operation, data: u32) {
        let [first, second] = &self.pair.nodes;
        let data = if operation == Operation::Get { data } else { 0 };
        let record = HEAD_BYTES + RESPONSE_BYTES;
        self.cross([second, first], record as u32 + data.next_multiple_of(8));
        if operation == Operation::Get {
            self.translate(first);
        }
        self.write(first, data, true);
    }

    fn pass(&mut self, part: Part, node: &Node, unit: Unit, bytes: u32) {
        self.course.push(self.pair.pass(part, node, unit, bytes));
    }

    /// A key is checked and an address translated.
    fn translate(&mut self, node: &Node) {
        self.pass(part::TRANSLATION, node, Unit::Keys, 0);
        self.pass(part::TRANSLATION, node, Unit::Tlb, 0);
        if self.lookup == Lookup::Miss {
            self.read_of(part::TRANSLATION, node, 8);
        }
    }

    /// Data is read from the host's memory.
    fn read(&mut self, node: &Node, bytes: u32) {
        self.pass(part::READ, node, Unit::Read, bytes);
        self.read_of(part::READ, node, bytes);
    }

    /// Reads with as many tags as they need. The data of all of them come in a row.
    fn read_of(&mut self, part: Part, node: &Node, bytes: u32) {
        let parameters = &self.pair.parameters;
        let pcie = &parameters.pcie;
        let reads = bytes.div_ceil(pcie.read).clamp(1, pcie.tags);
        let requests = Time(pcie.request_span().0 * u64::from(reads));
        let host = pcie.latency + parameters.memory + pcie.latency;
        self.course.extend([
            Step::take(part::QUEUE, node.tags, reads),
            // The first request goes on while the others follow it.
            Step::pipelined(part, node.to_host, requests, pcie.request_span()),
            Step::delay(part, host),
            Step::serve(part, node.from_host, pcie.data_span(bytes)),
            Step::give(part::QUEUE, node.tags, reads),
        ]);
    }

    /// A frame with records of this number of bytes is made, sent and checked.
    fn cross(&mut self, [from, to]: [&Node; 2], records: u32) {
        let parameters = &self.pair.parameters;
        let (link, trip) = (&parameters.link, parameters.trip);
        let bytes = HEADER_BYTES as u32 + records;
        let passing = |bytes: u32| Time(u64::from(bytes.div_ceil(link.width)) * link.phit.0);
        let acknowledged = trip + passing(HEADER_BYTES as u32);
        self.pass(part::FRAME, from, Unit::Frame, bytes);
        self.course.push(Step::take(part::QUEUE, from.places, 1));
        self.pass(part::FRAME, from, Unit::Channel, bytes);
        self.course.push(Step::serve(part::NETWORK, from.link, passing(bytes)));
        self.course.push(Step::delay(part::NETWORK, trip));
        self.pass(part::CHECK, to, Unit::Check, bytes);
        self.course.push(Step::give_after(part::QUEUE, from.places, 1, acknowledged));
        self.pass(part::CHECK, to, Unit::Decode, 0);
    }

    /// A word of the host's memory is read and written; the ALU has it for itself meanwhile.
    fn compute(&mut self, node: &Node) {
        self.course.push(Step::take(part::QUEUE, node.word, 1));
        self.read(node, 8);
        self.pass(part::ALU, node, Unit::Alu, 0);
        self.write(node, 8, false);
        self.course.push(Step::give(part::QUEUE, node.word, 1));
    }

    /// Data is written, and the line of a notification behind it: no write overtakes another one.
    fn write(&mut self, node: &Node, data: u32, is_notified: bool) {
        let pcie = &self.pair.parameters.pcie;
        let mut span = if data > 0 { pcie.write_span(data) } else { Time::ZERO };
        if is_notified {
            span += pcie.write_span(LINE);
            self.pass(part::WRITE, node, Unit::Notify, LINE);
        }
        self.pass(part::WRITE, node, Unit::Write, if is_notified { data + LINE } else { data });
        self.course.push(Step::serve(part::WRITE, node.to_host, span));
    }
}

/// Operations of a stream.
const STREAM: usize = 400;

impl Parameters {
    /// Bytes of the pieces of an operation, in order.
    fn pieces(&self, bytes: u32) -> Vec<u32> {
        let whole = core::iter::repeat_n(self.piece, (bytes / self.piece) as usize);
        let rest = bytes % self.piece;
        whole.chain((rest > 0 || bytes == 0).then_some(rest)).collect()
    }

    /// The way of an operation that is alone: of its piece that ends last.
    ///
    /// # Panics
    /// Never: an operation has a piece.
    pub fn alone(self, operation: Operation, bytes: u32, lookup: Lookup) -> Passage {
        let mut machine = Machine::default();
        let pair = Pair::new(&mut machine, self);
        let courses = pair.courses(operation, bytes, lookup);
        let items: Vec<_> =
            courses.into_iter().map(|course| machine.add(course, [Time::ZERO])).collect();
        machine.run();
        let passages = items.into_iter().map(|item| machine.passage(item));
        passages.max_by_key(|passage| passage.ended).expect("an operation has a piece")
    }

    /// Operations per second, of those that go in one frame. Longer ones are cut to that.
    pub fn rate(self, operation: Operation, bytes: u32, lookup: Lookup) -> f64 {
        let mut machine = Machine::default();
        let pair = Pair::new(&mut machine, self);
        let course = pair.courses(operation, bytes, lookup).swap_remove(0);
        machine.per_second(course, STREAM)
    }
}

//! Programs that post many transfers, and the request queue and DMA engine that serve them
//! (sections III.A, III.C and V.D).
//!
//! ```text
//!   program: wait for places -> check -> write descriptors --bus--> request queue
//!   engine:  descriptor -> request | split, bus free | 4 + words | 4 + words | ... -> links
//!   then:    departure -> notification --bus--> memory -> the program sees free places
//! ```
//!
//! Bus, engine and links are units, so what overlaps and what does not is a result. The three
//! programs of the source differ in two numbers: descriptors that they post between two checks,
//! and places of the queue that they use.
use super::network::{BYTE, FRAMING, PACKET, PIPELINE};
use crate::host::Host;
use crate::host::pci::PciX;
use crate::machine::{Course, Machine, Part, Step, UnitId};
use crate::time::Time;
use thiserror::Error;

/// Waits for places in the request queue.
const QUEUE: Part = Part("request queue");
/// The program.
const PROGRAM: Part = Part("program");
/// The bus.
const BUS: Part = Part("bus");
/// The engine.
const ENGINE: Part = Part("DMA engine");
/// The interface and its links.
const LINKS: Part = Part("links");

/// How a program posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Descriptors that it writes after one check.
    pub batch: u32,
    /// Places of the request queue that it uses.
    pub places: u32,
    /// Each transfer notifies it of its departure; else only the last one of a batch does.
    pub each_notifies: bool,
}

impl Style {
    /// Posts this number of descriptors, starts them with the last one, and waits for all of them.
    pub const fn v1(batch: u32) -> Self {
        Self { batch, places: batch, each_notifies: false }
    }

    /// Checks for a place before each descriptor.
    pub const V2: Self = Self { batch: 1, places: 128, each_notifies: true };

    /// Checks for places before each fourth descriptor.
    pub const V3: Self = Self { batch: 4, places: 128, each_notifies: true };

    /// Batches that show its pace: four times as many as the queue holds. The first half fills it.
    pub fn batches(&self) -> usize {
        2 * (2 * self.places / self.batch.max(1)).max(16) as usize
    }
}

/// The parts of an interface and its host that posting meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The bus.
    pub bus: PciX,
    /// Places of a request queue.
    pub queue: u32,
    /// Cycles in which the engine takes a descriptor from its queue.
    pub descriptor: u32,
    /// A program's check of the notification word.
    pub check: Time,
    /// Links that a transfer is spread over.
    pub links: u32,
    /// The time of a byte on a link.
    pub byte: Time,
    /// The pipeline of the interface.
    pub pipeline: Time,
}

/// Why a program cannot post.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PostError {
    /// Nothing is posted, or more than there is room for.
    #[error("batches of {batch} descriptors: at least 1, and at most the {places} places used")]
    Batch {
        /// Descriptors of a batch.
        batch: u32,
        /// The places that the program uses.
        places: u32,
    },
    /// The queue is shorter.
    #[error("a program uses {places} places, and the queue has {queue}")]
    Places {
        /// The places that the program uses.
        places: u32,
        /// The places of the queue.
        queue: u32,
    },
    /// A transfer has no length, or too much.
    #[error("a transfer of {0} B: it has to be of 1 B to {TRANSFER_MAX} B")]
    Bytes(u32),
    /// There is nowhere to send to.
    #[error("a sender needs at least one link")]
    NoLink,
}

/// Bytes of the longest transfer of a descriptor (section III.A).
pub const TRANSFER_MAX: u32 = 4096;
/// 64-bit words of a descriptor.
const WORDS: u32 = 2;
/// Bytes of a notification.
const NOTIFICATION: u32 = 8;

/// The units of a sender.
#[derive(Clone, Copy)]
struct Units {
    places: UnitId,
    program: UnitId,
    bus: UnitId,
    engine: UnitId,
    links: UnitId,
}

impl Sender {
    /// The published machine: four links.
    ///
    /// Reconstructed: the engine takes a descriptor when it is free, the two words and one cycle
    /// of a block RAM. A check misses the cache, since the device has written the word; the memory
    /// is that of an Opteron of those years (EXTOLL thesis, table 3-1).
    pub fn forth() -> Self {
        Self {
            bus: PciX::forth(),
            queue: 128,
            descriptor: WORDS + 1,
            check: Host::HT400.memory,
            links: 4,
            byte: BYTE,
            pipeline: PIPELINE,
        }
    }

    /// The time from one transfer to the next, in picoseconds, when a program posts transfers of
    /// this length all the time.
    ///
    /// # Errors
    /// See [`PostError`].
    pub fn time(&self, style: Style, bytes: u32) -> Result<f64, PostError> {
        let mut machine = Machine::default();
        let course = self.batch(&mut machine, style, bytes)?;
        let batches = style.batches() / 2;
        let begins = core::iter::repeat_n(Time::ZERO, 2 * batches);
        let first = machine.add(course, begins);
        machine.run();
        let ended = |batch: usize| machine.passage(first + batch).ended;
        let span = ended(2 * batches - 1) - ended(batches - 1);
        Ok(span.0 as f64 / (batches as f64 * f64::from(style.batch)))
    }

    /// Adds the units of a sender to a machine. The result is the steps of a batch, from the check
    /// for places until the program can post again.
    ///
    /// # Errors
    /// See [`PostError`].
    pub fn batch(
        &self,
        machine: &mut Machine,
        style: Style,
        bytes: u32,
    ) -> Result<Course, PostError> {
        self.check(style, bytes)?;
        let units = Units {
            places: machine.named_of("sender", "places of the request queue", style.places),
            program: machine.named("sender", "program"),
            bus: machine.named("sender", "bus"),
            engine: machine.named("sender", "DMA engine"),
            links: machine.named("network", "links"),
        };
        Ok(self.course(&units, style, bytes))
    }

    fn check(&self, style: Style, bytes: u32) -> Result<(), PostError> {
        let Style { batch, places, .. } = style;
        if batch == 0 || batch > places {
            return Err(PostError::Batch { batch, places });
        }
        if places > self.queue {
            return Err(PostError::Places { places, queue: self.queue });
        }
        if !(1..=TRANSFER_MAX).contains(&bytes) {
            return Err(PostError::Bytes(bytes));
        }
        if self.links == 0 { Err(PostError::NoLink) } else { Ok(()) }
    }

    /// The steps of a batch.
    fn course(&self, units: &Units, style: Style, bytes: u32) -> Course {
        let bus = |cycles| self.bus.span(cycles);
        let mut course = vec![
            Step::take(QUEUE, units.places, style.batch),
            Step::serve(PROGRAM, units.program, self.check),
        ];
        let line = self.bus.line.0;
        let words = WORDS * style.batch;
        for first in (0..words).step_by(line as usize) {
            let cycles = self.bus.write_combined(line.min(words - first));
            course.push(Step::serve(BUS, units.bus, bus(cycles)));
        }
        course.push(Step::take(ENGINE, units.engine, 1));
        for descriptor in 0..style.batch {
            course.push(Step::delay(ENGINE, bus(self.descriptor)));
            course.extend(read(&self.bus, units.bus, bytes));
            if style.each_notifies && descriptor + 1 < style.batch {
                course.extend(write(&self.bus, units.bus, NOTIFICATION));
            }
        }
        course.push(Step::give(ENGINE, units.engine, 1));
        let (all, last) = self.on_links(bytes);
        let all = Time(all.0 * u64::from(style.batch));
        course.push(Step::pipelined(LINKS, units.links, all, self.pipeline + last));
        course.push(Step::take(ENGINE, units.engine, 1));
        course.extend(write(&self.bus, units.bus, NOTIFICATION));
        course.push(Step::give(ENGINE, units.engine, 1));
        // To memory, to the program, and with its next descriptor back to the bus: the way of a
        // read, which goes to memory and back, too.
        course.push(Step::delay(PROGRAM, bus(self.bus.first_word)));
        course.push(Step::give(QUEUE, units.places, style.batch));
        course
    }

    /// The time that a transfer takes the links, and that of its last packet.
    fn on_links(&self, bytes: u32) -> (Time, Time) {
        let packets = bytes.div_ceil(PACKET.1);
        let time = |bytes: u32| Time(u64::from(bytes) * self.byte.0 / u64::from(self.links));
        let last = bytes - (packets - 1) * PACKET.1;
        (time(bytes + packets * FRAMING), time(last + FRAMING))
    }
}

/// The steps of a device's read. The bus is free for others between its request and the data, and
/// between transactions.
fn read(pci: &PciX, bus: UnitId, bytes: u32) -> Course {
    let span = |cycles| pci.span(cycles);
    let mut course = vec![
        Step::serve(BUS, bus, span(pci.protocol)),
        Step::delay(BUS, span(pci.first_word - pci.protocol)),
    ];
    bursts(pci.words(bytes), pci.read_burst).for_each(|words| {
        course.push(Step::delay(BUS, span(pci.gap)));
        course.push(Step::serve(BUS, bus, span(pci.protocol + words)));
    });
    course
}

/// The steps of a device's write.
fn write(pci: &PciX, bus: UnitId, bytes: u32) -> Course {
    let steps = bursts(pci.words(bytes), pci.write_burst).flat_map(|words| {
        let burst = Step::serve(BUS, bus, pci.span(pci.protocol + words));
        [Step::delay(BUS, pci.span(pci.gap)), burst]
    });
    steps.collect()
}

/// The words of each transaction.
fn bursts(words: u32, most: u32) -> impl Iterator<Item = u32> {
    (0..words).step_by(most as usize).map(move |first| most.min(words - first))
}

/// The way of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It reads from memory.
    Read,
    /// It writes to memory.
    Write,
}

/// The time of each transfer, in picoseconds, of an engine that is programmed once and makes
/// `transfers` transfers back to back (section V.C).
pub fn back_to_back(pci: &PciX, direction: Direction, bytes: u32, transfers: u32) -> f64 {
    let mut machine = Machine::default();
    let (engine, bus) = (machine.unit(), machine.unit());
    let mut course = vec![Step::take(ENGINE, engine, 1)];
    course.extend(match direction {
        Direction::Read => read(pci, bus, bytes),
        Direction::Write => write(pci, bus, bytes),
    });
    course.push(Step::give(ENGINE, engine, 1));
    let first = machine.add(course, core::iter::repeat_n(Time::ZERO, transfers as usize));
    machine.run();
    machine.passage(first + transfers as usize - 1).ended.0 as f64 / f64::from(transfers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_alone_takes_the_cycles_of_the_bus() {
        let bus = PciX::forth();
        for bytes in [8, 64, 1024, 1408, 1416, 4096] {
            let read = back_to_back(&bus, Direction::Read, bytes, 50);
            let write = back_to_back(&bus, Direction::Write, bytes, 50);
            assert_eq!(read, bus.span(bus.read(bytes)).0 as f64, "{bytes}");
            assert_eq!(write, bus.span(bus.write(bytes)).0 as f64, "{bytes}");
        }
    }

    #[test]
    fn a_program_that_waits_pays_for_all_steps() {
        let sender = Sender::forth();
        for (bytes, batch) in [(64, 1), (4096, 1), (4096, 7), (4096, 128)] {
            let time = sender.time(Style::v1(batch), bytes).expect("a possible program");
            let lines = batch.div_ceil(4);
            let posting: u32 = (0..lines)
                .map(|line| sender.bus.write_combined(2 * (batch - 4 * line).min(4)))
                .sum();
            let engine = batch * (sender.descriptor + sender.bus.read(bytes));
            let seen = sender.bus.write(8) + sender.bus.first_word;
            let (_, last) = sender.on_links(bytes);
            let whole =
                sender.bus.span(posting + engine + seen) + sender.check + sender.pipeline + last;
            let each = whole.0 as f64 / f64::from(batch);
            assert!((time - each).abs() < 1.0, "{bytes} B, {batch}: {time} for {each}");
        }
    }

    #[test]
    fn the_slowest_unit_decides_on_the_rate() {
        let slow = Sender { links: 1, ..Sender::forth() };
        let (all, _) = slow.on_links(4096);
        for style in [Style::V2, Style::V3] {
            let time = slow.time(style, 4096).expect("a possible program");
            assert!((time / (all.0 as f64) - 1.0).abs() < 1e-3, "links: {time} for {all}");
            let forth = Sender::forth();
            let engine = forth.bus.span(forth.descriptor + forth.bus.read(4096)).0 as f64;
            let time = forth.time(style, 4096).expect("a possible program");
            assert!(time > engine && time < 1.1 * engine, "engine: {time} for {engine}");
        }
    }

    #[test]
    fn fewer_notifications_leave_more_of_the_bus() {
        let sender = Sender::forth();
        let time = |each_notifies| {
            sender.time(Style { each_notifies, ..Style::V3 }, 4096).expect("a possible program")
        };
        let notification = sender.bus.span(sender.bus.write(NOTIFICATION)).0 as f64;
        assert!((time(true) - time(false) - 0.75 * notification).abs() < 0.01 * time(true));
    }

    #[test]
    fn impossible_programs_are_refused() {
        let sender = Sender::forth();
        let refused = |style, bytes| sender.time(style, bytes).expect_err("impossible");
        assert_eq!(refused(Style::v1(0), 8), PostError::Batch { batch: 0, places: 0 });
        assert_eq!(refused(Style::v1(129), 8), PostError::Places { places: 129, queue: 128 });
        assert_eq!(refused(Style::V2, 4097), PostError::Bytes(4097));
        let none = Sender { links: 0, ..sender };
        assert_eq!(none.time(Style::V2, 8), Err(PostError::NoLink));
    }
}

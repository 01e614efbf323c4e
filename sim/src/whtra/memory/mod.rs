//! A memory that an FPGA emulates behind a processor's HyperTransport link (paper C).
//!
//! ```text
//!  processor --> link --> core --> write buffer <--> DRAM     128 bytes wide, with programmable
//!      ^                                |  read        |      delays of reads and of writes
//!      '------- link <--- core <--------+--------------'
//! ```
//!
//! A thread issues its next read when it has the data of the last one. Writes are posted: only the
//! credits of the link limit how many are under way. A write keeps the write buffer until its line
//! is there. A read of 64 bytes does not look into the write buffer, a shorter one does (section
//! II.D), and neither brings a line into it.
//!
//! The source gives the time of a read of four bytes as a whole. All of it that is not the
//! processor's, the link's or the core's belongs to the DRAM.
pub mod buffer;
pub mod paging;

use crate::link::LinkTiming;
use crate::machine::{Course, Machine, Part, Step, UnitId};
use crate::time::{Clock, Time};
use buffer::{LINE, Move, WriteBuffer};

/// The parts of an access's time.
pub mod part {
    use crate::machine::Part;

    /// Of the processor and its bridges.
    pub const HOST: Part = Part("host");
    /// On the link.
    pub const LINK: Part = Part("link");
    /// In the core that the FPGA has the link by.
    pub const CORE: Part = Part("core");
    /// In the write buffer.
    pub const BUFFER: Part = Part("write buffer");
    /// In the memory.
    pub const DRAM: Part = Part("DRAM");
    /// For a read or a credit that comes back.
    pub const WINDOW: Part = Part("window");
}

/// Times and sizes of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// A load or store that stays in the processor.
    pub instruction: Time,
    /// Of the processor and its bridges, to the link and back.
    pub host: Time,
    /// A direction of the link.
    pub link: LinkTiming,
    /// The FPGA's clock, of which each cycle moves eight bytes.
    pub clock: Clock,
    /// Cycles of the core from the link, and to it.
    pub core: (u64, u64),
    /// Cycles of an access to the write buffer before its first word.
    pub lookup: u64,
    /// Lines of the write buffer.
    pub lines: usize,
    /// Whether whole lines go past the write buffer.
    pub bypass: bool,
    /// From a read's command to its first word.
    pub dram: Time,
    /// Delays that are added to each read and each write of the DRAM.
    pub delays: (Time, Time),
    /// Credits for posted writes.
    pub credits: u32,
}

/// Bytes of a command on the link, and of one that needs no address.
const COMMAND: u32 = 8;
const RESPONSE: u32 = 4;
/// Bytes that the FPGA moves in a cycle (section II.D).
const WORD: u32 = 8;
/// Reads of this length do not look into the write buffer.
const LONG: u32 = 64;

impl Memory {
    /// The XD1000 at a link of 16 bits and 200 MHz (section II.C). Reconstructed:
    ///
    /// - The EXTOLL thesis gives 200 ns for a round trip (table 3-1) and 18 cycles of 5 ns for the
    ///   HyperTransport core (section 7.1). The host has the other 110 ns.
    /// - The core has as many cycles here, at 100 MHz: 8 bytes a cycle are the link's rate.
    /// - A lookup takes three cycles: the address to the RAM, the tag out of it, its comparison.
    ///   With two, stores of 32 bits would be a fifth faster than measured, with four a tenth
    ///   slower.
    /// - 64 lines are enough for any number of streams here, and 16 credits for the link.
    ///
    /// A read of four bytes takes `latency` as a whole, or as long as without a DRAM, if that is
    /// longer.
    pub fn xd1000(latency: Time) -> Self {
        let nothing = Self {
            instruction: Time::from_nanos(6),
            host: Time::from_nanos(110),
            link: LinkTiming { phit: Time::from_nanos(5), width: 4, wire: Time::ZERO },
            clock: Clock::new(100_000_000).expect("a sound rate"),
            core: (12, 6),
            lookup: 3,
            lines: 64,
            bypass: false,
            dram: Time::ZERO,
            delays: (Time::ZERO, Time::ZERO),
            credits: 16,
        };
        let alone = nothing.run(&[Access { thread: 0, address: 0, kind: Kind::READ_32 }]).end();
        Self { dram: Time(latency.0.saturating_sub(alone.0)), ..nothing }
    }
}

/// A kind of access (table I).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Whether it writes.
    pub writes: bool,
    /// The bytes that pass the link.
    pub bytes: u32,
    /// The program's loads or stores that they stand for.
    pub instructions: u32,
}

impl Kind {
    /// A store of 32 bits.
    pub const WRITE_32: Self = Self { writes: true, bytes: 4, instructions: 1 };
    /// A store of 64 bits.
    pub const WRITE_64: Self = Self { writes: true, bytes: 8, instructions: 1 };
    /// Stores of 64 bits that the processor combines.
    pub const WRITE_COMBINED: Self = Self { writes: true, bytes: 64, instructions: 8 };
    /// A load of 32 bits.
    pub const READ_32: Self = Self { writes: false, bytes: 4, instructions: 1 };
    /// Loads of 32 bits, of which the first one brings a line into the processor's cache.
    pub const READ_CACHED: Self = Self { writes: false, bytes: 64, instructions: 16 };
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The thread that makes it.
    pub thread: usize,
    /// The first byte. An access stays within a line.
    pub address: u64,
    /// Its kind.
    pub kind: Kind,
}

/// The bytes between the streams of two threads.
const STRIDE: u64 = 1 << 30;

/// Streams of `count` accesses of each thread to bytes that follow each other.
pub fn streams(kind: Kind, threads: usize, count: u64) -> Vec<Access> {
    let access = |number: u64, thread: usize| {
        let address = thread as u64 * STRIDE + number * u64::from(kind.bytes);
        Access { thread, address, kind }
    };
    (0..count).flat_map(|number| (0..threads).map(move |thread| access(number, thread))).collect()
}

/// The units of the machine.
struct Units {
    /// Of each thread: its processor, and its read under way.
    threads: Vec<(UnitId, UnitId)>,
    credits: UnitId,
    up: UnitId,
    down: UnitId,
    buffer: UnitId,
    dram: UnitId,
}

impl Memory {
    /// Runs accesses. The write buffer has to meet them in their order, which streams do.
    pub fn run(&self, accesses: &[Access]) -> Run {
        let mut machine = Machine::default();
        for course in self.courses(&mut machine, accesses) {
            machine.add(course, [Time::ZERO]);
        }
        machine.run();
        let done = accesses.iter().enumerate();
        let done = done.map(|(item, access)| (machine.passage(item).ended, access.kind.bytes));
        let mut done: Vec<_> = done.collect();
        done.sort_unstable();
        Run { done, machine }
    }

    /// Adds the units of a memory and of the accesses' threads to a machine. The result is the
    /// steps of each access, in their order.
    pub fn courses(&self, machine: &mut Machine, accesses: &[Access]) -> Vec<Course> {
        let threads = accesses.iter().map(|access| access.thread + 1).max().unwrap_or(0);
        let thread = |_| (machine.named("host", "thread"), machine.named("host", "read under way"));
        let units = Units {
            threads: (0..threads).map(thread).collect(),
            credits: machine.named_of("host", "credits", self.credits),
            up: machine.named("host", "link to the FPGA"),
            down: machine.named("FPGA", "link to the host"),
            buffer: machine.named("FPGA", "write buffer"),
            dram: machine.named("FPGA", "DRAM"),
        };
        let mut state = WriteBuffer::new(self.lines, self.bypass);
        let course = |access: &Access| {
            if access.kind.writes {
                let moves = state.write(access.address, access.kind.bytes);
                self.write(access, &moves, &units)
            } else {
                self.read(access, &units)
            }
        };
        accesses.iter().map(course).collect()
    }

    fn half(&self) -> Time {
        Time(self.host.0 / 2)
    }

    fn cycles(&self, cycles: u64) -> Time {
        self.clock.span(cycles)
    }

    /// The cycles in which this number of bytes moves inside the FPGA.
    fn words(&self, bytes: u32) -> u64 {
        bytes.div_ceil(WORD).into()
    }

    fn read(&self, access: &Access, units: &Units) -> Course {
        let Kind { bytes, instructions, .. } = access.kind;
        let (processor, window) = units.threads[access.thread];
        let (command, response) = (self.link.span(COMMAND), self.link.span(RESPONSE + bytes));
        let mut course = vec![
            Step::take(part::WINDOW, window, 1),
            Step::serve(part::HOST, processor, self.program(instructions)),
            Step::delay(part::HOST, self.half()),
            Step::serve(part::LINK, units.up, command),
            Step::delay(part::CORE, self.cycles(self.core.0)),
        ];
        if bytes < LONG {
            course.push(Step::serve(part::BUFFER, units.buffer, self.cycles(self.lookup)));
        }
        let first = self.dram + self.delays.0;
        let data = first + self.cycles(self.words(bytes));
        course.extend([
            Step::pipelined(part::DRAM, units.dram, self.line() + self.delays.0, data),
            Step::delay(part::CORE, self.cycles(self.core.1)),
            Step::serve(part::LINK, units.down, response),
            Step::delay(part::HOST, self.half()),
            Step::give(part::WINDOW, window, 1),
        ]);
        course
    }

    fn write(&self, access: &Access, moves: &[Move], units: &Units) -> Course {
        let Kind { bytes, instructions, .. } = access.kind;
        let (processor, _) = units.threads[access.thread];
        let mut course = vec![
            Step::serve(part::HOST, processor, self.program(instructions)),
            Step::take(part::WINDOW, units.credits, 1),
            Step::delay(part::HOST, self.half()),
            Step::serve(part::LINK, units.up, self.link.span(COMMAND + bytes)),
            Step::delay(part::CORE, self.cycles(self.core.0)),
            Step::take(part::BUFFER, units.buffer, 1),
            Step::delay(part::BUFFER, self.cycles(self.lookup)),
        ];
        course.extend(moves.iter().map(|step| self.line_move(*step, units)));
        course.extend([
            Step::delay(part::BUFFER, self.cycles(self.words(bytes))),
            Step::give(part::BUFFER, units.buffer, 1),
            Step::delay(part::WINDOW, self.cycles(self.core.1) + self.half()),
            Step::give(part::WINDOW, units.credits, 1),
        ]);
        course
    }

    /// The time of the loads or stores of an access.
    fn program(&self, instructions: u32) -> Time {
        Time(self.instruction.0 * u64::from(instructions))
    }

    /// The DRAM takes or gives a line word by word, and is free for the next one.
    fn line(&self) -> Time {
        self.cycles(self.words(LINE as u32))
    }

    fn line_move(&self, step: Move, units: &Units) -> Step {
        let (read, write) = self.delays;
        match step {
            Move::Fetch => {
                let all = self.dram + read + self.line();
                Step::pipelined(part::DRAM, units.dram, self.line() + read, all)
            }
            // The controller writes when it has the line: the buffer can go on.
            Move::Back | Move::Past => {
                Step::pipelined(part::DRAM, units.dram, self.line() + write, self.line())
            }
        }
    }

    /// The time for which a line of `writes` writes of this length keeps the write buffer, in a
    /// stream that finds the buffer full of other lines.
    pub fn line_time(&self, writes: u64, bytes: u32) -> Time {
        let each = self.cycles(self.lookup + self.words(bytes));
        let moves = self.line() + self.delays.1 + self.dram + self.delays.0 + self.line();
        Time(each.0 * writes) + moves
    }
}

/// A run: its accesses have ended.
#[derive(Debug)]
pub struct Run {
    /// The end of each access and its bytes, in order of time.
    done: Vec<(Time, u32)>,
    machine: Machine,
}

impl Run {
    /// When the last access ended.
    pub fn end(&self) -> Time {
        self.done.last().map_or(Time::ZERO, |(end, _)| *end)
    }

    /// Megabytes per second, measured over the second half of the accesses.
    pub fn rate(&self) -> f64 {
        let half = self.done.len() / 2;
        let Some((begin, _)) = self.done.get(half) else { return 0.0 };
        let bytes: u32 = self.done[half + 1..].iter().map(|(_, bytes)| bytes).sum();
        f64::from(bytes) * 1e6 / (self.end() - *begin).0 as f64
    }

    /// The times of an access, by its number.
    pub fn parts(&self, access: usize) -> Vec<(Part, Time)> {
        self.machine.passage(access).parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::xd1000(Time::from_nanos(850))
    }

    fn end(memory: &Memory, kind: Kind, count: u64) -> Time {
        memory.run(&streams(kind, 1, count)).end()
    }

    #[test]
    fn a_read_takes_its_latency_and_its_parts_sum_to_it() {
        let run = memory().run(&streams(Kind::READ_32, 1, 1));
        let sum: u64 = run.parts(0).iter().map(|(_, time)| time.0).sum();
        assert_eq!(run.end(), Time::from_nanos(850));
        assert_eq!(Time(sum), run.end());
        assert_eq!(end(&memory(), Kind::READ_32, 10), Time::from_nanos(8_500));
    }

    #[test]
    fn writes_take_the_time_of_their_lines() {
        // The first 64 lines find room in the buffer: they need no write back.
        let (lines, free) = (300, 64);
        for (kind, writes) in
            [(Kind::WRITE_32, 32), (Kind::WRITE_64, 16), (Kind::WRITE_COMBINED, 2)]
        {
            let memory = memory();
            let all = memory.line_time(writes, kind.bytes).0 * lines - memory.line().0 * free;
            let got = end(&memory, kind, lines * writes).0;
            // Besides, the first write has to come and the last credit to go back.
            assert!((all..all + 1_000_000).contains(&got), "{kind:?}: {got} where {all} is due");
        }
    }

    #[test]
    fn the_rate_of_posted_writes_is_credits_over_their_loop() {
        // Writes within one line, so that the buffer does not hold them up.
        let access = Access { thread: 0, address: 0, kind: Kind::WRITE_32 };
        let time = |credits, count| Memory { credits, ..memory() }.run(&vec![access; count]).end();
        let each = |credits| (time(credits, 1_680) - time(credits, 840)).0 / 840;
        // Host, link, core, lookup and word, core: 110 + 15 + 120 + 40 + 60 ns.
        for credits in 1..=8 {
            assert_eq!(each(credits), 345_000 / u64::from(credits), "{credits} credits");
        }
        // Then the write buffer is the bottleneck.
        assert_eq!(each(9), 40_000);
    }

    #[test]
    fn a_delay_of_reads_delays_reads_by_as_much() {
        let slow = Memory { delays: (Time::from_nanos(150), Time::from_nanos(7_000)), ..memory() };
        assert_eq!(end(&slow, Kind::READ_32, 100), Time::from_nanos(100_000));
    }

    #[test]
    fn whole_lines_past_the_buffer_cost_their_lookups_and_words_only() {
        let memory = Memory { bypass: true, ..memory() };
        let run = memory.run(&streams(Kind::WRITE_COMBINED, 1, 2_000));
        // The DRAM takes a line while the next one is gathered: 16 cycles after 2 x 11.
        let line = 2 * 11 + 16;
        assert!((run.rate() - 128e3 / f64::from(line * 10)).abs() < 1.0, "{}", run.rate());
    }
}

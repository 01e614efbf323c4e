//! The emulation in the kernel of DECstations (section 5): a round trip of remote writes, and a
//! remote read.
//!
//! ```text
//!   write:  trap -> send -> [PIO] -> wire -> interrupt -> [PIO] -> deposit -> return -> poll
//!   read:   trap -> send -> [PIO] -> wire -> interrupt -> [PIO] -> read ... [PIO] -> wire -> ...
//! ```
//!
//! A round trip of writes is two of the upper line. The destination of a read answers from its
//! interrupt handler, so its program neither returns, polls nor traps.
//!
//! The source states the round trip and the share of programmed I/O. Both are inputs here.
use super::cell;
use crate::machine::{Course, Machine, Part, Passage, Step};
use crate::time::Time;

/// A trap or an interrupt: half of it enters the kernel, and half returns.
pub const TRAP: Part = Part("trap");
/// Programmed I/O: a cell to the interface, or from it.
pub const PIO: Part = Part("programmed I/O");
/// The link.
pub const WIRE: Part = Part("wire");
/// The kernel's own work.
pub const SOFTWARE: Part = Part("software");
/// The program finds out.
pub const POLL: Part = Part("poll");
/// Misses of caches and of the TLB in a first round trip.
pub const MISSES: Part = Part("misses");

/// The times of one way, and the state of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// A trap and its return.
    pub trap: Time,
    /// The programmed I/O of a cell on its way: out of one host, and into the other.
    pub pio: Time,
    /// A cell on the link.
    pub wire: Time,
    /// A switch; zero if there is none.
    pub switch: Time,
    /// The kernel's work to send a cell, and to deposit one: half each.
    pub software: Time,
    /// A load that misses the cache, for the word that the program polls.
    pub miss: Time,
}

/// The source's round trip of writes (section 5), which the kernel's work is what is left of.
const ROUND_TRIP: Time = Time::from_nanos(49_000);

impl Emulation {
    /// Two DECstations 5000/240 without a switch.
    ///
    /// Reconstructed from the field: an R3000 of 25 MHz takes 5.2 us to trap and to return
    /// (Anderson and others, ASPLOS 1991), and this one has 40 MHz. A miss takes 16 cycles. The
    /// kernel's work is what the source's round trip leaves, so the round trip is no result.
    pub fn decstation() -> Self {
        let one_way = Time(ROUND_TRIP.0 / 2);
        let trap = Time::from_nanos(5_200 * 25 / 40);
        let miss = Time::from_nanos(16 * 25);
        let pio = Time(one_way.0 / 3);
        let wire = cell::time(140e6);
        let software = one_way - trap - Time(trap.0 / 2) - miss - pio - wire;
        Self { trap, pio, wire, switch: Time::ZERO, software, miss }
    }

    /// A write and a write back, as the first program sees it.
    pub fn round_trip(&self) -> Passage {
        passage(self.round_trip_steps())
    }

    /// The steps of a write and a write back.
    pub fn round_trip_steps(&self) -> Course {
        [self.initiate(), self.finish(), self.initiate(), self.finish()].concat()
    }

    /// A first round trip, on hosts that are cold.
    pub fn first_round_trip(&self, cold: &Cold) -> Passage {
        let misses = Step::delay(MISSES, cold.time(self));
        let mut course = vec![misses, misses];
        course.extend(self.round_trip_steps());
        passage(course)
    }

    /// A remote read, as its program sees it.
    pub fn read(&self) -> Passage {
        passage(self.read_steps())
    }

    /// The steps of a remote read.
    pub fn read_steps(&self) -> Course {
        [self.initiate(), self.arrive(), self.send(), self.finish()].concat()
    }

    /// A program sends a cell.
    fn initiate(&self) -> Course {
        let mut course = vec![Step::delay(TRAP, Time(self.trap.0 / 2))];
        course.extend(self.send());
        course
    }

    /// The kernel sends a cell, which crosses the link.
    fn send(&self) -> Course {
        vec![
            Step::delay(SOFTWARE, Time(self.software.0 / 2)),
            Step::delay(PIO, Time(self.pio.0 / 2)),
            Step::delay(WIRE, self.wire + self.switch),
        ]
    }

    /// A cell arrives, and the kernel handles it.
    fn arrive(&self) -> Course {
        vec![
            Step::delay(TRAP, Time(self.trap.0 / 2)),
            Step::delay(PIO, self.pio - Time(self.pio.0 / 2)),
            Step::delay(SOFTWARE, self.software - Time(self.software.0 / 2)),
        ]
    }

    /// A cell arrives for a program that polls.
    fn finish(&self) -> Course {
        let mut course = self.arrive();
        course.push(Step::delay(TRAP, self.trap - Time(self.trap.0 / 2)));
        course.push(Step::delay(POLL, self.miss));
        course
    }
}

/// The misses of a host that runs its code for the first time: its caches hold nothing of it, nor
/// its TLB of the tables of connections and endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cold {
    /// The time of an instruction.
    pub cycle: Time,
    /// Instructions in a line of the cache.
    pub line: u64,
    /// Instructions for each line of data that is touched.
    pub data: u64,
    /// Pages that are touched, and the time of a miss of the TLB.
    pub pages: (u64, Time),
}

impl Cold {
    /// A DECstation 5000/240 with Mach 3.0. The source states none of these numbers.
    ///
    /// Reconstructed from the field: an R3000 of 40 MHz takes an instruction for each cycle, and
    /// has lines of four words. One instruction in four loads or stores, here always a new line.
    /// A miss of the kernel's TLB takes 355 cycles under Mach (Nagle and others, ISCA 1993). The
    /// pages are program, stack and endpoint, tables of connections and endpoints, two page tables
    /// and the buffers of the driver.
    pub fn decstation() -> Self {
        Self { cycle: Time(25_000), line: 4, data: 4, pages: (8, Time(355 * 25_000)) }
    }

    /// The time that misses of a host take in a round trip, if it is the first.
    fn time(&self, emulation: &Emulation) -> Time {
        let kernel = emulation.software + emulation.trap + Time(emulation.trap.0 / 2);
        let instructions = kernel.0 / self.cycle.0;
        let lines = instructions / self.line + instructions / self.data;
        Time(lines * emulation.miss.0 + self.pages.0 * self.pages.1.0)
    }
}

fn passage(course: Course) -> Passage {
    let mut machine = Machine::default();
    let item = machine.add(course, [Time::ZERO]);
    machine.run();
    machine.passage(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(time: Time, other: Time) -> bool {
        time.0.abs_diff(other.0) <= 8
    }

    #[test]
    fn parts_sum_to_the_round_trip_and_a_third_is_programmed_io() {
        let trip = Emulation::decstation().round_trip();
        let part = |wanted| trip.parts.iter().find(|(part, _)| *part == wanted).expect("a part").1;
        assert!(near(trip.time(), ROUND_TRIP), "{}", trip.time());
        assert!(near(part(PIO), Time(ROUND_TRIP.0 / 3)));
        let sum: u64 = trip.parts.iter().map(|(_, time)| time.0).sum();
        assert_eq!(sum, trip.time().0);
    }

    #[test]
    fn a_read_saves_the_other_program_and_no_cell() {
        let emulation = Emulation::decstation();
        let saved = emulation.round_trip().time() - emulation.read().time();
        assert!(near(saved, emulation.trap + emulation.miss), "{saved}");
        let switched = Emulation { switch: Time::from_nanos(5_500), ..emulation };
        for (with, without) in
            [(switched.round_trip(), emulation.round_trip()), (switched.read(), emulation.read())]
        {
            assert_eq!(with.time() - without.time(), Time::from_nanos(11_000));
        }
    }

    #[test]
    fn misses_are_all_that_a_first_round_trip_adds() {
        let emulation = Emulation::decstation();
        let cold = Cold::decstation();
        let trip = |cold| emulation.first_round_trip(cold).time() - emulation.round_trip().time();
        let warm = Cold { line: u64::MAX, data: u64::MAX, pages: (0, Time::ZERO), ..cold };
        assert_eq!(trip(&warm), Time::ZERO);
        let more = Cold { pages: (cold.pages.0 + 3, cold.pages.1), ..cold };
        assert_eq!(trip(&more) - trip(&cold), Time(2 * 3 * cold.pages.1.0));
    }
}

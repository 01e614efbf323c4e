//! The receiving side: cells, the operation logic and the bus of the host (sections 6.2 and 6.6).
//!
//! ```text
//!   link:   | header, control | data, CRC |  next cell ...
//!   logic:                    | cycles of its instructions |
//!   bus:                                  | data to memory |
//! ```
//!
//! The logic begins when the control bytes have come, and works while the data comes. The bus takes
//! the data when both are done. A sequencer may step through several instructions for each cell.
use super::cell;
use super::logic::Work;
use crate::machine::{Course, Machine, Part, Step};
use crate::time::Time;

/// The link.
const LINK: Part = Part("link");
/// The operation logic.
const LOGIC: Part = Part("operation logic");
/// The bus.
const BUS: Part = Part("bus");

/// A receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Receiver {
    /// The rate of its link.
    pub bits_per_second: f64,
    /// The period of its operation logic.
    pub period: Time,
    /// The time in which the bus moves the data of a cell.
    pub bus: Time,
}

/// How cells pass a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// From the first bit of a cell to its data in memory, if no other is there.
    pub latency: Time,
    /// From cell to cell, when they come back to back.
    pub each: Time,
}

impl Receiver {
    /// Receives cells, each of which goes through these instructions.
    pub fn receive(&self, sequence: &[Work]) -> Reception {
        const CELLS: usize = 200;
        let mut machine = Machine::default();
        let cell = self.block(&mut machine, sequence, 1).swap_remove(0);
        let first = machine.add(cell, [Time::ZERO; CELLS]);
        machine.run();
        let ended = |number: usize| machine.passage(first + number).ended;
        let each = (ended(CELLS - 1) - ended(CELLS / 2 - 1)).0 / (CELLS / 2) as u64;
        Reception { latency: ended(0), each: Time(each) }
    }

    /// Adds the units of a receiver to a machine. The result is the steps of each cell of a block,
    /// of which the first one goes through these instructions.
    ///
    /// Reconstructed: further cells have no control, so the logic lets them pass as they come. The
    /// bus takes as long for each byte as for those of a first cell.
    pub fn block(&self, machine: &mut Machine, sequence: &[Work], cells: u32) -> Vec<Course> {
        let mut unit = |name| machine.named("receiver", name);
        let (link, logic, bus) = (unit("link"), unit("operation logic"), unit("bus"));
        let whole = cell::time(self.bits_per_second);
        let control = cell::HEADER + cell::CONTROL + cell::CHECK + cell::RESERVED;
        let head = Time(whole.0 * u64::from(control) / u64::from(cell::ALL));
        let cycles: u64 = sequence.iter().map(Work::cycles).sum();
        let decided = Time(self.period.0 * cycles);
        let data = whole - head;
        let first = vec![
            Step::pipelined(LINK, link, whole, head),
            Step::pipelined(LOGIC, logic, decided, decided.max(data)),
            Step::serve(BUS, bus, self.bus),
        ];
        let header = Time(whole.0 * u64::from(cell::HEADER) / u64::from(cell::ALL));
        let moved = Time(self.bus.0 * u64::from(cell::MORE) / u64::from(cell::DATA));
        let further = vec![
            Step::pipelined(LINK, link, whole, header),
            Step::pipelined(LOGIC, logic, Time::ZERO, whole - header),
            Step::serve(BUS, bus, moved),
        ];
        let others = core::iter::repeat_n(further, cells.saturating_sub(1) as usize);
        core::iter::once(first).chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dart::logic::{all_work, period};
    use std::collections::BTreeMap;

    fn receiver(bits_per_second: f64) -> Receiver {
        let data = Time((cell::data_time(bits_per_second) * 1e12).round() as u64);
        Receiver { bits_per_second, period: period(data, 9), bus: Time::from_nanos(240) }
    }

    #[test]
    fn every_instruction_is_done_when_its_data_is_there() {
        // One of each number of cycles will do: the receiver sees nothing else.
        let works: BTreeMap<_, _> = all_work().map(|work| (work.cycles(), work)).collect();
        assert_eq!(works.keys().copied().collect::<Vec<_>>(), (0..=9).collect::<Vec<_>>());
        for rate in [155e6, 622e6] {
            let receiver = receiver(rate);
            let least = cell::time(rate) + receiver.bus;
            for work in works.values() {
                let reception = receiver.receive(&[*work]);
                assert!(reception.latency.0.abs_diff(least.0) <= 2, "{work:?}: {reception:?}");
                assert_eq!(reception.each, cell::time(rate), "the link decides");
            }
        }
    }

    #[test]
    fn a_long_sequence_makes_the_logic_the_slowest_unit() {
        let receiver = receiver(155e6);
        let worst = all_work().max_by_key(Work::cycles).expect("there are some");
        for steps in 2..=4 {
            let busy = Time(9 * steps as u64 * receiver.period.0);
            let each = receiver.receive(&vec![worst; steps]).each;
            assert_eq!(each, busy.max(cell::time(155e6)), "{steps} instructions");
        }
    }
}

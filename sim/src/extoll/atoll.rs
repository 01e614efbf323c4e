//! ATOLL, EXTOLL's predecessor: rings of descriptors behind PCI-X (sections 2.1, 2.2 and 2.6).
//!
//! ```text
//!   copy, descriptor | pointer written | descriptor read | data read =====> link => hops
//!      (memory)            (PCI-X)           (PCI-X)        (PCI-X)               |
//!                  program <- pointer polled <- descriptor written <- data written
//! ```
//!
//! A host port has one message at a time: it reads the descriptor, then the data, and sends them as
//! they come.
use super::mpi::COPY;
use crate::host::pci::PciX;
use crate::machine::{Course, Machine, Part, Step, UnitId};
use crate::time::{Clock, Time};

/// The parts of a message's time.
const SOFTWARE: Part = Part("software");
const COPIES: Part = Part("copies");
const BUS: Part = Part("PCI-X");
const LINK: Part = Part("link");
const HOPS: Part = Part("hops");
const QUEUE: Part = Part("queue");

/// An interface and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atoll {
    /// The bus.
    pub bus: PciX,
    /// The clock of the core and of the links.
    pub clock: Clock,
    /// Bytes that a link moves in a cycle.
    pub width: u32,
    /// Bytes of a link packet's data, and those around them.
    pub packet: (u32, u32),
    /// Cycles of a hop: a crossbar and a link.
    pub hop: u64,
    /// Bytes of a descriptor.
    pub descriptor: u32,
    /// Software at both ends, half of it at each, without copies.
    pub software: Time,
}

impl Atoll {
    /// The measured machine: 300 MHz behind PCI-X at 100 MHz (section 2.6.1).
    ///
    /// The thesis says nothing about times. Reconstructed: the bus is that of FORTH's prototype,
    /// 64 bits at 100 MHz, and the software costs as much as EXTOLL's (table 9-2). Links are 8 bits
    /// wide, as the literature about ATOLL has it, and a hop takes 24 cycles. Messages consist of
    /// words of 64 bits (section 2.2.2). So a link packet is taken as 64 bytes with one word around
    /// them, and a descriptor as four words.
    pub fn measured() -> Self {
        Self {
            bus: PciX::forth(),
            clock: Clock::new(300_000_000).expect("a sound rate"),
            width: 1,
            packet: (64, 8),
            hop: 24,
            descriptor: 32,
            software: Time::from_nanos(300),
        }
    }

    /// The time of a message on a link.
    pub fn link_time(&self, bytes: u32) -> Time {
        let (data, around) = self.packet;
        let all = bytes + bytes.div_ceil(data) * around;
        self.clock.span(all.div_ceil(self.width).into())
    }

    /// From the send until a program has the message, over this number of hops.
    pub fn latency(&self, bytes: u32, hops: u64) -> Time {
        let mut machine = Machine::default();
        let course = self.course(&mut machine, bytes, hops);
        let item = machine.add(course, [Time::ZERO]);
        machine.run();
        machine.passage(item).time()
    }

    /// Bytes per second of messages in a row.
    pub fn stream(&self, bytes: u32) -> f64 {
        let mut machine = Machine::default();
        let course = self.course(&mut machine, bytes, 1);
        machine.per_second(course, 100) * f64::from(bytes)
    }

    fn course(&self, machine: &mut Machine, bytes: u32, hops: u64) -> Course {
        let [sender, send_bus, port, link, receive_bus, receiver] =
            core::array::from_fn(|_| machine.unit());
        let half = Time(self.software.0 / 2);
        let copy = Time((f64::from(bytes) / COPY * 1e12).round() as u64);
        let pointer = self.bus.span(self.bus.write_words(1));
        let last = bytes.min(self.packet.0);
        // A poll of a register takes a round trip, and the pointer changes at any time in it.
        let poll = self.bus.span(self.bus.read(self.bus.width));
        let mut course = vec![
            Step::serve(SOFTWARE, sender, half),
            Step::serve(COPIES, sender, copy),
            Step::serve(BUS, send_bus, pointer),
            Step::take(QUEUE, port, 1),
            self.read(send_bus, self.descriptor, self.descriptor),
            self.read(send_bus, bytes, self.bus.width),
            Step::serve(LINK, link, self.link_time(bytes)),
            Step::give(QUEUE, port, 1),
            Step::delay(HOPS, self.clock.span(self.hop * hops)),
        ];
        // The data before the last packet have been written while the message came in.
        for bytes in [last, self.descriptor] {
            course.push(Step::serve(BUS, receive_bus, self.bus.span(self.bus.write(bytes))));
        }
        course.extend([
            Step::delay(BUS, poll),
            Step::serve(SOFTWARE, receiver, half),
            Step::serve(COPIES, receiver, copy),
        ]);
        course
    }

    /// A read of `bytes` bytes, which goes on when the first `awaited` ones have come.
    fn read(&self, bus: UnitId, bytes: u32, awaited: u32) -> Step {
        let hold = self.bus.read(bytes) - self.bus.first_word;
        let latency = self.bus.read(awaited);
        Step::pipelined(BUS, bus, self.bus.span(hold), self.bus.span(latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hop_adds_its_cycles() {
        let atoll = Atoll::measured();
        let added = atoll.latency(8, 7) - atoll.latency(8, 1);
        assert_eq!(added, atoll.clock.span(7 * atoll.hop) - atoll.clock.span(atoll.hop));
    }

    #[test]
    fn a_port_has_one_message_at_a_time() {
        let atoll = Atoll::measured();
        for bytes in [64, 1024, 32 * 1024] {
            let reads = atoll.bus.read(atoll.descriptor) + atoll.bus.read(atoll.bus.width);
            let period = atoll.bus.span(reads) + atoll.link_time(bytes);
            let ours = atoll.stream(bytes) * period.0 as f64 / 1e12 / f64::from(bytes);
            assert!((ours - 1.0).abs() < 1e-6, "{bytes}: {ours}");
        }
    }
}

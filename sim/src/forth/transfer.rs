//! One transfer from memory to memory, told by its parts (section V.E), and its time stamps
//! (section V.B).
//!
//! ```text
//!   processor -> [i] request queue -> DMA engine -> VOQ -> [ii] link -> [iii] switch [iv] -> link
//!      initiation        send DMA         send NIC     propagation, switch
//!   -> incoming queue -> DMA engine -> memory
//!        receive NIC        receive DMA
//! ```
use super::network::{BYTE, FRAMING, PIPELINE, PROPAGATION};
use crate::host::pci::PciX;
use crate::machine::{Course, Machine, Part, Passage, Step, UnitId};
use crate::time::Time;

/// The processor's writes to the interface.
pub const INITIATION: Part = Part("send initiation");
/// The read of the data from the sender's memory.
pub const SEND_DMA: Part = Part("send DMA");
/// The sending interface.
pub const SEND_NIC: Part = Part("send NIC");
/// The switch.
pub const SWITCH: Part = Part("switch");
/// SERDES and cables.
pub const FLIGHT: Part = Part("propagation");
/// The receiving interface.
pub const RECEIVE_NIC: Part = Part("receive NIC");
/// The write of the data to the receiver's memory.
pub const RECEIVE_DMA: Part = Part("receive DMA");

/// 64-bit words of a descriptor (section III.A).
const DESCRIPTOR: u32 = 2;
/// A descriptor that is not combined takes single writes of 32 bits (section V.C).
const SINGLE_WRITES: u32 = 4;

/// How a program starts a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// By a descriptor of remote DMA. Its words are written one by one, or combined.
    Descriptor {
        /// The processor combines its writes.
        combined: bool,
    },
    /// By a message: a header and the data, in combined writes.
    Message,
}

/// The parts of a prototype that a transfer meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// The bus of both hosts.
    pub bus: PciX,
    /// The time of a byte on a link.
    pub byte: Time,
    /// From source to switch to destination.
    pub propagation: Time,
    /// The pipeline of each interface, and of the switch.
    pub pipeline: Time,
}

/// The units that a transfer meets.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// The sender's bus, for the program.
    bus: UnitId,
    /// The sender's DMA engine, which holds its data together until they are read.
    engine: UnitId,
    link: UnitId,
    /// The receiver's bus.
    receiver: UnitId,
}

impl Units {
    /// Adds them to a machine.
    pub fn new(machine: &mut Machine) -> Self {
        Self {
            bus: machine.named("sender", "bus"),
            engine: machine.named("sender", "DMA engine"),
            link: machine.named("network", "link"),
            receiver: machine.named("receiver", "bus"),
        }
    }
}

/// When a transfer passed the four points of the benchmark mode (section V.B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// (i) The program has written its descriptor or message.
    pub posted: Time,
    /// (ii) Its packet leaves the interface.
    pub departed: Time,
    /// (iii) The packet arrives at the switch.
    pub at_switch: Time,
    /// (iv) The packet leaves the switch.
    pub left_switch: Time,
}

impl Prototype {
    /// The published machine.
    pub fn forth() -> Self {
        Self { bus: PciX::forth(), byte: BYTE, propagation: PROPAGATION, pipeline: PIPELINE }
    }

    /// The steps of a transfer of up to 512 bytes.
    ///
    /// The interface stores data as they come from the bus, so this takes no time of its own. The
    /// receiver waits for the tail of the packet: an initiator of PCI-X may not pause in a burst,
    /// and the CRC comes last. Both are reconstructed.
    pub fn course(&self, units: &Units, start: Start, bytes: u32) -> Course {
        let bus = |cycles| self.bus.span(cycles);
        let half = Time(self.propagation.0 / 2);
        let tail = Time(self.byte.0 * u64::from(bytes + FRAMING));
        let mut course =
            vec![Step::serve(INITIATION, units.bus, bus(self.initiation(start, bytes)))];
        if start != Start::Message {
            course.push(Step::serve(SEND_DMA, units.engine, bus(self.bus.read(bytes))));
        }
        course.extend([
            Step::delay(SEND_NIC, self.pipeline),
            Step::pipelined(FLIGHT, units.link, tail, half),
            Step::delay(SWITCH, self.pipeline),
            Step::delay(FLIGHT, self.propagation - half),
            Step::delay(RECEIVE_NIC, tail + self.pipeline),
            Step::serve(RECEIVE_DMA, units.receiver, bus(self.bus.write(bytes))),
        ]);
        course
    }

    /// The bus cycles of a program that starts a transfer.
    pub fn initiation(&self, start: Start, bytes: u32) -> u32 {
        match start {
            Start::Descriptor { combined: false } => self.bus.write_words(SINGLE_WRITES),
            Start::Descriptor { combined: true } => self.bus.write_combined(DESCRIPTOR),
            Start::Message => self.bus.write_combined(1 + self.bus.words(bytes)),
        }
    }

    /// The way of a transfer through an idle machine.
    pub fn transfer(&self, start: Start, bytes: u32) -> Passage {
        let mut machine = Machine::default();
        let units = Units::new(&mut machine);
        let item = machine.add(self.course(&units, start, bytes), [Time::ZERO]);
        machine.run();
        machine.passage(item)
    }

    /// Its time stamps in an idle machine.
    pub fn stamps(&self, start: Start, bytes: u32) -> Stamps {
        let read = match start {
            Start::Message => 0,
            Start::Descriptor { .. } => self.bus.read(bytes),
        };
        let posted = self.bus.span(self.initiation(start, bytes));
        let departed = posted + self.bus.span(read) + self.pipeline;
        let at_switch = departed + Time(self.propagation.0 / 2);
        Stamps { posted, departed, at_switch, left_switch: at_switch + self.pipeline }
    }
}

/// The time of a part; zero if a transfer has none.
pub fn time_of(passage: &Passage, part: Part) -> Time {
    let found = passage.parts.iter().find(|(name, _)| *name == part);
    found.map_or(Time::ZERO, |(_, time)| *time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTS: [Start; 3] = [
        Start::Descriptor { combined: false },
        Start::Descriptor { combined: true },
        Start::Message,
    ];

    #[test]
    fn parts_sum_to_the_whole() {
        let prototype = Prototype { pipeline: Time(77_777), ..Prototype::forth() };
        for (start, bytes) in STARTS.into_iter().flat_map(|start| [8, 64, 512].map(|b| (start, b)))
        {
            let passage = prototype.transfer(start, bytes);
            let parts: u64 = passage.parts.iter().map(|(_, time)| time.0).sum();
            assert_eq!(parts, passage.time().0);
            assert_eq!(passage.waited, Time::ZERO);
        }
    }

    #[test]
    fn stamps_part_the_way_as_the_parts_do() {
        let prototype = Prototype { propagation: Time(640_001), ..Prototype::forth() };
        for start in STARTS {
            let (passage, stamps) = (prototype.transfer(start, 8), prototype.stamps(start, 8));
            let part = |part| time_of(&passage, part);
            assert_eq!(stamps.posted, part(INITIATION));
            assert_eq!(stamps.departed - stamps.posted, part(SEND_DMA) + part(SEND_NIC));
            assert_eq!(stamps.left_switch - stamps.at_switch, part(SWITCH));
            let rest = passage.ended - stamps.left_switch;
            let flight = part(FLIGHT) - (stamps.at_switch - stamps.departed);
            assert_eq!(rest, flight + part(RECEIVE_NIC) + part(RECEIVE_DMA));
        }
    }

    #[test]
    fn a_faster_bus_shortens_the_bus_s_parts_only() {
        let fast = PciX {
            clock: crate::time::Clock::new(200_000_000).expect("a sound rate"),
            ..PciX::forth()
        };
        let (slow, fast) = (Prototype::forth(), Prototype { bus: fast, ..Prototype::forth() });
        for start in STARTS {
            let (slow, fast) = (slow.transfer(start, 8), fast.transfer(start, 8));
            for ((part, before), (_, after)) in slow.parts.iter().zip(&fast.parts) {
                let halves = [INITIATION, SEND_DMA, RECEIVE_DMA].contains(part);
                assert_eq!(after.0, if halves { before.0 / 2 } else { before.0 }, "{part:?}");
            }
        }
    }
}

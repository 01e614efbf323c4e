//! EXTOLL's network interface: VELO, RMA, lock unit and address translation.
//!
//! Source: the EXTOLL thesis. Times marked "reconstructed" are not in it; each is stated with the
//! reason for its value.
//!
//! ```text
//!  processor -> HyperTransport -> HTAX -> requester --> network --> completer -> HTAX -> memory
//!                  (host)                  |  ^            |          |
//!                                         ATU DMA read     '-> responder (get, lock)
//! ```
pub mod atu;
pub mod frame;
pub mod issue;

use crate::host::Host;
use crate::machine::{Course, Machine, Part, Step};
use crate::time::{Clock, Time};

/// The parts of an operation's time (table 9-1).
pub mod part {
    use crate::machine::Part;

    /// Software at both ends.
    pub const SOFTWARE: Part = Part("software");
    /// The processor's store into the device.
    pub const PIO_WRITE: Part = Part("PIO write");
    /// A unit of RMA.
    pub const UNIT: Part = Part("RMA unit");
    /// A translation.
    pub const TRANSLATION: Part = Part("translation");
    /// A read of the host's memory.
    pub const DMA_READ: Part = Part("DMA read");
    /// From one interface to the other.
    pub const TRIP: Part = Part("network trip");
    /// A write into the host's memory, up to the program that polls for it.
    pub const DMA_WRITE: Part = Part("DMA write");
}

/// An interface's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Software at both ends (table 9-2).
    pub software: Time,
    /// The processor's store into the device.
    pub pio_write: Time,
    /// A pass through a unit of RMA.
    pub unit: Time,
    /// A translation that hits the TLB.
    pub translation: Time,
    /// A read of the host's memory.
    pub dma_read: Time,
    /// From one interface to the other, for the shortest packet.
    pub trip: Time,
    /// A write into the host's memory.
    pub dma_write: Time,
}

/// Cycles of the on-chip crossbar HTAX with its bridge, towards a unit and from a unit to the host
/// (section 7.1).
const HTAX_IN: u64 = 6;
const HTAX_OUT: u64 = 3;
/// Cycles of a unit of RMA. Reconstructed: the thesis gives 50 ns at 156 MHz.
const UNIT: u64 = 8;
/// Cycles of a request and its response over the channel between a unit and the ATU. Reconstructed:
/// a packet passes every second cycle (section 5.2.9), so each takes one at least.
const ATS: u64 = 2;

impl Parameters {
    /// The sub-operations as the thesis lists them (table 9-2).
    pub const LISTED: Self = Self {
        software: Time::from_nanos(300),
        pio_write: Time::from_nanos(150),
        unit: Time::from_nanos(50),
        translation: Time::from_nanos(70),
        dma_read: Time::from_nanos(350),
        trip: Time::from_nanos(650),
        dma_write: Time::from_nanos(200),
    };

    /// The sub-operations composed of the host's times and of cycles of the interface. The network
    /// trip and the software are taken from table 9-2: the thesis says nothing about their parts.
    pub fn composed(host: &Host, clock: Clock) -> Self {
        Self {
            pio_write: host.to_device + clock.span(HTAX_IN),
            unit: clock.span(UNIT),
            translation: clock.span(atu::HIT + ATS),
            dma_read: host.device_read + clock.span(HTAX_IN + HTAX_OUT),
            dma_write: host.device_write() + clock.span(HTAX_OUT),
            ..Self::LISTED
        }
    }
}

/// Puts of a stream; the second half is measured.
const PUTS: usize = 200;

/// Bytes per second of HyperTransport 400 with 16 bits (section 7.1).
const HOST_RATE: f64 = 1.4e9;

impl Parameters {
    /// The rate of puts of this length in a row, in bytes per second. The processor's store, the
    /// requester with its read, the link and the completer with its write work side by side, and
    /// each has one put at a time.
    pub fn put_rate(&self, bytes: u32, clock: Clock) -> f64 {
        let data = Time((f64::from(bytes) / HOST_RATE * 1e12) as u64);
        let link_time = clock.span(frame::cycles(bytes, true).into());
        let mut machine = Machine::default();
        let [processor, requester, link, completer] = core::array::from_fn(|_| machine.unit());
        let course = vec![
            Step::serve(part::PIO_WRITE, processor, self.pio_write),
            Step::serve(
                part::DMA_READ,
                requester,
                self.unit + self.translation + self.dma_read + data,
            ),
            Step::pipelined(part::TRIP, link, link_time, self.trip + link_time),
            Step::serve(
                part::DMA_WRITE,
                completer,
                self.unit + self.translation + self.dma_write + data,
            ),
        ];
        let first = machine.add(course, [Time::ZERO; PUTS]);
        machine.run();
        let [begin, end] = [PUTS / 2, PUTS - 1].map(|put| machine.passage(first + put).ended);
        let puts = (PUTS - 1 - PUTS / 2) as f64;
        puts * f64::from(bytes) * 1e12 / (end - begin).0 as f64
    }
}

/// The prototype's clock.
pub fn prototype_clock() -> Clock {
    Clock::new(156_250_000).expect("a sound rate")
}

/// An operation between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A short message.
    Velo,
    /// A notification with a payload in it.
    NotificationPut,
    /// A payload of 8 bytes in the command, written to memory.
    ImmediatePut {
        /// Whether the target is notified.
        notified: bool,
    },
    /// Memory to memory.
    Put {
        /// Whether the target is notified.
        notified: bool,
    },
    /// From memory of the target, notified at the initiator.
    Get,
    /// An atomic operation in the target's lock space, which needs no translation.
    Lock,
}

impl Operation {
    /// The parts that the operation passes, up to the program that polls for its end.
    fn parts(self) -> Vec<Part> {
        use part::{DMA_READ, DMA_WRITE, TRANSLATION, TRIP, UNIT};
        let send: &[Part] = match self {
            Self::Velo => &[TRIP],
            Self::NotificationPut | Self::ImmediatePut { .. } => &[UNIT, TRIP],
            Self::Put { .. } => &[UNIT, TRANSLATION, DMA_READ, TRIP],
            // Through the responder of the other node, and back.
            Self::Get => &[UNIT, TRIP, UNIT, TRANSLATION, DMA_READ, TRIP],
            Self::Lock => &[UNIT, TRIP, UNIT, DMA_READ, DMA_WRITE, TRIP],
        };
        let complete: &[Part] = match self {
            Self::Velo => &[DMA_WRITE],
            Self::NotificationPut | Self::Lock => &[UNIT, DMA_WRITE],
            Self::ImmediatePut { notified } | Self::Put { notified } if !notified => {
                &[UNIT, TRANSLATION, DMA_WRITE]
            }
            // The data, and the notification behind it.
            _ => &[UNIT, TRANSLATION, DMA_WRITE, DMA_WRITE],
        };
        [&[part::SOFTWARE, part::PIO_WRITE], send, complete].concat()
    }

    /// The steps of the operation alone.
    pub fn course(self, times: &Parameters) -> Course {
        self.parts().into_iter().map(|part| Step::delay(part, times.of(part))).collect()
    }
}

impl Parameters {
    fn of(&self, part: Part) -> Time {
        match part {
            part::SOFTWARE => self.software,
            part::PIO_WRITE => self.pio_write,
            part::UNIT => self.unit,
            part::TRANSLATION => self.translation,
            part::DMA_READ => self.dma_read,
            part::TRIP => self.trip,
            _ => self.dma_write,
        }
    }
}

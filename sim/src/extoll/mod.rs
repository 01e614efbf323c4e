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
//!
//! [`Parameters`] are the times of an interface. A [`Pair`] is two nodes made of units, and
//! [`Operation`]s pass through them. [`atu`] and [`issue`] compare ways of translating addresses
//! and of giving commands.
pub mod atoll;
pub mod atu;
pub mod frame;
pub mod issue;
pub mod layers;
pub mod lock;
pub mod mailbox;
pub mod mpi;
mod operation;
mod pair;

use crate::host::Host;
use crate::time::{Clock, Time};
pub use operation::Operation;
pub use pair::{Pair, Transfer, pieces};

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
    /// From one interface to the other, for the shortest packet.
    pub const TRIP: Part = Part("network trip");
    /// The rest of a longer packet, which passes the link behind its beginning.
    pub const TAIL: Part = Part("tail of the packet");
    /// A write into the host's memory, up to the program that polls for it.
    pub const DMA_WRITE: Part = Part("DMA write");
    /// Units are taken and given back.
    pub const QUEUE: Part = Part("queue");
}

/// An interface's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Software at both ends (table 9-2), half of it at each. Reconstructed: the thesis does not
    /// divide it.
    pub software: Time,
    /// The processor is held by a store into the device.
    pub store: Time,
    /// The processor is held by a command: a store, if nothing else is said.
    pub issue: Time,
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
    /// The core's clock, at which bytes pass the link and the crossbar on the chip. The list of
    /// table 9-2 has none: it knows no lengths.
    pub clock: Option<Clock>,
    /// Cycles from the end of a packet until a unit of RMA takes its next command.
    pub turnaround: u64,
    /// The kernel's times, if it translates the addresses before the command (section 7.5.5).
    pub kernel: Option<Kernel>,
}

/// The cost of the kernel to an operation whose addresses it translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// At the node that gives the command.
    pub send: Time,
    /// At the node that sees the operation's end.
    pub receive: Time,
}

/// Cycles of the on-chip crossbar HTAX with its bridge, towards a unit and from a unit to the host
/// (section 7.1).
const HTAX_IN: u64 = 6;
const HTAX_OUT: u64 = 3;
/// Cycles of a unit of RMA. Reconstructed: the thesis gives 50 ns at 156 MHz.
const UNIT: u64 = 8;
/// Cycles of a request and its response over the channel between a unit and the ATU. Reconstructed:
/// a packet passes every second cycle (section 5.2.9), so each takes one at least.
pub(crate) const ATS: u64 = 2;
/// Cycles from the end of a packet until a unit of RMA takes its next command. Reconstructed from
/// the rate of notification puts (table 9-3): 60 cycles less the unit's 8 and the packet's 21. The
/// thesis says that each unit is one state machine (section 7.5.6), and no more.
const TURNAROUND: u64 = 31;

impl Parameters {
    /// The sub-operations as the thesis lists them (table 9-2).
    pub const LISTED: Self = Self {
        software: Time::from_nanos(300),
        store: Time::ZERO,
        issue: Time::ZERO,
        pio_write: Time::from_nanos(150),
        unit: Time::from_nanos(50),
        translation: Time::from_nanos(70),
        dma_read: Time::from_nanos(350),
        trip: Time::from_nanos(650),
        dma_write: Time::from_nanos(200),
        clock: None,
        turnaround: 0,
        kernel: None,
    };

    /// The sub-operations composed of the host's times and of cycles of the interface. The network
    /// trip and the software are taken from table 9-2: the thesis says nothing about their parts.
    /// At another clock than the prototype's, the trip is [`layers::PHYSICAL_TIME`] as before, and
    /// the rest of it as many cycles.
    pub fn composed(host: &Host, clock: Clock) -> Self {
        Self {
            store: host.store,
            issue: host.store,
            pio_write: host.to_device + clock.span(HTAX_IN),
            unit: clock.span(UNIT),
            translation: clock.span(atu::HIT + ATS),
            dma_read: host.device_read + clock.span(HTAX_IN + HTAX_OUT),
            trip: trip(clock),
            dma_write: host.device_write() + clock.span(HTAX_OUT),
            clock: Some(clock),
            turnaround: TURNAROUND,
            ..Self::LISTED
        }
    }

    /// The kernel translates both addresses by its flat table, and one back for the program that
    /// sees the end. The interface translates nothing.
    #[must_use]
    pub fn by_kernel(self, host: &Host) -> Self {
        let kernel = Kernel {
            send: host.kernel_path() + host.memory + host.memory,
            receive: host.kernel_path() + host.memory,
        };
        Self { translation: Time::ZERO, kernel: Some(kernel), ..self }
    }

    /// The addresses of an operation miss the TLB: each is read from the table in memory (5.2.6).
    #[must_use]
    pub fn missing(self, host: &Host, clock: Clock) -> Self {
        Self { translation: atu::miss(clock, host.device_read) + clock.span(ATS), ..self }
    }

    /// Commands are given in another way (section 6.4).
    #[must_use]
    pub fn issued(self, method: issue::Method, host: &Host, clock: Clock) -> Self {
        let pio_write = method.start(host) + clock.span(HTAX_IN);
        Self { pio_write, issue: method.period(host), ..self }
    }

    /// The time of `cycles` cycles.
    pub(crate) fn cycles(&self, cycles: u64) -> Time {
        self.clock.map_or(Time::ZERO, |clock| clock.span(cycles))
    }
}

/// The network trip at a clock.
fn trip(clock: Clock) -> Time {
    let digital = Parameters::LISTED.trip - layers::PHYSICAL_TIME;
    // The clocks' periods are compared over many cycles, since times are whole picoseconds.
    let [here, there] = [clock, prototype_clock()].map(|clock| u128::from(clock.span(1 << 20).0));
    layers::PHYSICAL_TIME + Time((u128::from(digital.0) * here / there) as u64)
}

/// The prototype's clock.
pub fn prototype_clock() -> Clock {
    Clock::new(156_250_000).expect("a sound rate")
}

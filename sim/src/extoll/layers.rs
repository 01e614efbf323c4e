//! The hardware's share of a message by layer, against the clock (figure 7-15).
//!
//! ```text
//!   HT 12 -> HTAX 6 -> VELO -> port -> crossbar -> link ~ physical ~ link -> crossbar -> port
//!                                                          HT 6 <- HTAX 3 <- VELO <---'
//! ```
use super::{HTAX_IN, HTAX_OUT, UNIT};
use crate::machine::{Machine, Part, Passage, Step};
use crate::time::{Clock, Time};

/// Serialisers, synchronisation and fibre.
pub const PHYSICAL: Part = Part("physical");
/// Network ports, crossbars and link ports.
pub const NETWORK: Part = Part("network");
/// HTAX and the units of VELO.
pub const NIC: Part = Part("NIC");
/// The core of HyperTransport.
pub const HT: Part = Part("HT");

/// The time of the physical layer, whose transceivers have a clock of their own. Reconstructed: the
/// transceivers of a Virtex-4 take some 200 ns.
pub const PHYSICAL_TIME: Time = Time::from_nanos(200);

/// The clocks and the stages of two interfaces with a link between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// The clock of the NIC and of the network.
    pub core: Clock,
    /// The clock of the HyperTransport core.
    pub host: Clock,
    /// Stages of that core, from the host and to it (section 7.1).
    pub ht: [u64; 2],
    /// Cycles of HTAX, from the host and to it (section 7.1).
    pub htax: [u64; 2],
    /// Cycles of VELO's requester and of its completer.
    pub velo: [u64; 2],
    /// Cycles of a network port, a crossbar and a link port. Each is passed twice.
    pub network: [u64; 3],
    /// The physical layer, whose transceivers have a clock of their own.
    pub physical: Time,
}

impl Layers {
    /// The prototype at this core clock and clock of HyperTransport.
    ///
    /// The thesis gives no parts of the network trip. Reconstructed: the units of VELO take as long
    /// as those of RMA, and the transceivers take [`PHYSICAL_TIME`]. The other 54 cycles of the
    /// trip of 650 ns are divided evenly over six stages.
    pub fn prototype(core: Clock, host: Clock) -> Self {
        Self {
            core,
            host,
            ht: [12, 6],
            htax: [HTAX_IN, HTAX_OUT],
            velo: [UNIT; 2],
            network: [9; 3],
            physical: PHYSICAL_TIME,
        }
    }

    /// The way of a message through all layers.
    pub fn pass(&self) -> Passage {
        let step = |part, clock: Clock, cycles| Step::delay(part, clock.span(cycles));
        let (core, host) = (self.core, self.host);
        let mut course = vec![
            step(HT, host, self.ht[0]),
            step(NIC, core, self.htax[0]),
            step(NIC, core, self.velo[0]),
        ];
        course.extend(self.network.map(|cycles| step(NETWORK, core, cycles)));
        course.push(Step::delay(PHYSICAL, self.physical));
        course.extend(self.network.iter().rev().map(|cycles| step(NETWORK, core, *cycles)));
        course.extend([
            step(NIC, core, self.velo[1]),
            step(NIC, core, self.htax[1]),
            step(HT, host, self.ht[1]),
        ]);
        let mut machine = Machine::default();
        let item = machine.add(course, [Time::ZERO]);
        machine.run();
        machine.passage(item)
    }
}

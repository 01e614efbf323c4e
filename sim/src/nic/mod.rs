//! Our own interface in hardware: the units that are to carry out `proto`.
//!
//! ```text
//!  processor -> window -> decode -> segmenter -> read -> frame -> channel -> link
//!               (line)               |   ^        (PCIe)  (CRC)   (window)    |
//!                            keys, TLB   '-- read of a table on a miss        |
//!                                                                             v
//!  program <- memory <- write <- notify <---- ALU <---- keys, TLB <- decode <- check
//!             (PCIe)                          (read)                         (CRC)
//! ```
//!
//! The CRC of a payload stands in the header before it (spec, FRAME-3). So an interface has all
//! data of a frame before it sends the first byte, and a receiver checks all of it before it
//! writes. Both store frames and forward them. Between two interfaces frames are cut through.
//!
//! The clock of 250 MHz and the path of 64 bytes are our choice: today's FPGAs have blocks for PCI
//! Express 3.0 x16 with both. The path moves 16 GB/s, as the link to the host does. Our study of
//! the RTL measured 84 MHz on an ECP5, for a design without pipelining. So another
//! [clock](Parameters::clock) is a parameter.
//!
//! [`Parameters::table`] has the cycles of each unit. [`Pair`] is two interfaces made of units, and
//! [`InterfaceTimes`](crate::cluster::InterfaceTimes) are derived from the same parameters.
mod pair;
mod table;

use crate::host::Host;
use crate::host::pcie::Pcie;
use crate::link::LinkTiming;
use crate::machine::Part;
use crate::time::{Clock, Time};
use ayre_proto::command::COMMAND_BYTES;

pub use pair::{Lookup, Operation, Pair};
pub use table::{LINE, Row, TABLE, Unit};

/// Bytes of a put that lie behind its command, in the line that the processor stores.
pub const INLINE: u32 = LINE - COMMAND_BYTES as u32;

/// The parts of an operation's time.
pub mod part {
    use super::Part;

    /// The processor's store, up to the interface.
    pub const STORE: Part = Part("store");
    /// A command becomes pieces.
    pub const COMMAND: Part = Part("command");
    /// A translation, with the read of a table if the TLB misses.
    pub const TRANSLATION: Part = Part("translation");
    /// A read of the host's memory.
    pub const READ: Part = Part("DMA read");
    /// A frame is made.
    pub const FRAME: Part = Part("frame");
    /// The frame passes the network.
    pub const NETWORK: Part = Part("network");
    /// The frame is checked, and its record decoded.
    pub const CHECK: Part = Part("check");
    /// An atomic is computed.
    pub const ALU: Part = Part("ALU");
    /// A write into the host's memory, that of the notification included.
    pub const WRITE: Part = Part("DMA write");
    /// The program's load of what has changed.
    pub const POLL: Part = Part("poll");
    /// Units are taken and given back.
    pub const QUEUE: Part = Part("queue");
}

/// An interface, its host, and the way to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The clock of all units.
    pub clock: Clock,
    /// The cycles of the units, in the order of [`Unit`].
    pub table: [Row; 12],
    /// The link to the host.
    pub pcie: Pcie,
    /// The host's memory: a read by the interface, or a load of a line that it has written.
    pub memory: Time,
    /// The link to the network.
    pub link: LinkTiming,
    /// From the first byte of a frame at one interface to its first byte at the other one.
    pub trip: Time,
    /// Frames that the sender keeps until they are acknowledged.
    pub places: u32,
    /// Bytes of data in a frame at most.
    pub piece: u32,
}

impl Parameters {
    /// The interface at 250 MHz in a server with PCI Express 3.0 x16, beside a link of 10 GB/s.
    /// The memory is that of EXTOLL's hosts (thesis, table 3-1). Frames have the data of a page, as
    /// those of a [`Cluster`](crate::cluster::Cluster) have.
    ///
    /// # Panics
    /// Never: the clock has a sound rate.
    pub fn server() -> Self {
        Self {
            clock: Clock::new(250_000_000).expect("a sound rate"),
            table: TABLE,
            pcie: Pcie::GEN3_X16,
            memory: Host::HT400.memory,
            link: LinkTiming { phit: Time(800), width: 8, wire: Time::from_nanos(20) },
            trip: Time::from_nanos(20),
            places: 32,
            piece: 4096,
        }
    }

    /// The row of a unit.
    pub fn row(&self, unit: Unit) -> &Row {
        &self.table[unit as usize]
    }

    /// The time from the input of these units to their output, one after the other.
    pub fn latency(&self, units: &[Unit]) -> Time {
        self.clock.span(units.iter().map(|unit| self.row(*unit).cycles).sum())
    }

    /// For how long an item with this number of bytes keeps a unit.
    pub fn hold(&self, unit: Unit, bytes: u32) -> Time {
        let row = self.row(unit);
        let lines = if row.bytes == 0 { 0 } else { bytes.div_ceil(row.bytes) };
        self.clock.span(row.each.max(lines.into()))
    }

    /// A read of a word of the host's memory, up to the interface: what a miss of the TLB costs.
    pub fn word_read(&self) -> Time {
        self.pcie.read_time(8, self.memory)
    }
}

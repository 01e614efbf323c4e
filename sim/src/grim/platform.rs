//! The machines of the measurements: two hosts, two interfaces, and the buses between them.
use super::dma::{Dma, Rate};
use super::firmware::Firmware;
use super::inject::{Injection, Memory};
use crate::time::Time;

/// A host with its interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Platform {
    /// Moving a message into the interface.
    pub inject: Injection,
    /// The host's software for a message, at both ends together.
    pub software: Time,
    /// The addition of the emulation of sockets.
    pub socket: Time,
    /// The interface's processor.
    pub firmware: Firmware,
    /// Channels in which it looks for messages.
    pub channels: u32,
    /// From interface to interface.
    pub link: Dma,
    /// Messages from the interface to the host's queue.
    pub eject: Dma,
    /// The payload of remote writes.
    pub write: Dma,
    /// Copies of the interface's processor within its memory.
    pub copy: Rate,
}

/// The free parameter of all machines, from the latencies of P3 with LANai 4 in table 5.4: the mean
/// of what active messages, virtual and physical writes lack without it.
const SOFTWARE: Time = Time::from_nanos(4_070);
/// The free parameter of sockets, from their latency of 22.7 us on P3 (table 8.1).
const SOCKET: Time = Time::from_nanos(5_000);
/// A store's rate on P3, which the source does not give: the rate that makes physical writes reach
/// the 96 MB/s of P3 with LANai 4 in table 5.4.
const P3_STORE: Rate = Rate(98.7);
/// The most of a 32-bit bus at 33 MHz (section 5.2.3).
const PCI: Rate = Rate(132.0);
/// The host's cost of a page in a zero-copy transfer: pages move at 119 instead of 132 MB/s on P3
/// (section 5.2.3).
const PAGE: Time = Time::from_nanos(3_391);
/// Where stores and zero-copy transfers are equally fast on P3 (section 5.2.3).
const CROSSOVER: u32 = 10 << 10;

const fn nanos(time: u64) -> Time {
    Time::from_nanos(time)
}

/// The bytes of a long transfer in tables 5.2 and 5.3.
const LONG: u32 = 64 << 10;

/// Injection on P3.
fn p3() -> Injection {
    let without =
        Injection { store: P3_STORE, read: PCI, begin: nanos(0), page: PAGE, memory: Memory::P3 };
    without.with_crossover(CROSSOVER)
}

/// Injection on P4 with its 32-bit bus: stores at 102 MB/s, zero-copy transfers at 89 MB/s. P3
/// lends the further times of a DMA and of a page.
fn p4_narrow() -> Injection {
    Injection { store: Rate(102.0), memory: Memory::P4, ..p3() }.with_zero_copy(Rate(89.0))
}

/// Injection on P4 with its 64-bit bus: stores at 53 MB/s, contiguous transfers at 213 MB/s.
fn p4_wide() -> Injection {
    Injection { store: Rate(53.0), read: Rate(213.0), memory: Memory::P4, ..p3() }
}

/// Links between LANai 4, and between LANai 9: the least time of a DMA, which a message without a
/// payload takes, and the rate (appendix A).
fn link(least: Time, rate: f64) -> Dma {
    Dma::from_least((super::HEADER, least), Rate(rate))
}

impl Platform {
    /// P3 at 550 MHz, LANai 4 on a bus of 32 bits at 33 MHz.
    pub fn p3_lanai4() -> Self {
        Self {
            inject: p3(),
            software: SOFTWARE,
            socket: SOCKET,
            firmware: Firmware::LANAI4,
            channels: 1,
            link: link(nanos(3_000), 132.0),
            eject: Dma::through((32, nanos(3_000)), (LONG, nanos(496_000))),
            write: Dma::through((4, nanos(3_000)), (LONG, nanos(514_000))),
            copy: Rate(19.0),
        }
    }

    /// P3 at 550 MHz, LANai 9 on a bus of 32 bits at 33 MHz.
    pub fn p3_lanai9() -> Self {
        Self {
            inject: p3(),
            software: SOFTWARE,
            socket: SOCKET,
            firmware: Firmware::LANAI9,
            channels: 1,
            link: link(nanos(1_000), 149.0),
            eject: Dma::through((32, nanos(2_000)), (LONG, nanos(494_000))),
            write: Dma::through((4, nanos(2_000)), (LONG, nanos(507_000))),
            copy: Rate(66.0),
        }
    }

    /// P4 at 1.7 GHz, LANai 4 on a bus of 32 bits at 33 MHz, where a DMA reaches 130 MB/s (5.4.1).
    pub fn p4_lanai4() -> Self {
        let p3 = Self::p3_lanai4();
        let rate = Rate(130.0);
        Self {
            inject: p4_narrow(),
            eject: p3.eject.on_faster_bus(1, rate),
            write: p3.write.on_faster_bus(1, rate),
            ..p3
        }
    }

    /// P4 at 1.7 GHz, LANai 9 on a bus of 64 bits at 66 MHz, where a DMA reaches 307 MB/s (5.4.1).
    /// Reconstructed: a DMA's start takes as many cycles of this bus as of one at 33 MHz.
    pub fn p4_lanai9() -> Self {
        let p3 = Self::p3_lanai9();
        let rate = Rate(307.0);
        let firmware = p3.firmware;
        Self {
            inject: p4_wide(),
            firmware: Firmware { move_pointer: Time(firmware.move_pointer.0 / 2), ..firmware },
            eject: p3.eject.on_faster_bus(2, rate),
            write: p3.write.on_faster_bus(2, rate),
            ..p3
        }
    }

    /// The link between LANai 9 at Myrinet 2000's rate.
    pub fn myrinet2000() -> Dma {
        link(nanos(1_000), 200.0)
    }
}

//! Any shortest way through a mesh or torus, with dimension order as the escape (Duato 1993).
//!
//! A head asks for two outputs: that of dimension order, and one of another dimension in which the
//! packet is not at its target yet. Dimension order has virtual channels of its own, which any
//! packet may take at any router. These have no ring, so there is always one packet that can go on.
//! Packets of one pair may overtake each other.
//!
//! ```text
//!   mesh:   0 escape | 1 .. adaptive
//!   torus:  0 escape before the end of a row | 1 .. adaptive | last: escape behind it
//! ```
use super::Hop;
use super::cube::Cube;
use crate::packet::Packet;
use crate::random::mix;

#[derive(Debug)]
pub(crate) struct Adaptive {
    cube: Cube,
    channels: u16,
    /// Channels of the escape: one, or two in rings.
    escapes: u16,
}

impl Adaptive {
    pub(super) fn new(sides: &[u32], rings: bool, channels: u16) -> Self {
        let escapes = Self::least(rings) - 1;
        Self { cube: Cube::new(sides, rings, escapes, true), channels, escapes }
    }

    /// How many channels it takes.
    pub(super) fn least(rings: bool) -> u16 {
        2 + u16::from(rings)
    }

    /// The hop by dimension order, with its escape channels and the adaptive ones.
    #[inline]
    pub(super) fn hop(&self, router: u32, packet: &Packet) -> Hop {
        // The router stands for the source, so that the escape depends on where a packet is only.
        let hop = self.cube.hop(router, router, packet.target);
        if router == packet.target {
            return hop;
        }
        if self.escapes == 1 {
            return Hop { count: self.channels, ..hop };
        }
        let end = self.channels - u16::from(hop.first + hop.count < self.escapes);
        Hop { count: end - hop.first, ..hop }
    }

    /// The hop in another dimension, with its adaptive channels.
    #[inline]
    pub(super) fn other(&self, router: u32, packet: &Packet) -> Option<Hop> {
        let ways = self.cube.open(router, packet.target);
        // The first one is the way of dimension order.
        let others = ways & ways.wrapping_sub(1);
        if others == 0 {
            return None;
        }
        let count = u64::from(others.count_ones());
        let packet_number = u64::from(packet.source) << 32 ^ packet.born.0;
        let mut rest = others;
        for _ in 0..mix(packet_number ^ u64::from(router)) % count {
            rest &= rest - 1;
        }
        let hop = self.cube.along(rest.trailing_zeros() as usize, router, packet.target);
        Some(Hop { port: hop.port, first: 1, count: self.channels - self.escapes })
    }

    /// The hop by the escape alone.
    pub(super) fn escape(&self, router: u32, packet: &Packet) -> Hop {
        let hop = self.cube.hop(router, router, packet.target);
        if router == packet.target || hop.first == 0 {
            return Hop { count: 1, ..hop };
        }
        Hop { first: self.channels - 1, ..hop }
    }
}

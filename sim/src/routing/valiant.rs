//! Valiant's way: first to a node that chance chooses, then to the target, so that any pattern
//! becomes two uniform ones. The lower half of the virtual channels is for the first part.
use super::Hop;
use super::cube::Cube;
use super::full::Full;
use crate::packet::{NONE, Packet};

/// The way of each part.
#[derive(Debug)]
pub(super) enum Part {
    Cube(Cube),
    Full(Full),
}

impl Part {
    #[inline]
    fn hop(&self, router: u32, source: u32, target: u32) -> Hop {
        match self {
            Self::Cube(cube) => cube.hop(router, source, target),
            Self::Full(full) => full.hop(router, target),
        }
    }

    /// The router of a node.
    #[inline]
    fn home(&self, node: u32) -> u32 {
        match self {
            Self::Cube(_) => node,
            Self::Full(full) => node / full.nodes,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Valiant {
    first: Part,
    second: Part,
    /// Channels of the first part.
    lower: u16,
}

impl Valiant {
    /// `part` makes the way of a part from its number of channels.
    pub(super) fn new(channels: u16, part: impl Fn(u16) -> Part) -> Self {
        let lower = channels / 2;
        Self { first: part(lower), second: part(channels - lower), lower }
    }

    #[inline]
    pub(super) fn hop(&self, router: u32, packet: &mut Packet) -> Hop {
        if packet.via != NONE {
            if router != self.first.home(packet.via) {
                return self.first.hop(router, packet.source, packet.via);
            }
            packet.via = NONE;
        }
        let hop = self.second.hop(router, packet.source, packet.target);
        let at_target = router == self.second.home(packet.target);
        Hop { first: if at_target { 0 } else { hop.first + self.lower }, ..hop }
    }
}

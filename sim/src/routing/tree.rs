//! Up to a switch that has the target below it, then down.
use super::Hop;
use crate::packet::Packet;
use crate::random::mix;

#[derive(Debug)]
pub(crate) struct Tree {
    half: u32,
    channels: u16,
    by_chance: bool,
    /// Switches in a level.
    width: u32,
    /// `half` to the power of each level.
    strides: Vec<u32>,
}

impl Tree {
    pub(super) fn new(half: u32, levels: u32, channels: u16, by_chance: bool) -> Self {
        let width = half.pow(levels - 1);
        Self {
            half,
            channels,
            by_chance,
            width,
            strides: (0..levels).map(|level| half.pow(level)).collect(),
        }
    }

    pub(super) fn hop(&self, switch: u32, packet: &Packet) -> Hop {
        let (level, place) = ((switch / self.width) as usize, switch % self.width);
        let leaf = packet.target / self.half;
        let stride = self.strides[level];
        let port = if place / stride != leaf / stride {
            self.half + self.up(level, packet)
        } else if level > 0 {
            leaf / self.strides[level - 1] % self.half
        } else {
            packet.target % self.half
        };
        // The node's link has one channel.
        let at_target = level == 0 && port < self.half;
        Hop { port: port as u16, first: 0, count: if at_target { 1 } else { self.channels } }
    }

    /// All links up that a packet may take instead of this hop.
    pub(super) fn choices(&self, hop: Hop) -> core::ops::Range<u16> {
        let up = self.half as u16..2 * self.half as u16;
        if self.by_chance && up.contains(&hop.port) { up } else { hop.port..hop.port + 1 }
    }

    /// The link up that a packet takes.
    fn up(&self, level: usize, packet: &Packet) -> u32 {
        if self.by_chance {
            let packet = u64::from(packet.source) << 32 ^ packet.born.0;
            (mix(packet ^ (level as u64) << 56) % u64::from(self.half)) as u32
        } else {
            packet.target / self.strides[level] % self.half
        }
    }
}

//! Ways through a dragonfly: to the target's group at once, or by a group that chance chooses
//! (Kim, Dally, Scott and Abts 2008).
//!
//! A packet passes at most `local, global, local`, or with a group between
//! `local, global, local, global, local`. The virtual channels are divided by the number of global
//! links behind a packet. So each link of this sequence has channels that none before it uses, and
//! there is no ring.
use super::Hop;
use crate::packet::{NONE, Packet};
use crate::random::Random;
use crate::topology::Dragonfly;

#[derive(Debug)]
pub(crate) struct Groups {
    numbers: Dragonfly,
    channels: u16,
    /// The most global links that a packet passes.
    globals: u16,
}

impl Groups {
    pub(super) fn new(numbers: Dragonfly, channels: u16, by_chance: bool) -> Self {
        Self { numbers, channels, globals: 1 + u16::from(by_chance) }
    }

    /// How many channels it takes.
    pub(super) fn least(by_chance: bool) -> u16 {
        2 + u16::from(by_chance)
    }

    /// The group between, for a packet that goes to another group.
    pub(super) fn via(&self, source: u32, target: u32, random: &mut Random) -> u32 {
        let (from, to) = (self.group_of(source), self.group_of(target));
        if self.globals == 1 || from == to {
            return NONE;
        }
        // The numbers of the two groups are left out.
        let group = random.below(self.numbers.groups() - 2);
        let (low, high) = (from.min(to), from.max(to));
        let group = group + u32::from(group >= low);
        group + u32::from(group >= high)
    }

    /// All groups that may be between.
    pub(super) fn vias(&self, source: u32, target: u32) -> Vec<u32> {
        let (from, to) = (self.group_of(source), self.group_of(target));
        if self.globals == 1 || from == to {
            return vec![NONE];
        }
        (0..self.numbers.groups()).filter(|group| *group != from && *group != to).collect()
    }

    fn group_of(&self, node: u32) -> u32 {
        node / self.numbers.nodes / self.numbers.routers
    }

    #[inline]
    pub(super) fn hop(&self, router: u32, packet: &Packet) -> Hop {
        let Dragonfly { routers, nodes, .. } = self.numbers;
        let target = packet.target / nodes;
        if router == target {
            return Hop { port: (packet.target % nodes) as u16, first: 0, count: 1 };
        }
        let (group, last) = (router / routers, target / routers);
        let first = self.group_of(packet.source);
        if group == last {
            let behind = if first == last { 0 } else { 1 + u16::from(packet.via != NONE) };
            return self.channel(self.numbers.local(router, target), behind, self.globals + 1);
        }
        let behind = u16::from(group != first);
        let next = if behind == 0 && packet.via != NONE { packet.via } else { last };
        let gate = self.numbers.global(group, next);
        if router == gate.router {
            return self.channel(gate.port, behind, self.globals);
        }
        self.channel(self.numbers.local(router, gate.router), behind, self.globals + 1)
    }

    /// A hop by the channels of class `number` of `classes`.
    fn channel(&self, port: u16, number: u16, classes: u16) -> Hop {
        let first = number * self.channels / classes;
        Hop { port, first, count: (number + 1) * self.channels / classes - first }
    }
}

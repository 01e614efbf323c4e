//! Nodes as sources of packets.
use super::{GENERATE, Network, NodeQueue, event};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Time;

/// A node that makes packets.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) random: Random,
    /// The queue that its packets enter.
    pub(super) slot: u32,
    /// The router of that queue.
    pub(super) router: u32,
}

impl Network {
    /// Each node's first packets get their time.
    pub(super) fn start(&mut self) {
        for node in 0..self.sources.len() as u32 {
            let at = self.load.first(&mut self.sources[node as usize].random);
            (0..self.load.beginning()).for_each(|_| self.plan(node, at));
        }
    }

    /// A node makes a packet, and plans its next one.
    pub(super) fn generate(&mut self, node: u32, now: Time) {
        if self.sources_stopped {
            return;
        }
        let nodes = self.sources.len() as u32;
        let source = &mut self.sources[node as usize];
        let target = self.load.pattern.target(node, nodes, &mut source.random);
        let bytes = self.load.sizes.draw(&mut source.random);
        let via = self.routes.via(node, target, nodes, &mut source.random);
        let router = source.router;
        let ready = now + self.parameters.injection;
        let mut packet = Packet {
            born: now,
            ready,
            source: node,
            target,
            bytes,
            slot: source.slot,
            via,
            ..Packet::default()
        };
        if self.parameters.node_queue == NodeQueue::PerTarget {
            packet.slot += target;
        }
        self.made = (self.made.0 + 1, self.made.1 + u128::from(bytes));
        let handle = self.packets.add(packet);
        if let Some(record) = &mut self.record {
            record.changed(now, 1);
        }
        let ports = self.enqueue(router, handle, now);
        self.look_at(router, ports);
        let gap = self.load.gap(bytes, &mut self.sources[node as usize].random);
        self.plan(node, now + gap);
    }

    /// A node will make a packet at this time.
    pub(super) fn plan(&mut self, node: u32, at: Time) {
        let source = &self.sources[node as usize];
        if at < Time::END {
            self.calendar.insert(event(at, source.router, GENERATE, node));
        }
    }
}

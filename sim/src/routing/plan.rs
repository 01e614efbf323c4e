//! Ways from node to node, for tables, checks and drawings.
use super::{Hop, Policy, Routes, RoutingError};
use crate::packet::{NONE, Packet};
use crate::time::Time;
use crate::topology::{Link, Topology};

/// A step on a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The router.
    pub router: u32,
    /// How it is left. The last step leads to the node.
    pub hop: Hop,
}

/// The ways of a policy through a topology. Pairs of nodes may be without one.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(super) topology: &'a Topology,
    pub(super) routes: Routes,
    pub(super) channels: u16,
    /// The first output of each router in `links`.
    first: Vec<usize>,
    /// The number of the link at each output.
    links: Vec<Option<usize>>,
}

impl<'a> Plan<'a> {
    /// The ways of this policy with this number of virtual channels.
    ///
    /// # Errors
    /// See [`RoutingError`]. Pairs of nodes without a way are none.
    pub fn new(
        topology: &'a Topology,
        policy: Policy,
        channels: u16,
    ) -> Result<Self, RoutingError> {
        let routes = Routes::partial(topology, policy, channels)?;
        let mut next = 0;
        let mut first = Vec::with_capacity(topology.ports.len());
        for ports in &topology.ports {
            first.push(next);
            next += usize::from(*ports);
        }
        let mut links = vec![None; next];
        for (number, link) in topology.links.iter().enumerate() {
            links[first[link.from.router as usize] + usize::from(link.from.port)] = Some(number);
        }
        Ok(Self { topology, routes, channels, first, links })
    }

    /// The number of the link that a step takes, if it does not lead to a node.
    pub fn link(&self, step: Step) -> Option<usize> {
        self.links[self.first[step.router as usize] + usize::from(step.hop.port)]
    }

    pub(super) fn link_at(&self, number: usize) -> Link {
        self.topology.links[number]
    }

    /// Whether there is a way.
    pub fn reaches(&self, source: u32, target: u32) -> bool {
        self.routes.reaches(self.topology.nodes[source as usize].inject.router, target)
    }

    /// The first way of a packet from node to node, or none. Where chance chooses a place between,
    /// that is the lowest one; where packets may choose between outputs, it is by dimension order.
    pub fn way(&self, source: u32, target: u32) -> Option<Vec<Step>> {
        if !self.reaches(source, target) {
            return None;
        }
        let via = self.routes.vias(source, target, self.nodes()).first().copied().unwrap_or(NONE);
        let mut packet = self.packet(source, target, via);
        let mut router = self.topology.nodes[source as usize].inject.router;
        let mut way = Vec::new();
        loop {
            let step = Step { router, hop: self.routes.hop(router, &mut packet) };
            way.push(step);
            let Some(link) = self.link(step) else { return Some(way) };
            router = self.link_at(link).to.router;
        }
    }

    pub(super) fn nodes(&self) -> u32 {
        self.topology.nodes.len() as u32
    }

    pub(super) fn packet(&self, source: u32, target: u32, via: u32) -> Packet {
        Packet { source, target, via, born: Time::ZERO, ..Packet::default() }
    }
}

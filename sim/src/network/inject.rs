//! Packets that a program sends, instead of those that nodes make by chance or beside them.
use super::{Network, NodeQueue, Parameters};
use crate::network::BuildError;
use crate::packet::Packet;
use crate::time::Time;
use crate::topology::Topology;
use crate::work::{Arrivals, Load, Pattern, Sizes};
use core::num::NonZeroU32;
use thiserror::Error;

/// The end of the way of an injected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delivery {
    /// When its tail reaches its target.
    pub at: Time,
    /// The tag that it was injected with.
    pub tag: NonZeroU32,
}

/// Why a packet cannot be injected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InjectError {
    /// Its source or target does not exist.
    #[error("there is no node {node}: the network has {nodes}")]
    NoNode {
        /// The node.
        node: u32,
        /// The number of nodes.
        nodes: u32,
    },
    /// It is empty, or longer than the buffers.
    #[error("a packet of {bytes} B: it has to be of 1 B to {limit} B, the size of a buffer")]
    Size {
        /// Its length.
        bytes: u32,
        /// The size of a buffer.
        limit: u32,
    },
    /// The network is further in time.
    #[error("a packet for {at}, and the network is at {now}")]
    Past {
        /// When it should be injected.
        at: Time,
        /// The network's time.
        now: Time,
    },
}

impl Network {
    /// A network whose nodes make no packets by themselves.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn silent(topology: &Topology, parameters: Parameters) -> Result<Self, BuildError> {
        // Any load will do: its sources are stopped before their first packets.
        let load =
            Load::new(Pattern::Uniform, Sizes::Fixed(1), Arrivals::Poisson, 1.0, &parameters.link)?;
        let mut network = Self::new(topology, parameters, load, 0)?;
        network.stop_sources();
        Ok(network)
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.sources.len() as u32
    }

    /// A node sends a packet at `at`, which may not be before the network's time. Packets of one
    /// queue of a node leave in the order of the calls.
    ///
    /// # Errors
    /// See [`InjectError`].
    pub fn inject(
        &mut self,
        at: Time,
        source: u32,
        target: u32,
        bytes: u32,
        tag: NonZeroU32,
    ) -> Result<(), InjectError> {
        self.join();
        let nodes = self.nodes();
        if let Some(node) = [source, target].into_iter().find(|node| *node >= nodes) {
            return Err(InjectError::NoNode { node, nodes });
        }
        let limit = self.parameters.buffer;
        if !(1..=limit).contains(&bytes) {
            return Err(InjectError::Size { bytes, limit });
        }
        if at < self.now {
            return Err(InjectError::Past { at, now: self.now });
        }
        let place = &mut self.sources[source as usize];
        let via = self.routes.via(source, target, nodes, &mut place.random);
        let router = place.router;
        // Its credits come back, too.
        let span = self.parameters.link.span(bytes);
        self.ahead = self.ahead.min(span + self.parameters.credit);
        let per_target = self.parameters.node_queue == NodeQueue::PerTarget;
        let slot = place.slot + if per_target { target } else { 0 };
        let ready = at + self.parameters.injection;
        let tag = Some(tag);
        let packet =
            Packet { born: at, ready, source, target, bytes, slot, via, tag, ..Packet::default() };
        self.made = (self.made.0 + 1, self.made.1 + u128::from(bytes));
        let handle = self.packets.add(packet);
        if let Some(record) = &mut self.record {
            record.changed(self.now, 1);
        }
        // It may be in its queue before its time: no packet leaves before it is ready.
        let mut ports = self.enqueue(router, handle, self.now);
        // Outputs are looked at when their time is taken from the calendar.
        while ports != 0 {
            self.wake(router, ports.trailing_zeros(), ready);
            ports &= ports - 1;
        }
        Ok(())
    }

    /// The time of the next event.
    pub fn next_time(&mut self) -> Option<Time> {
        self.join();
        self.calendar.next_time()
    }

    /// Takes all events of the next time.
    pub fn step(&mut self) {
        if let Some(now) = self.next_time() {
            self.turn(now);
        }
    }

    /// Takes the ends of injected packets that are known by now, in the order of their times. They
    /// may lie ahead of the network's time.
    pub fn deliveries(&mut self) -> impl Iterator<Item = Delivery> {
        self.deliveries.sort_unstable();
        self.deliveries.drain(..)
    }
}

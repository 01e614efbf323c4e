//! A network from its topology and parameters.
use super::divide::Share;
use super::lane::Lane;
use super::source::Source;
use super::{NO_LANE, Network, NodeQueue, Output, Parameters, Router, Second, Slot, TO_NODE};
use crate::calendar::Calendar;
use crate::packet::NONE;
use crate::packet::Packets;
use crate::random::Random;
use crate::routing::{Routes, RoutingError};
use crate::stats::Tally;
use crate::time::Time;
use crate::topology::{Port, Topology};
use crate::work::{Load, LoadError};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// Why there is no such network.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BuildError {
    /// The policy does not fit.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// The load is impossible.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A packet would never find room.
    #[error("a buffer of {buffer} B has no room for a packet of {packet} B")]
    SmallBuffer {
        /// Bytes of the buffer.
        buffer: u32,
        /// Bytes of the largest packet.
        packet: u32,
    },
    /// A packet is too long.
    #[error("a packet of {0} B is longer than the limit of {BYTES_MAX} B")]
    LongPacket(u32),
    /// A delay that has to take time takes none.
    #[error("{0} is zero, and has to be at least 1 ps")]
    NoDelay(&'static str),
    /// A number of channels that no router has.
    #[error("{0} virtual channels: there have to be 1 to 1024")]
    Channels(u16),
    /// A router would have too many queues.
    #[error(
        "router {router} would have {queues} queues, and the limit is {QUEUES_MAX}: take fewer \
         virtual channels, or one queue for each node"
    )]
    Queues {
        /// The router.
        router: u32,
        /// The queues that it would have.
        queues: u64,
    },
}

/// The longest packet.
const BYTES_MAX: u32 = 1 << 24;
/// The least number of packets on their way for which a deadlock is looked for.
const CROWD_MIN: usize = 1 << 12;
/// The largest number of virtual channels of a link.
const CHANNELS_MAX: u16 = 1024;
/// The largest number of queues at the input ports of a router.
const QUEUES_MAX: u64 = u16::MAX as u64;

impl Network {
    /// A network without packets, whose nodes make them by `load`; all chance follows from `seed`.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn new(
        topology: &Topology,
        parameters: Parameters,
        load: Load,
        seed: u64,
    ) -> Result<Self, BuildError> {
        check(&parameters, &load)?;
        load.check(topology)?;
        let routes = Routes::new(topology, parameters.policy, parameters.channels)?;
        let ahead = ahead(&parameters, &load);
        let mut network = Self {
            parameters,
            routes: Arc::new(routes),
            calendar: Calendar::new(load.step(topology.nodes.len())),
            packets: Packets::default(),
            due: Vec::new(),
            marks: vec![0; topology.ports.len().div_ceil(64)],
            routers: Vec::with_capacity(topology.ports.len()),
            slots: Vec::new(),
            seconds: Vec::new(),
            outputs: Vec::new(),
            requests: Vec::new(),
            lanes: Vec::new(),
            sources: Vec::new(),
            crowd: CROWD_MIN,
            sources_stopped: false,
            made: (0, 0),
            load,
            tally: Tally::default(),
            started: Time::ZERO,
            now: Time::ZERO,
            time: Time::ZERO,
            ahead,
            deliveries: Vec::new(),
            record: None,
            share: Share::default(),
            parts: 1,
            others: Vec::new(),
            outboxes: Vec::new(),
        };
        check_queues(topology, &parameters)?;
        network.add_routers(topology);
        network.add_nodes(topology, seed);
        if network.routes.is_adaptive() {
            network.seconds = vec![Second::default(); network.slots.len()];
        }
        network.take_share(0, &[]);
        network.start();
        Ok(network)
    }

    fn add_routers(&mut self, topology: &Topology) {
        let mut incoming = HashMap::new();
        let mut outgoing = HashMap::new();
        for link in &topology.links {
            outgoing.insert((link.from.router, link.from.port), link.to);
            incoming.insert((link.to.router, link.to.port), link.from);
        }
        let channels = self.parameters.channels;
        // The first slot of each input port, and the first lane of each output port.
        let mut slots_at = HashMap::new();
        let mut lanes_at = HashMap::new();
        for (router, ports) in (0_u32..).zip(&topology.ports) {
            let (slot, output) = (self.slots.len() as u32, self.outputs.len() as u32);
            for port in 0..*ports {
                slots_at.insert((router, port), self.slots.len() as u32);
                let linked = incoming.contains_key(&(router, port));
                let queues = match self.parameters.node_queue {
                    _ if linked => channels,
                    NodeQueue::PerTarget => topology.nodes.len() as u16,
                    NodeQueue::One => 1,
                };
                self.add_input(queues, slot);
                let lane = self.lanes.len() as u32;
                lanes_at.insert((router, port), lane);
                if outgoing.contains_key(&(router, port)) {
                    for _ in 0..channels {
                        self.lanes.push(Lane::new(router, port, self.parameters.buffer));
                    }
                } else {
                    self.lanes.push(Lane::to_node(router, port));
                }
                self.outputs.push(Output {
                    free: Time::ZERO,
                    wake: Time::NEVER,
                    slot: TO_NODE,
                    lane,
                    to: 0,
                    turn: 0,
                });
            }
            let slots = self.slots.len() as u32 - slot;
            let words = slots.div_ceil(64);
            let request = self.requests.len() as u32;
            self.requests.resize(self.requests.len() + (words * u32::from(*ports)) as usize, 0);
            self.routers.push(Router {
                slot,
                slots: slots as u16,
                output,
                words: words as u16,
                request,
                due: 0,
                turn: 0,
            });
        }
        for link in &topology.links {
            let slot = slots_at[&(link.to.router, link.to.port)];
            let lane = lanes_at[&(link.from.router, link.from.port)];
            let output = self.output_at(link.from);
            output.slot = slot;
            output.to = link.to.router;
            for channel in 0..u32::from(channels) {
                self.slots[(slot + channel) as usize].feeder = lane + channel;
            }
        }
        for source in &topology.nodes {
            let slot = slots_at[&(source.inject.router, source.inject.port)];
            let router = source.inject.router;
            self.sources.push(Source { random: Random::new(0, 0), slot, router });
        }
    }

    /// The queues of an input port of the router whose first slot is `slot`.
    fn add_input(&mut self, queues: u16, slot: u32) {
        let input = (self.slots.len() as u32 - slot) as u16;
        for _ in 0..queues {
            self.slots.push(Slot {
                head: NONE,
                tail: NONE,
                lane: 0,
                lanes: 0,
                output: 0,
                feeder: NO_LANE,
                input,
                turn: input,
                free: Time::ZERO,
            });
        }
    }

    fn add_nodes(&mut self, topology: &Topology, seed: u64) {
        for (number, node) in (0_u32..).zip(&topology.nodes) {
            self.output_at(node.eject).to = number;
            self.sources[number as usize].random = Random::new(seed, number.into());
        }
    }

    fn output_at(&mut self, port: Port) -> &mut Output {
        let first = self.routers[port.router as usize].output;
        &mut self.outputs[(first + u32::from(port.port)) as usize]
    }
}

/// Checks the number of queues of each router. A link that comes in has one for each channel. A
/// port without a link has one, or one for each target.
fn check_queues(topology: &Topology, parameters: &Parameters) -> Result<(), BuildError> {
    let mut linked = vec![0_u64; topology.ports.len()];
    for link in &topology.links {
        linked[link.to.router as usize] += 1;
    }
    let of_node = match parameters.node_queue {
        NodeQueue::PerTarget => topology.nodes.len() as u64,
        NodeQueue::One => 1,
    };
    for (router, (ports, linked)) in (0..).zip(topology.ports.iter().zip(linked)) {
        let free = u64::from(*ports).saturating_sub(linked);
        let queues = linked * u64::from(parameters.channels) + free * of_node;
        if queues > QUEUES_MAX {
            return Err(BuildError::Queues { router, queues });
        }
    }
    Ok(())
}

/// The least time from an event of one router to one of another router that follows from it.
fn ahead(parameters: &Parameters, load: &Load) -> Time {
    let Parameters { link, pipeline, credit, wire_to_node, .. } = parameters;
    // A head arrives, credits come back, or a node hears that its packet has arrived.
    let least = (link.wire + *pipeline).min(parameters.link.span(load.sizes.least()) + *credit);
    let told = load
        .think()
        .map_or(Time::NEVER, |think| link.span(load.sizes.least()) + *wire_to_node + think);
    least.min(told)
}

/// Checks what does not depend on the topology.
fn check(parameters: &Parameters, load: &Load) -> Result<(), BuildError> {
    let packet = load.sizes.most();
    if packet > BYTES_MAX {
        return Err(BuildError::LongPacket(packet));
    }
    if parameters.buffer < packet {
        return Err(BuildError::SmallBuffer { buffer: parameters.buffer, packet });
    }
    if parameters.link.phit == Time::ZERO || parameters.link.width == 0 {
        return Err(BuildError::NoDelay("the time or width of a phit"));
    }
    if parameters.link.wire + parameters.pipeline == Time::ZERO {
        return Err(BuildError::NoDelay("the time from router to router"));
    }
    if !(1..=CHANNELS_MAX).contains(&parameters.channels) {
        return Err(BuildError::Channels(parameters.channels));
    }
    Ok(())
}

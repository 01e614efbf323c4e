//! Nodes of the protocol in simulated time.
//!
//! A node is `proto`'s [`Node`]: it decides on every operation, frame and answer, as it does in
//! production. This module adds the time that hardware takes: the call from the processor to the
//! interface, the interface's stages, the network, and the write into memory that a program polls.
//!
//! ```text
//!   program --call--> node --send--> network --receive--> node --> memory, program
//!           (store)        (stage)  (routers)  (stage)
//! ```
//!
//! A stage serves one frame at a time. So a stream of frames is as fast as the slowest of the two
//! stages and the links, and the time of one frame is the sum of all. A node may also be connected
//! with itself. Its records then pass both stages, and no network. [`InterfaceTimes::of`] has the
//! times of our own [interface](crate::nic), of which a stage here is a sum.
//!
//! A [`Profile`] has the semantics of a real interface where those differ from the protocol's.
//!
//! Interfaces take time, and programs compute in none. A program that waits lets time go on with
//! [`Cluster::step`].
mod calls;
mod depot;
mod fence;
mod frames;
mod interface;
mod memory;
mod pages;
mod profile;
mod step;
mod times;
mod units;

pub use self::depot::Depot;
use self::frames::{Heap, Underway};
use self::interface::Interface;
pub use self::memory::{Event, Local, Program, RegionError};
pub use self::pages::{Pages, Translations};
pub use self::profile::{LockRequest, Locks, Mail, Mailboxes, Profile, ProfileError, Refusal};
pub use self::times::{InterfaceTimes, Stage};
use self::units::Units;
pub use crate::extoll::lock::{Answer, Lock};
use crate::network::{BuildError, Network, Parameters};
use crate::time::Time;
use crate::topology::Topology;
use ayre_proto::limits::{PEERS_MAX, TABLE_SLOTS};
use ayre_proto::node::Node;
use core::cmp::Reverse;
use std::collections::BinaryHeap;
use thiserror::Error;

/// Why a cluster cannot be built.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ClusterError {
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] BuildError),
    /// The protocol knows fewer nodes.
    #[error("{0} nodes: a node of the protocol has at most {PEERS_MAX} peers")]
    Nodes(u32),
    /// Frames do not fit the network's buffers.
    #[error(
        "buffers of {0} B: a frame of the protocol takes at least {least} B",
        least = frames::LEAST
    )]
    Buffer(u32),
    /// Interfaces cannot be like that.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// A node, its program and its interface.
#[derive(Debug)]
struct Member {
    node: Node<Heap, Program>,
    program: Program,
    interface: Interface,
    units: Units,
    /// The interface has as many lives as its node was started.
    incarnation: u64,
    /// When each stage is free again.
    sends: Time,
    receives: Time,
    /// The time of the entry in `due` that counts.
    due: u64,
    /// How often something has come, or a time was up.
    heard: u64,
}

/// Nodes with a network between them.
#[derive(Debug)]
pub struct Cluster {
    network: Network,
    times: InterfaceTimes,
    profile: Profile,
    members: Vec<Member>,
    /// Whether each node is dead: it hears and says nothing.
    is_dead: Vec<bool>,
    /// Frames, by their tags in the network less one, and what nodes send to themselves.
    underway: Underway,
    /// Nodes by when they have something to do.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    now: Time,
    /// Connections that were made: they number the tokens of links.
    connections: u64,
    /// Bytes of the longest frame.
    longest: usize,
}

impl Cluster {
    /// Nodes at the places of a topology, none of them connected.
    ///
    /// # Errors
    /// See [`ClusterError`].
    pub fn new(
        topology: &Topology,
        parameters: Parameters,
        times: InterfaceTimes,
    ) -> Result<Self, ClusterError> {
        Self::with_profile(topology, parameters, times, Profile::default())
    }

    /// Nodes whose interfaces differ from the protocol.
    ///
    /// # Errors
    /// See [`ClusterError`].
    pub fn with_profile(
        topology: &Topology,
        parameters: Parameters,
        times: InterfaceTimes,
        profile: Profile,
    ) -> Result<Self, ClusterError> {
        profile.check()?;
        let network = Network::silent(topology, parameters)?;
        let nodes = network.nodes();
        let longest = longest(nodes, parameters.buffer)?;
        Ok(Self {
            network,
            times,
            profile,
            members: (0..nodes).map(|_| Member::new(nodes as usize, 1, &profile)).collect(),
            is_dead: vec![false; nodes as usize],
            underway: Underway::default(),
            due: BinaryHeap::new(),
            now: Time::ZERO,
            connections: 0,
            longest,
        })
    }

    /// Checks whether the protocol knows this number of nodes, and its frames fit a buffer.
    ///
    /// # Errors
    /// See [`ClusterError`].
    pub fn check(nodes: u32, buffer: u32) -> Result<(), ClusterError> {
        longest(nodes, buffer).map(|_| ())
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The differences of its interfaces from the protocol.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The network, with its counts.
    pub fn network(&self) -> &Network {
        &self.network
    }
}

/// Bytes of the longest frame between `nodes` nodes, where routers have this buffer.
fn longest(nodes: u32, buffer: u32) -> Result<usize, ClusterError> {
    if nodes as usize > PEERS_MAX {
        return Err(ClusterError::Nodes(nodes));
    }
    frames::longest(buffer).ok_or(ClusterError::Buffer(buffer))
}

impl Member {
    fn new(nodes: usize, incarnation: u64, profile: &Profile) -> Self {
        Self {
            node: Node::new(nodes, TABLE_SLOTS),
            program: Program::default(),
            interface: Interface::new(profile),
            units: Units::new(profile),
            incarnation,
            sends: Time::ZERO,
            receives: Time::ZERO,
            due: u64::MAX,
            heard: 0,
        }
    }
}

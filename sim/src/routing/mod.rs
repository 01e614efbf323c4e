//! The next link of a packet: which output of a router, and which of its virtual channels.
mod adaptive;
mod check;
mod cube;
mod dragonfly;
mod full;
mod plan;
mod policy;
mod run_length;
mod table;
mod tree;
mod valiant;

use crate::packet::{NONE, Packet};
use crate::random::Random;
use crate::topology::{Shape, Topology};
use adaptive::Adaptive;
use cube::Cube;
use dragonfly::Groups;
use full::Full;
use std::collections::BTreeMap;
use table::{Table, Ties};
use thiserror::Error;
use tree::Tree;
use valiant::{Part, Valiant};

pub use check::{Channel, Survey};
pub use plan::{Plan, Step};
pub use policy::Policy;
pub use run_length::{RunLength, RunLengthError};

/// The output and channels that a packet may ask for at a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The output port.
    pub port: u16,
    /// The first of the virtual channels that it may take.
    pub first: u16,
    /// How many it may choose from.
    pub count: u16,
}

/// Why a policy does not fit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RoutingError {
    /// It is for another shape.
    #[error(
        "{policy} does not fit this topology; any goes with up-down, shortest-path and \
         spread-shortest-path"
    )]
    OtherShape {
        /// The policy.
        policy: Policy,
    },
    /// It needs more virtual channels to be free of deadlock.
    #[error("{policy} needs at least {least} virtual channels here, and there are {channels}")]
    FewChannels {
        /// The policy.
        policy: Policy,
        /// The virtual channels that there are.
        channels: u16,
        /// How many it needs.
        least: u16,
    },
    /// There is no way between two nodes.
    #[error(
        "{pairs} pairs of nodes have no way between them, node {from} to node {to} is the first"
    )]
    Unreachable {
        /// The first source.
        from: u32,
        /// Its target.
        to: u32,
        /// How many pairs there are.
        pairs: u64,
    },
    /// A table would be too large.
    #[error("{policy} keeps a table of at most {limit} routers, and there are {routers}")]
    ManyRouters {
        /// The policy.
        policy: Policy,
        /// How many there are.
        routers: usize,
        /// The limit.
        limit: usize,
    },
    /// There are too many ways to follow them all.
    #[error("following all ways takes more than {limit} steps: check a smaller network")]
    ManyWays {
        /// The limit.
        limit: u64,
    },
}

/// A policy, prepared for a topology.
#[derive(Debug)]
pub(crate) enum Routes {
    Direct { switch: u32 },
    Cube(Cube),
    Tree(Tree),
    Further(Further),
}

/// The other policies, apart from those that speed is measured of.
#[derive(Debug)]
pub(crate) enum Further {
    Table(Table),
    Full(Full),
    Groups(Groups),
    Valiant(Valiant),
    Adaptive(Adaptive),
}

impl Routes {
    pub(crate) fn new(
        topology: &Topology,
        policy: Policy,
        channels: u16,
    ) -> Result<Self, RoutingError> {
        let routes = Self::partial(topology, policy, channels)?;
        // All others are for shapes that have all links.
        if let Self::Further(Further::Table(table)) = &routes {
            all_reached(table, topology)?;
        }
        Ok(routes)
    }

    /// Routes that need not lead to all nodes.
    fn partial(topology: &Topology, policy: Policy, channels: u16) -> Result<Self, RoutingError> {
        let few = |least| RoutingError::FewChannels { policy, channels, least };
        let enough = |least| if channels < least { Err(few(least)) } else { Ok(()) };
        enough(1)?;
        let by_chance = matches!(policy, Policy::UpByChance | Policy::Valiant);
        match (policy, &topology.shape) {
            (Policy::Direct, Shape::Switch) => Ok(Self::Direct { switch: 0 }),
            (Policy::Direct, Shape::Star) => {
                let nodes = topology.nodes.len() as u16;
                if channels != nodes {
                    return Err(few(nodes));
                }
                Ok(Self::Direct { switch: nodes.into() })
            }
            (
                Policy::DimensionOrder
                | Policy::PlainDimensionOrder
                | Policy::Valiant
                | Policy::Adaptive,
                Shape::Cube { sides, rings },
            ) => {
                let rings = *rings && sides.iter().any(|side| *side > 2);
                let classes = 1 + u16::from(rings);
                match policy {
                    Policy::PlainDimensionOrder => {
                        return Ok(Self::Cube(Cube::new(sides, rings, channels, false)));
                    }
                    Policy::DimensionOrder => enough(classes)?,
                    Policy::Valiant => enough(2 * classes)?,
                    _ => enough(Adaptive::least(rings))?,
                }
                let cube = |channels| Cube::new(sides, rings, channels, true);
                Ok(match policy {
                    Policy::Adaptive => {
                        Self::Further(Further::Adaptive(Adaptive::new(sides, rings, channels)))
                    }
                    Policy::Valiant => {
                        Self::Further(Further::Valiant(Valiant::new(channels, |channels| {
                            Part::Cube(cube(channels))
                        })))
                    }
                    _ => Self::Cube(cube(channels)),
                })
            }
            (Policy::UpByTarget | Policy::UpByChance, Shape::Tree { half, levels }) => {
                Ok(Self::Tree(Tree::new(*half, *levels, channels, by_chance)))
            }
            (Policy::Minimal, Shape::Full { nodes }) => {
                Ok(Self::Further(Further::Full(Full { nodes: *nodes, channels })))
            }
            (Policy::Valiant, Shape::Full { nodes }) => {
                enough(2)?;
                let part = |channels| Part::Full(Full { nodes: *nodes, channels });
                Ok(Self::Further(Further::Valiant(Valiant::new(channels, part))))
            }
            (Policy::Minimal | Policy::Valiant, Shape::Dragonfly(numbers)) => {
                enough(Groups::least(by_chance))?;
                Ok(Self::Further(Further::Groups(Groups::new(*numbers, channels, by_chance))))
            }
            _ => {
                let table = table(topology, policy, channels)?;
                Ok(Self::Further(Further::Table(table)))
            }
        }
    }

    /// The next hop of a packet at a router.
    #[inline(always)]
    pub(crate) fn hop(&self, router: u32, packet: &mut Packet) -> Hop {
        match self {
            Self::Direct { switch } if router == *switch => {
                Hop { port: packet.target as u16, first: 0, count: 1 }
            }
            Self::Direct { .. } => Hop { port: 0, first: packet.target as u16, count: 1 },
            Self::Cube(cube) => cube.hop(router, packet.source, packet.target),
            Self::Tree(tree) => tree.hop(router, packet),
            Self::Further(further) => further.hop(router, packet),
        }
    }

    /// Whether heads may ask for two outputs.
    pub(crate) fn is_adaptive(&self) -> bool {
        matches!(self, Self::Further(Further::Adaptive(_)))
    }

    /// A second hop that a packet may take instead of the first one.
    #[inline]
    pub(crate) fn other(&self, router: u32, packet: &Packet) -> Option<Hop> {
        match self {
            Self::Further(Further::Adaptive(adaptive)) => adaptive.other(router, packet),
            _ => None,
        }
    }

    /// The place between source and target that chance chooses for a packet, or [`NONE`].
    #[inline]
    pub(crate) fn via(&self, source: u32, target: u32, nodes: u32, random: &mut Random) -> u32 {
        match self {
            Self::Further(further) => further.via([source, target], nodes, random),
            _ => NONE,
        }
    }

    /// All places between that a packet may be sent by.
    fn vias(&self, source: u32, target: u32, nodes: u32) -> Vec<u32> {
        match self {
            Self::Further(Further::Valiant(_)) => (0..nodes).collect(),
            Self::Further(Further::Groups(groups)) => groups.vias(source, target),
            _ => vec![NONE],
        }
    }

    /// Gives all hops that a packet may take at a router; of an adaptive policy the escape only.
    fn hops(&self, router: u32, packet: &mut Packet, mut give: impl FnMut(&Packet, Hop)) {
        if let Self::Further(Further::Adaptive(adaptive)) = self {
            return give(packet, adaptive.escape(router, packet));
        }
        let hop = self.hop(router, packet);
        match self {
            Self::Tree(tree) => {
                tree.choices(hop).for_each(|port| give(packet, Hop { port, ..hop }))
            }
            _ => give(packet, hop),
        }
    }

    /// Whether there is a way.
    fn reaches(&self, router: u32, target: u32) -> bool {
        match self {
            Self::Further(Further::Table(table)) => table.reaches(router, target),
            _ => true,
        }
    }
}

impl Further {
    #[inline(never)]
    fn via(&self, [source, target]: [u32; 2], nodes: u32, random: &mut Random) -> u32 {
        match self {
            Self::Valiant(_) => random.below(nodes),
            Self::Groups(groups) => groups.via(source, target, random),
            _ => NONE,
        }
    }

    #[inline(never)]
    fn hop(&self, router: u32, packet: &mut Packet) -> Hop {
        match self {
            Self::Table(table) => table.hop(router, packet.target),
            Self::Full(full) => full.hop(router, packet.target),
            Self::Groups(groups) => groups.hop(router, packet),
            Self::Valiant(valiant) => valiant.hop(router, packet),
            Self::Adaptive(adaptive) => adaptive.hop(router, packet),
        }
    }
}

fn table(topology: &Topology, policy: Policy, channels: u16) -> Result<Table, RoutingError> {
    let routers = topology.ports.len();
    if routers > table::ROUTERS_MAX {
        return Err(RoutingError::ManyRouters { policy, routers, limit: table::ROUTERS_MAX });
    }
    let table = match policy {
        Policy::ShortestPath => Some(Table::shortest(topology, channels, Ties::LowestPort)),
        Policy::SpreadShortestPath => Some(Table::shortest(topology, channels, Ties::Spread)),
        Policy::UpDown => Some(Table::up_and_down(topology, channels)),
        Policy::WestFirst => Table::west_first(topology, channels),
        _ => None,
    };
    table.ok_or(RoutingError::OtherShape { policy })
}

/// Checks that there is a way from every node to every other one.
fn all_reached(table: &Table, topology: &Topology) -> Result<(), RoutingError> {
    // The first node of each router, and how many there are.
    let mut sources = BTreeMap::new();
    let mut targets = BTreeMap::new();
    for (number, node) in (0_u32..).zip(&topology.nodes) {
        sources.entry(node.inject.router).or_insert((number, 0_u64)).1 += 1;
        targets.entry(node.eject.router).or_insert((number, 0_u64)).1 += 1;
    }
    let mut first = None;
    let mut pairs = 0;
    for (router, (from, sources)) in &sources {
        for (to, targets) in targets.values() {
            if !table.reaches(*router, *to) {
                first = first.or(Some((*from, *to)));
                pairs += sources * targets;
            }
        }
    }
    match first {
        Some((from, to)) => Err(RoutingError::Unreachable { from, to, pairs }),
        None => Ok(()),
    }
}

//! The next link of a packet: which output of a router, and which of its virtual channels.
mod cube;
mod tree;

use crate::packet::Packet;
use crate::topology::{Shape, Topology};
use cube::Cube;
use thiserror::Error;
use tree::Tree;

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

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The only way, through one switch. In a star, each target has a virtual channel of its own.
    Direct,
    /// One dimension after the other. In rings, packets whose way leads over the last router to
    /// the first use the lower half of the virtual channels before it and the upper half behind.
    DimensionOrder,
    /// Up by the target's digits, then down.
    UpByTarget,
    /// Up by chance, then down.
    UpByChance,
}

/// Why a policy does not fit.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RoutingError {
    /// It is for another shape.
    #[error("{policy:?} is no way through this topology")]
    OtherShape {
        /// The policy.
        policy: Policy,
    },
    /// It needs more virtual channels to be free of deadlock.
    #[error("{policy:?} needs at least {least} virtual channels here, and there are {channels}")]
    FewChannels {
        /// The policy.
        policy: Policy,
        /// The virtual channels that there are.
        channels: u16,
        /// How many it needs.
        least: u16,
    },
}

/// A policy, prepared for a topology.
#[derive(Debug)]
pub(crate) enum Routes {
    Direct { switch: u32 },
    Cube(Cube),
    Tree(Tree),
}

impl Routes {
    pub(crate) fn new(
        topology: &Topology,
        policy: Policy,
        channels: u16,
    ) -> Result<Self, RoutingError> {
        let few = |least| RoutingError::FewChannels { policy, channels, least };
        match (policy, &topology.shape) {
            (Policy::Direct, Shape::Switch) => Ok(Self::Direct { switch: 0 }),
            (Policy::Direct, Shape::Star) => {
                let nodes = topology.nodes.len() as u16;
                if channels != nodes {
                    return Err(few(nodes));
                }
                Ok(Self::Direct { switch: nodes.into() })
            }
            (Policy::DimensionOrder, Shape::Cube { sides, rings }) => {
                let rings = *rings && sides.iter().any(|side| *side > 2);
                if channels < 1 + u16::from(rings) {
                    return Err(few(1 + u16::from(rings)));
                }
                Ok(Self::Cube(Cube::new(sides, rings, channels)))
            }
            (Policy::UpByTarget | Policy::UpByChance, Shape::Tree { half, levels }) => {
                let by_chance = policy == Policy::UpByChance;
                Ok(Self::Tree(Tree::new(*half, *levels, channels, by_chance)))
            }
            _ => Err(RoutingError::OtherShape { policy }),
        }
    }

    /// The next hop of a packet at a router.
    #[inline]
    pub(crate) fn hop(&self, router: u32, packet: &Packet) -> Hop {
        match self {
            Self::Direct { switch } if router == *switch => {
                Hop { port: packet.target as u16, first: 0, count: 1 }
            }
            Self::Direct { .. } => Hop { port: 0, first: packet.target as u16, count: 1 },
            Self::Cube(cube) => cube.hop(router, packet),
            Self::Tree(tree) => tree.hop(router, packet),
        }
    }
}

//! Shapes of networks: routers, their ports, the links between them, and the nodes at them.
//!
//! A link goes one way. A node injects at an input port of a router and is reached through an
//! output port, which need not be of the same router.
mod cube;
mod dragonfly;
mod full;
mod ladder;
mod named;
mod regular;
mod star;
mod tree;

pub use dragonfly::Dragonfly;
pub(crate) use full::place_beside;
pub use named::{FileError, FileFault, LinkError, Named};
use thiserror::Error;

/// A port of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The router.
    pub router: u32,
    /// The port's number there.
    pub port: u16,
}

/// A link, from an output port to an input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The output port that it begins at.
    pub from: Port,
    /// The input port that it ends at.
    pub to: Port,
}

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The input port at which its packets enter.
    pub inject: Port,
    /// The output port through which packets come to it.
    pub eject: Port,
}

/// The construction of a topology, from which routing follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One switch.
    Switch,
    /// Nodes with an interface of their own around one switch.
    Star,
    /// A mesh, torus or hypercube: routers in each dimension, and whether its rows are rings.
    Cube {
        /// Routers in each dimension.
        sides: Vec<u32>,
        /// Whether each row is a ring.
        rings: bool,
    },
    /// A folded tree of `levels` levels of switches with `half` ports up and `half` ports down.
    Tree {
        /// Half of a switch's ports.
        half: u32,
        /// Levels of switches.
        levels: u32,
    },
    /// Every router linked with every other, and `nodes` nodes at each.
    Full {
        /// Nodes at each router.
        nodes: u32,
    },
    /// A dragonfly.
    Dragonfly(Dragonfly),
    /// No regular one: routes are looked up in a table.
    Table,
}

/// A network's shape: routers, links and nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The ports of each router.
    pub ports: Vec<u16>,
    /// All links.
    pub links: Vec<Link>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Its construction.
    pub shape: Shape,
}

/// The largest number of routers, and of nodes.
pub const ROUTERS_MAX: u64 = 1 << 24;
/// The largest number of ports of a router.
pub const PORTS_MAX: u64 = 64;

/// Why there is no such topology.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TopologyError {
    /// It is larger than the simulator's limit.
    #[error("{what} would be {number}, and the limit is {limit}")]
    TooLarge {
        /// The thing of which there would be too many.
        what: &'static str,
        /// How many there would be; the largest number stands for all that are larger.
        number: u64,
        /// The limit.
        limit: u64,
    },
    /// Something that has to be there is not.
    #[error("{what} is {number}, and it has to be at least {least}")]
    TooSmall {
        /// The thing of which there are too few.
        what: &'static str,
        /// How many there are.
        number: u64,
        /// How many there have to be.
        least: u64,
    },
}

impl Topology {
    /// The topology that is left when some links, by their places in the list, have failed. Its
    /// shape is no regular one any more.
    #[must_use]
    pub fn without(&self, failed: &[usize]) -> Self {
        let left = |(place, _): &(usize, &Link)| !failed.contains(place);
        Self {
            links: self.links.iter().enumerate().filter(left).map(|(_, link)| *link).collect(),
            shape: if failed.is_empty() { self.shape.clone() } else { Shape::Table },
            ..self.clone()
        }
    }
}

/// Checks a number against its bounds.
fn bounded(what: &'static str, number: u64, least: u64, limit: u64) -> Result<(), TopologyError> {
    if number < least {
        return Err(TopologyError::TooSmall { what, number, least });
    }
    if number > limit {
        return Err(TopologyError::TooLarge { what, number, limit });
    }
    Ok(())
}

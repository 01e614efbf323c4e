//! Dragonflies (Kim, Dally, Scott and Abts 2008): groups of routers, every router of a group linked
//! with every other one of it, and every group with every other group.
//!
//! With `routers` = a in a group, `nodes` = p and `globals` = h at each router there are a h + 1
//! groups. Ports 0 to p - 1 of a router are its nodes'. The next a - 1 lead to the other routers of
//! its group, and the last h to other groups. The a h links of a group to others are numbered
//! through its routers, and link n leads to the group that is number n among the others.
use super::full::{nodes_at_each, place_beside};
use super::{Link, PORTS_MAX, Port, ROUTERS_MAX, Shape, Topology, TopologyError, bounded};

/// The numbers that make a dragonfly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// Routers in a group.
    pub routers: u32,
    /// Nodes at each router.
    pub nodes: u32,
    /// Links to other groups at each router.
    pub globals: u32,
}

impl Dragonfly {
    /// How many groups there are.
    pub fn groups(&self) -> u32 {
        self.routers * self.globals + 1
    }

    /// The port that leads from a router to another one of its group.
    pub(crate) fn local(&self, router: u32, other: u32) -> u16 {
        let (own, other) = (router % self.routers, other % self.routers);
        (self.nodes + place_beside(own, other)) as u16
    }

    /// The port from which the link from a group to another one begins.
    pub(crate) fn global(&self, group: u32, other: u32) -> Port {
        let link = place_beside(group, other);
        Port {
            router: group * self.routers + link / self.globals,
            port: (self.nodes + self.routers - 1 + link % self.globals) as u16,
        }
    }
}

impl Topology {
    /// A dragonfly.
    ///
    /// # Errors
    /// There have to be 2 routers in a group and 1 node and 1 link to another group at each. A
    /// router has at most 64 ports; see [`ROUTERS_MAX`] for the number of nodes.
    pub fn dragonfly(numbers: Dragonfly) -> Result<Self, TopologyError> {
        let Dragonfly { routers, nodes, globals } = numbers;
        bounded("the number of routers in a group", routers.into(), 2, PORTS_MAX)?;
        bounded("the number of nodes at a router", nodes.into(), 1, PORTS_MAX)?;
        bounded("the number of global links at a router", globals.into(), 1, PORTS_MAX)?;
        let ports = u64::from(nodes + routers - 1 + globals);
        bounded("the number of ports of a router", ports, 3, PORTS_MAX)?;
        let groups = numbers.groups();
        let all = groups * routers;
        bounded("the number of nodes", u64::from(all) * u64::from(nodes), 2, ROUTERS_MAX)?;
        let mut links = Vec::new();
        for group in 0..groups {
            let own = group * routers..(group + 1) * routers;
            for from in own.clone() {
                for to in own.clone().filter(|to| *to != from) {
                    let port = |router, other| Port { router, port: numbers.local(router, other) };
                    links.push(Link { from: port(from, to), to: port(to, from) });
                }
            }
            for other in (0..groups).filter(|other| *other != group) {
                let (from, to) = (numbers.global(group, other), numbers.global(other, group));
                links.push(Link { from, to });
            }
        }
        Ok(Self {
            ports: vec![ports as u16; all as usize],
            links,
            nodes: nodes_at_each(all, nodes),
            shape: Shape::Dragonfly(numbers),
        })
    }
}

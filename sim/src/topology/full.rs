//! Every router with every other, and some nodes at each.
//!
//! Ports 0 to `nodes` - 1 of a router are its nodes'. The others lead to the other routers, in the
//! order of their numbers.
use super::{Link, Node, PORTS_MAX, Port, ROUTERS_MAX, Shape, Topology, TopologyError, bounded};

/// The place of `other` among all but `own`.
pub(crate) fn place_beside(own: u32, other: u32) -> u32 {
    other - u32::from(other > own)
}

impl Topology {
    /// `routers` routers, each linked with every other, and `nodes` nodes at each.
    ///
    /// # Errors
    /// There have to be 2 routers and 1 node at each. A router has at most 64 ports.
    pub fn full(routers: u32, nodes: u32) -> Result<Self, TopologyError> {
        bounded("the number of routers", routers.into(), 2, ROUTERS_MAX)?;
        bounded("the number of nodes at a router", nodes.into(), 1, PORTS_MAX)?;
        let ports = u64::from(routers) - 1 + u64::from(nodes);
        bounded("the number of ports of a router", ports, 2, PORTS_MAX)?;
        let port =
            |router, other| Port { router, port: (nodes + place_beside(router, other)) as u16 };
        let mut links = Vec::new();
        for from in 0..routers {
            for to in (0..routers).filter(|to| *to != from) {
                links.push(Link { from: port(from, to), to: port(to, from) });
            }
        }
        Ok(Self {
            ports: vec![ports as u16; routers as usize],
            links,
            nodes: nodes_at_each(routers, nodes),
            shape: Shape::Full { nodes },
        })
    }
}

/// Nodes at the first `nodes` ports of each router.
pub(super) fn nodes_at_each(routers: u32, nodes: u32) -> Vec<Node> {
    let node = |number| {
        let port = Port { router: number / nodes, port: (number % nodes) as u16 };
        Node { inject: port, eject: port }
    };
    (0..routers * nodes).map(node).collect()
}

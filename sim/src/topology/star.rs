//! Nodes around one switch.
use super::{Link, Node, PORTS_MAX, Port, Shape, Topology, TopologyError, bounded};

/// The input port of an interface at which its node's packets enter, and its output port.
pub(crate) const INTERFACE: u16 = 0;

impl Topology {
    /// One switch with `nodes` nodes, which have no interface of their own: their packets wait in
    /// the switch.
    ///
    /// # Errors
    /// There have to be 2 to 64 nodes.
    pub fn switch(nodes: u32) -> Result<Self, TopologyError> {
        bounded("the number of nodes", nodes.into(), 2, PORTS_MAX)?;
        let node = |port| {
            let port = Port { router: 0, port };
            Node { inject: port, eject: port }
        };
        Ok(Self {
            ports: vec![nodes as u16],
            links: Vec::new(),
            nodes: (0..nodes as u16).map(node).collect(),
            shape: Shape::Switch,
        })
    }

    /// `nodes` nodes around one switch. Each has an interface that sends; the switch delivers.
    /// Router `n` is the interface of node `n`, and the last router is the switch.
    ///
    /// # Errors
    /// There have to be 2 to 64 nodes.
    pub fn star(nodes: u32) -> Result<Self, TopologyError> {
        bounded("the number of nodes", nodes.into(), 2, PORTS_MAX)?;
        let switch = nodes;
        let mut ports = vec![1; nodes as usize];
        ports.push(nodes as u16);
        Ok(Self {
            ports,
            links: (0..nodes)
                .map(|node| Link {
                    from: Port { router: node, port: INTERFACE },
                    to: Port { router: switch, port: node as u16 },
                })
                .collect(),
            nodes: (0..nodes)
                .map(|node| Node {
                    inject: Port { router: node, port: INTERFACE },
                    eject: Port { router: switch, port: node as u16 },
                })
                .collect(),
            shape: Shape::Star,
        })
    }
}

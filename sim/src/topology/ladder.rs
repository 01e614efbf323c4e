//! The eight sockets of a Sun Fire X4600 M2, a "twisted ladder" of HyperTransport links.
//!
//! ```text
//!   0 --- 2     4 --- 6        and 1 --- 6
//!   |     | \ / |     |
//!   |     | / \ |     |
//!   1 --- 3     5 --- 7
//! ```
//!
//! Muecke and Gansterer (WHTRA 2011) give 22 links one way, at most three hops, and sockets 0 and 7
//! with two links only; their drawing is lost. The ladder, its twist from 2 to 5 and from 3 to 4,
//! and the numbers of sockets are assumed. From 1 to 6 goes the only link that is then left.
use super::{Link, Node, Port, Shape, Topology};

/// The pairs of sockets that are linked.
const PAIRS: [(u32, u32); 11] =
    [(0, 1), (0, 2), (1, 3), (1, 6), (2, 3), (2, 5), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7)];
const SOCKETS: u32 = 8;

impl Topology {
    /// The twisted ladder of eight sockets, with `cores` nodes at each. Ports 0 to 2 of a socket
    /// are its links, in the order of the sockets that they lead to. Its cores have the ports from
    /// 3 on.
    ///
    /// # Errors
    /// There have to be 1 to 61 cores.
    pub fn ladder(cores: u32) -> Result<Self, super::TopologyError> {
        super::bounded("the number of cores", cores.into(), 1, super::PORTS_MAX - 3)?;
        let mut next = [0; SOCKETS as usize];
        let mut links = Vec::new();
        for (one, other) in PAIRS {
            let [one, other] = [one, other].map(|router| {
                let port = &mut next[router as usize];
                *port += 1;
                Port { router, port: *port - 1 }
            });
            links.push(Link { from: one, to: other });
            links.push(Link { from: other, to: one });
        }
        let node = |number| {
            let port = Port { router: number / cores, port: (3 + number % cores) as u16 };
            Node { inject: port, eject: port }
        };
        Ok(Self {
            ports: vec![3 + cores as u16; SOCKETS as usize],
            links,
            nodes: (0..SOCKETS * cores).map(node).collect(),
            shape: Shape::Table,
        })
    }
}

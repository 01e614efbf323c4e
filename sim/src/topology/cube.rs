//! Meshes, tori and hypercubes: routers in rows along each dimension, a node at each.
//!
//! Port `2 d` of a router leads up in dimension `d`, port `2 d + 1` leads down, and the last port
//! is the node's. A row of two routers has one pair of ports only, in a ring as well.
use super::{Link, Node, PORTS_MAX, Port, ROUTERS_MAX, Shape, Topology, TopologyError, bounded};

/// The largest number of routers in a dimension: routing keeps a table of all pairs in a row.
const SIDE_MAX: u64 = 1024;

impl Topology {
    /// A mesh, with the number of routers in each dimension.
    ///
    /// # Errors
    /// A dimension needs 2 to 1024 routers; see [`ROUTERS_MAX`] for all.
    pub fn mesh(sides: &[u32]) -> Result<Self, TopologyError> {
        cube(sides, false)
    }

    /// A torus, with the number of routers in each dimension.
    ///
    /// # Errors
    /// A dimension needs 2 to 1024 routers; see [`ROUTERS_MAX`] for all.
    pub fn torus(sides: &[u32]) -> Result<Self, TopologyError> {
        cube(sides, true)
    }

    /// A hypercube with this number of dimensions.
    ///
    /// # Errors
    /// There have to be 1 to 24 dimensions.
    pub fn hypercube(dimensions: u32) -> Result<Self, TopologyError> {
        bounded("the number of dimensions", dimensions.into(), 1, 24)?;
        cube(&vec![2; dimensions as usize], false)
    }
}

fn cube(sides: &[u32], rings: bool) -> Result<Topology, TopologyError> {
    let dimensions = sides.len() as u64;
    bounded("the number of dimensions", dimensions, 1, (PORTS_MAX - 1) / 2)?;
    let mut routers = 1_u64;
    for side in sides {
        bounded("the number of routers in a dimension", (*side).into(), 2, SIDE_MAX)?;
        routers = routers.saturating_mul((*side).into());
    }
    bounded("the number of routers", routers, 2, ROUTERS_MAX)?;
    let node_port = 2 * dimensions as u16;
    let mut links = Vec::with_capacity(routers as usize * sides.len() * 2);
    for router in 0..routers as u32 {
        let mut stride = 1;
        for (dimension, side) in sides.iter().enumerate() {
            let place = router / stride % side;
            let up = 2 * dimension as u16;
            let ring = rings && *side > 2;
            let mut join = |neighbor: u32, from: u16, to: u16| {
                links.push(Link {
                    from: Port { router, port: from },
                    to: Port { router: neighbor, port: to },
                });
            };
            if place + 1 < *side {
                join(router + stride, up, up + 1);
            } else if ring {
                join(router - (side - 1) * stride, up, up + 1);
            }
            if place > 0 {
                join(router - stride, up + 1, up);
            } else if ring {
                join(router + (side - 1) * stride, up + 1, up);
            }
            stride *= side;
        }
    }
    let node = |router| {
        let port = Port { router, port: node_port };
        Node { inject: port, eject: port }
    };
    Ok(Topology {
        ports: vec![node_port + 1; routers as usize],
        links,
        nodes: (0..routers as u32).map(node).collect(),
        shape: Shape::Cube { sides: sides.to_vec(), rings },
    })
}

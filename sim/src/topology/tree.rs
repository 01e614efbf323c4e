//! Folded trees ("fat trees"): as many links up as down at each switch, but at the top.
//!
//! With `half` = h and `levels` = n there are h^n nodes and h^(n-1) switches in each level. A
//! switch is named by its level and n - 1 digits in base h. From level l to l + 1, links join the
//! switches whose digits are equal but for digit l. Ports 0 to h - 1 lead down, ports h to 2 h - 1
//! lead up, and the port's number within its half is the other end's digit l.
//!
//! A switch of level l can reach the nodes below it: those whose digits above l are its own.
use super::{Link, Node, PORTS_MAX, Port, ROUTERS_MAX, Shape, Topology, TopologyError, bounded};

impl Topology {
    /// A tree of `levels` levels of switches, each with `half` ports down and as many up.
    ///
    /// # Errors
    /// A switch needs 2 to 32 ports each way, and there have to be 1 to 24 levels; see
    /// [`ROUTERS_MAX`] for the number of nodes.
    pub fn tree(half: u32, levels: u32) -> Result<Self, TopologyError> {
        bounded("the number of ports down", half.into(), 2, PORTS_MAX / 2)?;
        bounded("the number of levels", levels.into(), 1, 24)?;
        let nodes = u64::from(half).saturating_pow(levels);
        bounded("the number of nodes", nodes, 2, ROUTERS_MAX)?;
        let width = half.pow(levels - 1);
        let mut links = Vec::new();
        for level in 0..levels - 1 {
            let stride = half.pow(level);
            for place in 0..width {
                let digit = place / stride % half;
                for other in 0..half {
                    let below = Port { router: level * width + place, port: (half + other) as u16 };
                    let above_place = place - digit * stride + other * stride;
                    let above =
                        Port { router: (level + 1) * width + above_place, port: digit as u16 };
                    links.push(Link { from: below, to: above });
                    links.push(Link { from: above, to: below });
                }
            }
        }
        let node = |node: u32| {
            let port = Port { router: node / half, port: (node % half) as u16 };
            Node { inject: port, eject: port }
        };
        Ok(Self {
            ports: vec![2 * half as u16; (levels * width) as usize],
            links,
            nodes: (0..nodes as u32).map(node).collect(),
            shape: Shape::Tree { half, levels },
        })
    }
}

//! Routes in a table: the output of each router for each router that packets go to.
use super::Hop;
use crate::random::mix;
use crate::topology::{Port, Shape, Topology};
use std::collections::VecDeque;

/// The largest number of routers for which there are tables: a byte for each pair of them.
pub(crate) const ROUTERS_MAX: usize = 1 << 13;

/// Stands for no way.
const NO_PORT: u8 = u8::MAX;
/// Stands for no way where the length of one is kept.
const FAR: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Table {
    routers: usize,
    channels: u16,
    /// The output of each router for each target: all routers of a target side by side.
    ports: Vec<u8>,
    /// The output that leads to each node.
    homes: Vec<Port>,
}

/// Which of several shortest ways is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ties {
    /// That by the lowest port.
    LowestPort,
    /// One that follows from the router and the target by a hash.
    Spread,
}

impl Table {
    #[inline]
    pub(super) fn hop(&self, router: u32, target: u32) -> Hop {
        let home = self.homes[target as usize];
        if router == home.router {
            return Hop { port: home.port, first: 0, count: 1 };
        }
        let port = self.ports[home.router as usize * self.routers + router as usize];
        Hop { port: port.into(), first: 0, count: self.channels }
    }

    /// Whether there is a way.
    pub(super) fn reaches(&self, router: u32, target: u32) -> bool {
        self.hop(router, target).port != u16::from(NO_PORT)
    }

    fn new(topology: &Topology, channels: u16) -> Self {
        let routers = topology.ports.len();
        Self {
            routers,
            channels,
            ports: vec![NO_PORT; routers * routers],
            homes: topology.nodes.iter().map(|node| node.eject).collect(),
        }
    }

    fn set(&mut self, router: usize, target: usize, port: u16) {
        self.ports[target * self.routers + router] = port as u8;
    }

    /// A way of the fewest links.
    pub(super) fn shortest(topology: &Topology, channels: u16, ties: Ties) -> Self {
        let mut table = Self::new(topology, channels);
        let graph = Graph::new(topology);
        for target in 0..table.routers {
            let far = distances(&graph.into, target);
            for router in (0..table.routers).filter(|r| *r != target && far[*r] != FAR) {
                let near = |edge: &&Edge| far[edge.to].saturating_add(1) == far[router];
                let ways: Vec<_> = graph.out[router].iter().filter(near).collect();
                let pair = (router as u64) << 32 | target as u64;
                let choice = match ties {
                    Ties::LowestPort => 0,
                    Ties::Spread => (mix(pair) % ways.len() as u64) as usize,
                };
                table.set(router, target, ways[choice].port);
            }
        }
        table
    }

    /// Up and down a tree of shortest ways from a root: never up again after a step down.
    ///
    /// The root is the router with the least sum of distances from it, the lowest number of
    /// several. A link leads up if it leads to a router nearer to the root, or to one as near with
    /// a lower number. Packets go down as soon as that leads to the target, and otherwise up by the
    /// link with the shortest way behind it.
    pub(super) fn up_and_down(topology: &Topology, channels: u16) -> Self {
        let mut table = Self::new(topology, channels);
        let graph = Graph::new(topology);
        let ranks = ranks(&graph);
        let is_up = |from: usize, to: usize| ranks[to] < ranks[from];
        let mut order: Vec<_> = (0..table.routers).collect();
        order.sort_unstable_by_key(|router| ranks[*router]);
        let down: Vec<Vec<_>> = (0..table.routers)
            .map(|to| graph.into[to].iter().copied().filter(|from| !is_up(*from, to)).collect())
            .collect();
        for target in 0..table.routers {
            let below = distances(&down, target);
            let mut far = below.clone();
            // Each way up leads to a router of a lower rank, whose distance is known.
            for router in order.iter().copied().filter(|router| *router != target) {
                let goes_down = below[router] != FAR;
                let behind = |edge: &Edge| match (goes_down, is_up(router, edge.to)) {
                    (true, false) => below[edge.to],
                    (false, true) => far[edge.to],
                    _ => FAR,
                };
                let best = graph.out[router].iter().min_by_key(|edge| (behind(edge), edge.port));
                if let Some(edge) = best
                    && behind(edge) != FAR
                {
                    far[router] = behind(edge) + 1;
                    table.set(router, target, edge.port);
                }
            }
        }
        table
    }

    /// West-First in a mesh of two dimensions: all steps down in the first dimension come first.
    /// Where a packet may then go on in both dimensions, a hash of router and target decides.
    pub(super) fn west_first(topology: &Topology, channels: u16) -> Option<Self> {
        let Shape::Cube { sides, rings: false } = &topology.shape else { return None };
        let [side, _] = sides[..] else { return None };
        let mut table = Self::new(topology, channels);
        let side = side as usize;
        for router in 0..table.routers {
            for target in (0..table.routers).filter(|target| *target != router) {
                let (x, y) = (router % side, router / side);
                let (to_x, to_y) = (target % side, target / side);
                let chance = mix((router as u64) << 32 | target as u64) & 1 == 0;
                let port = if to_x < x {
                    1
                } else if to_x > x && (to_y == y || chance) {
                    0
                } else if to_y > y {
                    2
                } else {
                    3
                };
                table.set(router, target, port);
            }
        }
        Some(table)
    }
}

/// A link from a router.
struct Edge {
    port: u16,
    to: usize,
}

/// Routers and links in both directions.
struct Graph {
    /// The links from each router, in the order of their ports.
    out: Vec<Vec<Edge>>,
    /// The routers that have links to each.
    into: Vec<Vec<usize>>,
}

impl Graph {
    fn new(topology: &Topology) -> Self {
        let routers = topology.ports.len();
        let mut graph = Self {
            out: (0..routers).map(|_| Vec::new()).collect(),
            into: vec![Vec::new(); routers],
        };
        for link in &topology.links {
            let (from, to) = (link.from.router as usize, link.to.router as usize);
            graph.out[from].push(Edge { port: link.from.port, to });
            graph.into[to].push(from);
        }
        for edges in &mut graph.out {
            edges.sort_unstable_by_key(|edge| edge.port);
        }
        graph
    }
}

/// The number of links to `target` from each router, where `into` lists the routers before each.
fn distances(into: &[Vec<usize>], target: usize) -> Vec<u32> {
    let mut far = vec![FAR; into.len()];
    far[target] = 0;
    let mut queue = VecDeque::from([target]);
    while let Some(router) = queue.pop_front() {
        for before in &into[router] {
            if far[*before] == FAR {
                far[*before] = far[router] + 1;
                queue.push_back(*before);
            }
        }
    }
    far
}

/// The place of each router in the order that decides on up and down. Parts without a link between
/// them have roots of their own.
fn ranks(graph: &Graph) -> Vec<(u32, usize)> {
    let routers = graph.out.len();
    let around: Vec<Vec<_>> =
        graph.out.iter().map(|edges| edges.iter().map(|edge| edge.to).collect()).collect();
    let all = |root: &usize| {
        let far = distances(&around, *root);
        far.iter().map(|far| u64::from(*far)).sum::<u64>()
    };
    let mut levels = vec![FAR; routers];
    if let Some(root) = (0..routers).min_by_key(all) {
        levels = distances(&around, root);
    }
    for router in 0..routers {
        if levels[router] == FAR {
            for (level, far) in levels.iter_mut().zip(distances(&around, router)) {
                *level = far.min(*level);
            }
        }
    }
    levels.into_iter().zip(0..routers).collect()
}

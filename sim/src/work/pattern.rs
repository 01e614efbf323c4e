//! Patterns of traffic, by the names that BookSim made common.
use super::LoadError;
use crate::random::Random;

/// The target of a node's packets.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Any node, itself included.
    Uniform,
    /// Any other node.
    Others,
    /// The node whose number has the halves of its bits exchanged.
    Transpose,
    /// The node whose number has all bits inverted.
    BitComplement,
    /// The node whose number has the bits in the opposite order.
    BitReverse,
    /// The node whose number has the bits rotated up by one.
    Shuffle,
    /// The node half way round, less one, in each dimension.
    Tornado {
        /// Nodes in each dimension, whose numbers run fastest in the first one.
        sides: Vec<u32>,
    },
    /// The next node in each dimension.
    Neighbor {
        /// Nodes in each dimension, whose numbers run fastest in the first one.
        sides: Vec<u32>,
    },
    /// The node whose number is higher by this, in a ring of all nodes.
    Shift {
        /// How much higher.
        by: u32,
    },
    /// One node with a certain share, any node otherwise.
    Hotspot {
        /// The node.
        node: u32,
        /// Its extra share.
        share: f64,
    },
    /// The node that a list names for each.
    Permutation {
        /// The target of each node.
        targets: Vec<u32>,
    },
    /// In this share of cases the node with its own number, any node otherwise (of the outputs of
    /// one switch).
    Unbalanced {
        /// The share.
        share: f64,
    },
    /// In this share of cases a neighbour on a square mesh, any other node otherwise.
    Near {
        /// Nodes of a side of the mesh, at least 2.
        side: u32,
        /// The share.
        share: f64,
    },
}

impl Pattern {
    /// Checks that it fits this number of nodes.
    pub(super) fn check(&self, nodes: u32) -> Result<(), LoadError> {
        let bits = nodes.trailing_zeros();
        let power = nodes.is_power_of_two();
        let needs = |pattern, needs, fits| {
            if fits { Ok(()) } else { Err(LoadError::Pattern { pattern, needs, nodes }) }
        };
        match self {
            Self::Transpose => {
                needs("transpose", "an even power of two", power && bits.is_multiple_of(2))
            }
            Self::BitComplement => needs("bitcomp", "a power of two", power),
            Self::BitReverse => needs("bitrev", "a power of two", power),
            Self::Shuffle => needs("shuffle", "a power of two", power),
            Self::Hotspot { node, share } => {
                share_fits(*share)?;
                node_fits(*node, nodes)
            }
            Self::Unbalanced { share } => share_fits(*share),
            Self::Near { side, share } => {
                share_fits(*share)?;
                let square = *side >= 2 && side.checked_mul(*side) == Some(nodes);
                needs("near", "the square of a side of 2 or more", square)
            }
            Self::Permutation { targets } => {
                needs(
                    "a permutation",
                    "as many nodes as it lists",
                    targets.len() == nodes as usize,
                )?;
                targets.iter().try_for_each(|node| node_fits(*node, nodes))
            }
            Self::Tornado { sides } | Self::Neighbor { sides } => {
                let all = sides.iter().try_fold(1_u32, |all, side| all.checked_mul(*side));
                needs("a pattern of dimensions", "the product of its sides", all == Some(nodes))
            }
            Self::Uniform | Self::Others | Self::Shift { .. } => Ok(()),
        }
    }

    /// The target of a packet.
    pub(crate) fn target(&self, node: u32, nodes: u32, random: &mut Random) -> u32 {
        let bits = nodes.trailing_zeros();
        match self {
            Self::Uniform => random.below(nodes),
            Self::Others => (node + 1 + random.below(nodes - 1)) % nodes,
            Self::Transpose => {
                let half = bits / 2;
                node >> half | (node & ((1 << half) - 1)) << half
            }
            Self::BitComplement => !node & (nodes - 1),
            Self::BitReverse => node.reverse_bits() >> (32 - bits),
            Self::Shuffle => (node << 1 | node >> (bits - 1)) & (nodes - 1),
            Self::Tornado { sides } => further(node, sides, |side| side.div_ceil(2) - 1),
            Self::Neighbor { sides } => further(node, sides, |_| 1),
            Self::Shift { by } => (node + by % nodes) % nodes,
            Self::Hotspot { node: hot, share } => {
                if random.unit() < *share {
                    *hot
                } else {
                    random.below(nodes)
                }
            }
            Self::Permutation { targets } => targets[node as usize],
            Self::Near { side, share } => {
                if random.unit() < *share {
                    neighbor(node, *side, random)
                } else {
                    Self::Others.target(node, nodes, random)
                }
            }
            Self::Unbalanced { share } => {
                if random.unit() < *share {
                    node
                } else {
                    random.below(nodes)
                }
            }
        }
    }
}

/// The node that is further on in each dimension, by a number that depends on the side.
fn further(node: u32, sides: &[u32], by: impl Fn(u32) -> u32) -> u32 {
    let (mut rest, mut stride, mut target) = (node, 1, 0);
    for side in sides {
        target += stride * ((rest % side + by(*side)) % side);
        rest /= side;
        stride *= side;
    }
    target
}

/// A neighbour of a node on a square mesh.
fn neighbor(node: u32, side: u32, random: &mut Random) -> u32 {
    let (x, y) = (node % side, node / side);
    let all = [
        (x > 0).then(|| node - 1),
        (x + 1 < side).then(|| node + 1),
        (y > 0).then(|| node - side),
        (y + 1 < side).then(|| node + side),
    ];
    let count = all.iter().flatten().count() as u32;
    let chosen = random.below(count) as usize;
    all.into_iter().flatten().nth(chosen).unwrap_or(node)
}

fn share_fits(share: f64) -> Result<(), LoadError> {
    if (0.0..=1.0).contains(&share) { Ok(()) } else { Err(LoadError::Share(share)) }
}

fn node_fits(node: u32, nodes: u32) -> Result<(), LoadError> {
    if node < nodes { Ok(()) } else { Err(LoadError::NoNode { node, nodes }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tornado_and_neighbor_go_on_in_each_dimension() {
        let target = |pattern: &Pattern, node| pattern.target(node, 40, &mut Random::new(1, 0));
        // Node (x, y) has the number x + 8 y. The way is 3 in a row of 8, and 2 in one of 5.
        let tornado = Pattern::Tornado { sides: vec![8, 5] };
        assert_eq!(target(&tornado, 0), 3 + 8 * 2);
        assert_eq!(target(&tornado, 6 + 8 * 4), 1 + 8);
        let neighbor = Pattern::Neighbor { sides: vec![8, 5] };
        assert_eq!(target(&neighbor, 7 + 8 * 2), 8 * 3);
        assert_eq!(target(&neighbor, 7 + 8 * 4), 0);
        assert!(neighbor.check(40).is_ok() && neighbor.check(39).is_err());
        assert!(Pattern::Tornado { sides: vec![1 << 16; 2] }.check(0).is_err());
    }

    #[test]
    fn near_targets_are_neighbours_in_their_share_and_each_as_often() {
        let pattern = Pattern::Near { side: 4, share: 1.0 };
        let mut random = Random::new(1, 0);
        let mut counts = [0_u32; 16];
        for _ in 0..8_000 {
            counts[pattern.target(5, 16, &mut random) as usize] += 1;
        }
        for (node, count) in counts.iter().enumerate() {
            let expected = if [1, 4, 6, 9].contains(&node) { 2_000.0 } else { 0.0 };
            assert!((f64::from(*count) - expected).abs() < 200.0, "{node}: {count}");
        }
        assert!(Pattern::Near { side: 4, share: 0.5 }.check(17).is_err());
        assert!(Pattern::Near { side: u32::MAX, share: 0.5 }.check(1).is_err());
    }
}

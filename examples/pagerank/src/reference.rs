//! PageRank in one process: the result that every distributed run has to equal, bit by bit.
//!
//! In an iteration each vertex passes 0.85 of its rank on, in equal shares along its edges. All
//! that is not passed on is spread evenly over all vertices: the other 0.15, the whole rank of
//! dangling vertices, and what the shares lost by rounding (see `fixed`). [`push`] and [`settle`]
//! work on one block of vertices, so a distributed run uses them too and only carries the shares
//! and two sums between processes.

use std::ops::Range;

use crate::fixed::{ONE, Spread, share};
use crate::graph::Graph;

/// When to stop iterating.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// The iterations after which it ends at the latest.
    pub(crate) iterations: u32,
    /// It ends as soon as the ranks change by no more units than these in sum (the L1 norm).
    pub(crate) tolerance: u64,
}

/// Where the iterations ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// By vertex; their sum is [`ONE`], unless there is no vertex.
    pub(crate) ranks: Vec<u64>,
    pub(crate) iterations: u32,
    /// By how much the last iteration changed the ranks, in sum.
    pub(crate) change: u64,
}

/// Ranks all vertices; `tick` hears of every iteration.
pub(crate) fn rank(graph: &Graph, stop: Stop, mut tick: impl FnMut()) -> Outcome {
    let everything = 0..graph.vertices();
    let mut outcome =
        Outcome { ranks: initial(graph.vertices(), everything.clone()), iterations: 0, change: 0 };
    if everything.is_empty() {
        return outcome;
    }
    let mut received = vec![0; outcome.ranks.len()];
    while outcome.iterations < stop.iterations {
        let pushed = push(graph.rows(everything.clone()), &outcome.ranks, |target, share| {
            received[target as usize] += share;
        });
        let spread = Spread::new(ONE - pushed, graph.vertices());
        let settled = settle(&mut outcome.ranks, &received, everything.start, spread);
        assert_eq!(settled.total, ONE, "rank was lost or made");
        received.fill(0);
        outcome.iterations += 1;
        outcome.change = settled.change;
        tick();
        if outcome.change <= stop.tolerance {
            break;
        }
    }
    outcome
}

/// The ranks of a block of vertices, of `vertices` in all, before the first iteration: an even
/// spread.
pub(crate) fn initial(vertices: u32, block: Range<u32>) -> Vec<u64> {
    if vertices == 0 {
        return Vec::new();
    }
    let spread = Spread::new(ONE, vertices);
    block.map(|vertex| spread.of(vertex)).collect()
}

/// Delivers to each target in each row, which is what a vertex points to, the share that the
/// vertex passes on of its rank, the next one in `ranks`.
///
/// Returns the sum of all shares. The rest, which all blocks together do not push, is to be spread.
// Inlined into a caller with much else to keep, the loop would lack registers.
#[inline(never)]
pub(crate) fn push<'a>(
    rows: impl Iterator<Item = &'a [u32]>,
    ranks: &[u64],
    mut deliver: impl FnMut(u32, u64),
) -> u64 {
    let mut pushed = 0;
    for (row, &rank) in rows.zip(ranks) {
        // At most one edge to each vertex, so the degree fits where an id fits.
        let degree = row.len() as u32;
        if degree == 0 {
            continue;
        }
        let share = share(rank, degree);
        for &target in row {
            deliver(target, share);
        }
        pushed += share * u64::from(degree);
    }
    pushed
}

/// Sums over the block that `settle` worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The sum of the new ranks.
    pub(crate) total: u64,
    /// The sum of the absolute differences between new and old ranks.
    pub(crate) change: u64,
}

/// Ends an iteration for the block that starts at vertex `first`: each new rank is what the vertex
/// received plus its part of the spread.
pub(crate) fn settle(ranks: &mut [u64], received: &[u64], first: u32, spread: Spread) -> Settled {
    let mut settled = Settled { total: 0, change: 0 };
    for ((rank, &received), vertex) in ranks.iter_mut().zip(received).zip(first..) {
        let new = received + spread.of(vertex);
        settled.total += new;
        settled.change += new.abs_diff(*rank);
        *rank = new;
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::to_f64;
    use crate::partition::Partition;
    use crate::testing::{self, Numbers};

    const PRECISE: Stop = Stop { iterations: 1000, tolerance: 1 << 10 };

    fn assert_close(ranks: &[u64], expected: &[f64]) {
        assert_eq!(ranks.len(), expected.len());
        for (&rank, expected) in ranks.iter().zip(expected) {
            assert!((to_f64(rank) - expected).abs() < 1e-12, "{} is not {expected}", to_f64(rank));
        }
    }

    #[test]
    fn hand_computed_ranks() {
        let table: [(&str, &[f64]); 5] = [
            // A cycle has no favourites.
            ("a b  b c  c a", &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]),
            // Two vertices point to one that dangles. With base b = (0.15 + 0.85 h) / 3 for the
            // two, h = b + 0.85 * 2b = 2.7b and 4.7b = 1. Order: a, h, c.
            ("a h  c h", &[1.0 / 4.7, 2.7 / 4.7, 1.0 / 4.7]),
            // One edge: b = (0.15 + 0.85 t) / 2, t = 1.85b, 2.85b = 1.
            ("a b", &[1.0 / 2.85, 1.85 / 2.85]),
            // A vertex that nobody points to, s = 0.05, feeds a pair: x = 0.05 + 0.85 (s + y),
            // y = 0.05 + 0.85 x.
            ("s x  x y  y x", &[0.05, 0.135 / 0.2775, 0.128625 / 0.2775]),
            // Nothing but dangling vertices.
            ("a a  b b", &[0.5, 0.5]),
        ];
        for (edges, expected) in table {
            assert_close(&rank(&testing::graph(edges), PRECISE, || ()).ranks, expected);
        }
    }

    #[test]
    fn first_iteration_to_the_unit() {
        let graph = testing::graph("a b  a c  b c");
        let mut ticks = 0;
        let outcome = rank(&graph, Stop { iterations: 1, tolerance: 0 }, || ticks += 1);
        // 2^59 is 3 * 192153584101141162 + 2, so a and b start with one unit more.
        let start = 192_153_584_101_141_162;
        assert_eq!(ONE, 3 * start + 2);
        let half = (start + 1) * 17 / 40;
        let whole = (start + 1) * 17 / 20;
        let pool = ONE - 2 * half - whole;
        let expected: [u64; 3] = [
            pool / 3 + u64::from(pool % 3 >= 1),
            half + pool / 3 + u64::from(pool % 3 >= 2),
            half + whole + pool / 3,
        ];
        assert_eq!(outcome.ranks, expected);
        assert_eq!((outcome.iterations, ticks), (1, 1));
        let change = (start + 1).abs_diff(expected[0])
            + (start + 1).abs_diff(expected[1])
            + start.abs_diff(expected[2]);
        assert_eq!(outcome.change, change);
    }

    #[test]
    fn sums_stay_exact() {
        let graph = testing::scrambled(997, 5000);
        for iterations in 0..40 {
            let outcome = rank(&graph, Stop { iterations, tolerance: 0 }, || ());
            assert_eq!(outcome.ranks.iter().sum::<u64>(), ONE);
            assert_eq!(outcome.iterations, iterations);
        }
    }

    #[test]
    fn stops_at_the_tolerance() {
        let graph = testing::scrambled(100, 500);
        let outcome = rank(&graph, Stop { iterations: 1000, tolerance: ONE / 1000 }, || ());
        assert!(outcome.change <= ONE / 1000);
        let before = Stop { iterations: outcome.iterations - 1, tolerance: 0 };
        assert!(rank(&graph, before, || ()).change > ONE / 1000, "it stopped late");
    }

    #[test]
    fn the_empty_graph_has_no_ranks() {
        let outcome = rank(&testing::graph(""), PRECISE, || ());
        assert_eq!((outcome.ranks.len(), outcome.iterations), (0, 0));
    }

    /// The work of processes, with the shares delivered in a scrambled order.
    fn in_blocks(graph: &Graph, processes: usize, iterations: u32) -> Vec<u64> {
        let partition = Partition::new(graph, processes);
        let blocks: Vec<_> = (0..processes).map(|process| partition.block(process)).collect();
        let start = |block: &Range<u32>| initial(graph.vertices(), block.clone());
        let mut ranks: Vec<_> = blocks.iter().map(start).collect();
        let mut numbers = Numbers(processes as u64);
        for _ in 0..iterations {
            let mut shares = Vec::new();
            let mut pushed = 0;
            for (block, ranks) in blocks.iter().zip(&ranks) {
                pushed += push(graph.rows(block.clone()), ranks, |target, share| {
                    shares.push((partition.locate(target), share));
                });
            }
            let mut received: Vec<_> = blocks.iter().map(|block| vec![0; block.len()]).collect();
            while !shares.is_empty() {
                let next = numbers.below(shares.len() as u32) as usize;
                let ((process, index), share) = shares.swap_remove(next);
                received[process][index] += share;
            }
            let spread = Spread::new(ONE - pushed, graph.vertices());
            for (process, block) in blocks.iter().enumerate() {
                settle(&mut ranks[process], &received[process], block.start, spread);
            }
        }
        ranks.concat()
    }

    #[test]
    fn any_division_gives_the_same_bits() {
        let graph = testing::scrambled(300, 2000);
        let expected = rank(&graph, Stop { iterations: 20, tolerance: 0 }, || ()).ranks;
        for processes in [1, 2, 3, 8, 300, 400] {
            assert_eq!(in_blocks(&graph, processes, 20), expected, "{processes} processes");
        }
    }

    #[test]
    fn agrees_with_floating_point() {
        let graph = testing::scrambled(500, 4000);
        let vertices = f64::from(graph.vertices());
        let mut ranks = vec![1.0 / vertices; graph.vertices() as usize];
        for _ in 0..50 {
            let mut next = vec![0.0; ranks.len()];
            let mut dangling = 0.0;
            for vertex in 0..graph.vertices() {
                let rank = ranks[vertex as usize];
                let targets = graph.targets(vertex);
                if targets.is_empty() {
                    dangling += rank;
                }
                for &target in targets {
                    next[target as usize] += 0.85 * rank / targets.len() as f64;
                }
            }
            next.iter_mut().for_each(|rank| *rank += (0.15 + 0.85 * dangling) / vertices);
            ranks = next;
        }
        assert_close(&rank(&graph, Stop { iterations: 50, tolerance: 0 }, || ()).ranks, &ranks);
    }
}

//! Which process owns which vertices.
//!
//! Each process owns one block of consecutive vertices. The blocks are balanced by the steps of a
//! process for a vertex in an iteration: one for the vertex itself and one for each edge
//! that leaves it. Edges that arrive are not counted: with one-sided operations their work falls
//! to the sender. A vertex is never split, so one with very many edges can outweigh a fair share,
//! and with more processes than vertices some blocks are empty.

use std::ops::Range;

use crate::graph::Graph;

/// Vertices divided into blocks, one for each process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Process `p` owns the vertices `bounds[p]..bounds[p + 1]`.
    bounds: Vec<u32>,
}

impl Partition {
    /// Divides the vertices of `graph` among `processes` > 0 processes.
    pub(crate) fn new(graph: &Graph, processes: usize) -> Self {
        assert!(processes > 0, "somebody has to own the vertices");
        let total = weight_before(graph, graph.vertices());
        let mut bounds = Vec::with_capacity(processes + 1);
        for process in 0..processes {
            // 128 bits: the product of two counts need not fit in 64.
            let goal = total as u128 * process as u128 / processes as u128;
            bounds.push(first_at_or_above(graph, goal as u64));
        }
        bounds.push(graph.vertices());
        Self { bounds }
    }

    /// A partition that another process has made.
    pub(crate) fn from_bounds(bounds: Vec<u32>) -> Self {
        assert!(bounds.len() > 1 && bounds.is_sorted(), "blocks follow one another");
        Self { bounds }
    }

    /// Where blocks begin, in order, and at the end the number of vertices.
    pub(crate) fn bounds(&self) -> &[u32] {
        &self.bounds
    }

    /// The number of vertices of the whole graph.
    pub(crate) fn vertices(&self) -> u32 {
        self.bounds[self.bounds.len() - 1]
    }

    /// The vertices that `process` owns.
    pub(crate) fn block(&self, process: usize) -> Range<u32> {
        self.bounds[process]..self.bounds[process + 1]
    }

    /// The process that owns `vertex`, and the place of the vertex in that process's block.
    pub(crate) fn locate(&self, vertex: u32) -> (usize, usize) {
        let process = self.bounds.partition_point(|&bound| bound <= vertex) - 1;
        (process, (vertex - self.bounds[process]) as usize)
    }
}

fn weight_before(graph: &Graph, vertex: u32) -> u64 {
    u64::from(vertex) + graph.edges_before(vertex) as u64
}

/// The first vertex before which there is at least `goal` of weight.
fn first_at_or_above(graph: &Graph, goal: u64) -> u32 {
    let (mut low, mut high) = (0, graph.vertices());
    while low < high {
        let middle = low + (high - low) / 2;
        if weight_before(graph, middle) < goal {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn every_vertex_has_one_owner() {
        let graph = testing::scrambled(100, 400);
        for processes in [1, 2, 3, 7, 64, 100, 250] {
            let partition = Partition::new(&graph, processes);
            let mut next = 0;
            for process in 0..processes {
                for (index, vertex) in partition.block(process).enumerate() {
                    assert_eq!(vertex, next);
                    assert_eq!(partition.locate(vertex), (process, index));
                    next += 1;
                }
            }
            assert_eq!(next, graph.vertices(), "{processes} processes");
        }
    }

    #[test]
    fn blocks_are_balanced() {
        let graph = testing::scrambled(1000, 20_000);
        let heaviest =
            (0..1000).map(|vertex| graph.targets(vertex).len() as u64 + 1).max().unwrap();
        let total = weight_before(&graph, graph.vertices());
        for processes in [2, 3, 8] {
            let partition = Partition::new(&graph, processes);
            for process in 0..processes {
                let block = partition.block(process);
                let weight = weight_before(&graph, block.end) - weight_before(&graph, block.start);
                let fair = total / processes as u64;
                assert!(weight.abs_diff(fair) <= heaviest + 1, "{weight} of {fair}, {processes}");
            }
        }
    }

    #[test]
    fn hand_computed_bounds() {
        // Weights 4 1 1 1 1: the first block holds the vertex with three edges alone.
        let graph = testing::graph("a b  a c  a d  e e");
        let partition = Partition::new(&graph, 2);
        assert_eq!((partition.block(0), partition.block(1)), (0..1, 1..5));
        assert_eq!(partition.locate(4), (1, 3));
    }

    #[test]
    fn the_empty_graph_has_empty_blocks() {
        let partition = Partition::new(&testing::graph(""), 3);
        assert_eq!(partition.block(2), 0..0);
    }
}

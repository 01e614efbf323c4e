//! The part of the graph that one process works on.
//!
//! A process adds up the shares that it passes on in one array of sums. First comes a sum for each
//! vertex of its own block. Then comes one for each vertex of another process that its edges lead
//! to, its *outer* vertices. So pushing is the loop of one process, and the sums that have to
//! travel stand together, sorted by owner.

use std::ops::Range;

use crate::partition::Partition;

/// A block of vertices with the edges that leave it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    partition: Partition,
    block: Range<u32>,
    /// The edges of the block's vertex `v` are `targets[offsets[v]..offsets[v + 1]]`.
    offsets: Vec<usize>,
    /// By edge: where its target has its sum.
    targets: Vec<u32>,
    /// The outer vertices, in ascending order and so grouped by owner.
    outer: Vec<Place>,
    /// By process: which of the outer vertices it owns.
    owned: Vec<Range<usize>>,
}

/// Where a vertex of another process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its owner.
    pub(crate) process: u32,
    /// Its place in the owner's block.
    pub(crate) index: u32,
    /// Its place among those outer vertices that have this owner.
    pub(crate) position: u32,
}

impl Part {
    /// The part of `process`, whose vertices have `degrees` edges each, which lead to `targets`.
    pub(crate) fn new(
        partition: Partition,
        process: usize,
        degrees: impl Iterator<Item = u32>,
        mut targets: Vec<u32>,
    ) -> Self {
        let block = partition.block(process);
        let mut offsets = vec![0];
        for degree in degrees {
            offsets.push(offsets[offsets.len() - 1] + degree as usize);
        }
        assert_eq!((offsets.len(), offsets[offsets.len() - 1]), (block.len() + 1, targets.len()));

        let mut outer: Vec<u32> = targets.iter().copied().filter(|v| !block.contains(v)).collect();
        outer.sort_unstable();
        outer.dedup();
        for target in &mut targets {
            // Both kinds together are vertices of one graph, so their number fits.
            *target = match outer.binary_search(target) {
                Ok(place) => (block.len() + place) as u32,
                Err(_) => *target - block.start,
            };
        }
        let owned = (0..partition.bounds().len() - 1).map(|process| {
            let Range { start, end } = partition.block(process);
            outer.partition_point(|&v| v < start)..outer.partition_point(|&v| v < end)
        });
        let owned: Vec<_> = owned.collect();
        let outer = outer.into_iter().enumerate().map(|(at, vertex)| {
            let (process, index) = partition.locate(vertex);
            let position = (at - owned[process].start) as u32;
            Place { process: process as u32, index: index as u32, position }
        });
        let outer = outer.collect();
        Self { partition, block, offsets, targets, outer, owned }
    }

    /// The vertices of the whole graph.
    pub(crate) fn vertices(&self) -> u32 {
        self.partition.vertices()
    }

    /// The vertices that `process` owns.
    pub(crate) fn block_of(&self, process: usize) -> Range<u32> {
        self.partition.block(process)
    }

    /// The vertices of this part.
    pub(crate) fn block(&self) -> Range<u32> {
        self.block.clone()
    }

    /// For each vertex of the block, where its targets have their sums.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.offsets.windows(2).map(|pair| &self.targets[pair[0]..pair[1]])
    }

    /// The outer vertices, in the order of their sums.
    pub(crate) fn outer(&self) -> &[Place] {
        &self.outer
    }

    /// Those outer vertices that `process` owns.
    pub(crate) fn outer_of(&self, process: usize) -> &[Place] {
        &self.outer[self.owned[process].clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use crate::testing;

    fn part(graph: &Graph, processes: usize, process: usize) -> Part {
        let partition = Partition::new(graph, processes);
        let block = partition.block(process);
        let degrees = graph.rows(block.clone()).map(|row| row.len() as u32);
        let targets = graph.rows(block).flatten().copied().collect();
        Part::new(partition, process, degrees, targets)
    }

    #[test]
    fn alone_a_process_has_the_graph() {
        let graph = testing::scrambled(100, 400);
        let part = part(&graph, 1, 0);
        assert!(part.outer().is_empty());
        assert!(part.rows().eq(graph.rows(0..100)));
    }

    #[test]
    fn every_edge_leads_to_its_target() {
        let graph = testing::scrambled(100, 400);
        for processes in [2, 3, 7, 130] {
            for process in 0..processes {
                let part = part(&graph, processes, process);
                let own = part.block().len();
                let global = |&target: &u32| match (target as usize).checked_sub(own) {
                    None => part.block().start + target,
                    Some(at) => {
                        let place = part.outer()[at];
                        part.block_of(place.process as usize).start + place.index
                    }
                };
                for (vertex, row) in part.block().zip(part.rows()) {
                    assert!(row.iter().map(global).eq(graph.targets(vertex).iter().copied()));
                }
            }
        }
    }

    #[test]
    fn outer_vertices_are_grouped_by_owner() {
        let graph = testing::scrambled(100, 400);
        let part = part(&graph, 4, 1);
        let groups: Vec<_> = (0..4).map(|process| part.outer_of(process)).collect();
        assert_eq!(groups.concat(), part.outer());
        assert!(groups[1].is_empty());
        for (process, group) in groups.into_iter().enumerate() {
            for (position, place) in group.iter().enumerate() {
                assert_eq!((place.process, place.position), (process as u32, position as u32));
            }
            assert!(group.is_sorted_by(|a, b| a.index < b.index));
        }
    }
}

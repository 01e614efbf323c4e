//! Directed graphs in compressed sparse rows, with a name for each vertex.

use std::ops::Range;

use anyhow::Result;

use crate::names::Names;

/// A directed graph without duplicate edges and without self loops.
///
/// Vertices are numbered from 0 in the order in which the builder met them; the targets of a
/// vertex are sorted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    names: Vec<Box<str>>,
    /// The edges of vertex `v` are `targets[offsets[v]..offsets[v + 1]]`.
    offsets: Vec<usize>,
    targets: Vec<u32>,
}

impl Graph {
    pub(crate) fn vertices(&self) -> u32 {
        // `Names` hands out no more ids than fit.
        self.names.len() as u32
    }

    pub(crate) fn edges(&self) -> usize {
        self.targets.len()
    }

    pub(crate) fn name(&self, vertex: u32) -> &str {
        &self.names[vertex as usize]
    }

    /// The vertices that `vertex` points to, in ascending order.
    pub(crate) fn targets(&self, vertex: u32) -> &[u32] {
        let vertex = vertex as usize;
        &self.targets[self.offsets[vertex]..self.offsets[vertex + 1]]
    }

    /// For each vertex of a block, the vertices that it points to.
    pub(crate) fn rows(&self, block: Range<u32>) -> impl Iterator<Item = &[u32]> {
        let offsets = &self.offsets[block.start as usize..=block.end as usize];
        offsets.windows(2).map(|pair| &self.targets[pair[0]..pair[1]])
    }

    /// The number of edges that leave vertices below `vertex`; `vertex` may equal `vertices()`.
    pub(crate) fn edges_before(&self, vertex: u32) -> usize {
        self.offsets[vertex as usize]
    }

    /// The number of dangling vertices: those without an edge that leaves them.
    pub(crate) fn dangling(&self) -> u32 {
        self.offsets.windows(2).filter(|pair| pair[0] == pair[1]).count() as u32
    }

    /// The part of the graph that can be reached from the vertices whose names match a pattern.
    ///
    /// A pattern is a name in which one `*` stands for any text. Vertices keep their order.
    pub(crate) fn reachable(&self, patterns: &[String]) -> Self {
        let mut reached = vec![false; self.names.len()];
        let mut pending = Vec::new();
        for vertex in 0..self.vertices() {
            if patterns.iter().any(|pattern| matches(pattern, self.name(vertex))) {
                reached[vertex as usize] = true;
                pending.push(vertex);
            }
        }
        while let Some(vertex) = pending.pop() {
            for &target in self.targets(vertex) {
                if !std::mem::replace(&mut reached[target as usize], true) {
                    pending.push(target);
                }
            }
        }
        self.restricted_to(&reached)
    }

    /// The vertices that are marked in `kept`, and the edges between them.
    fn restricted_to(&self, kept: &[bool]) -> Self {
        let mut new_ids = Vec::with_capacity(kept.len());
        let mut count = 0;
        for &keep in kept {
            new_ids.push(count);
            count += u32::from(keep);
        }
        let mut graph = Self { names: Vec::new(), offsets: vec![0], targets: Vec::new() };
        for vertex in (0..self.vertices()).filter(|&vertex| kept[vertex as usize]) {
            graph.names.push(self.names[vertex as usize].clone());
            let targets = self.targets(vertex).iter().map(|&target| target as usize);
            graph.targets.extend(targets.filter(|&t| kept[t]).map(|t| new_ids[t]));
            graph.offsets.push(graph.targets.len());
        }
        graph
    }
}

/// How many edges a graph was given that it does not keep.
///
/// PageRank is defined here over simple graphs: that a package names a dependency twice does not
/// make it twice as important, and nobody recommends himself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) duplicates: usize,
    pub(crate) self_loops: usize,
}

/// Collects names and edges.
#[derive(Default)]
pub(crate) struct Builder {
    names: Names,
    edges: Vec<(u32, u32)>,
}

impl Builder {
    /// The id of the vertex called `name`, which is new unless it was met before.
    pub(crate) fn vertex(&mut self, name: &str) -> Result<u32> {
        self.names.id(name)
    }

    /// Adds an edge between two ids that `vertex` returned.
    pub(crate) fn edge(&mut self, source: u32, target: u32) {
        self.edges.push((source, target));
    }

    pub(crate) fn build(self) -> (Graph, Dropped) {
        let Self { names, mut edges } = self;
        let names = names.into_list();
        let given = edges.len();
        edges.retain(|&(source, target)| source != target);
        let self_loops = given - edges.len();
        edges.sort_unstable();
        edges.dedup();
        let duplicates = given - self_loops - edges.len();

        let mut offsets = vec![0; names.len() + 1];
        for &(source, _) in &edges {
            offsets[source as usize + 1] += 1;
        }
        for vertex in 0..names.len() {
            offsets[vertex + 1] += offsets[vertex];
        }
        let targets = edges.into_iter().map(|(_, target)| target).collect();
        (Graph { names, offsets, targets }, Dropped { duplicates, self_loops })
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => name
            .strip_prefix(start)
            .is_some_and(|rest| rest.len() >= end.len() && rest.ends_with(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    #[test]
    fn rows_are_sorted_and_simple() {
        let mut builder = Builder::default();
        for (source, target) in [("a", "c"), ("b", "b"), ("a", "b"), ("c", "a"), ("a", "c")] {
            let source = builder.vertex(source).unwrap();
            let target = builder.vertex(target).unwrap();
            builder.edge(source, target);
        }
        let (graph, dropped) = builder.build();
        assert_eq!(dropped, Dropped { duplicates: 1, self_loops: 1 });
        assert_eq!((graph.vertices(), graph.edges(), graph.dangling()), (3, 3, 1));
        let names: Vec<&str> = (0..3).map(|vertex| graph.name(vertex)).collect();
        assert_eq!(names, ["a", "c", "b"], "in order of first appearance");
        assert_eq!(graph.targets(0), [1, 2]);
        assert_eq!(graph.targets(1), [0]);
        assert!(graph.targets(2).is_empty());
        assert!(graph.rows(1..3).eq([&[0][..], &[]]));
        assert_eq!(
            [graph.edges_before(0), graph.edges_before(1), graph.edges_before(3)],
            [0, 2, 3]
        );
    }

    #[test]
    fn the_empty_graph() {
        let (graph, dropped) = Builder::default().build();
        assert_eq!((graph.vertices(), graph.edges(), graph.dangling()), (0, 0, 0));
        assert_eq!(dropped, Dropped::default());
    }

    #[test]
    fn vertices_without_edges_count() {
        let mut builder = Builder::default();
        builder.vertex("alone").unwrap();
        let (graph, _) = builder.build();
        assert_eq!((graph.vertices(), graph.dangling()), (1, 1));
    }

    #[test]
    fn reachable_keeps_all_vertices_that_the_roots_need() {
        let whole = graph("a b  b c  d c  e a  c f  f b");
        let part = whole.reachable(&["b".to_owned(), "nobody".to_owned()]);
        let names: Vec<&str> = (0..part.vertices()).map(|vertex| part.name(vertex)).collect();
        assert_eq!(names, ["b", "c", "f"]);
        assert_eq!(
            (part.targets(0), part.targets(1), part.targets(2)),
            (&[1][..], &[2][..], &[0][..])
        );
        assert_eq!(whole.reachable(&["*".to_owned()]), whole);
        assert_eq!(whole.reachable(&[]).vertices(), 0);
    }

    #[test]
    fn patterns() {
        let table = [
            ("python3", "python3", true),
            ("python3", "python3-dev", false),
            ("python3*", "python3-dev", true),
            ("*-dev", "python3-dev", true),
            ("task-*-desktop", "task-gnome-desktop", true),
            ("task-*-desktop", "task-desktop", false),
            ("*", "", true),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}

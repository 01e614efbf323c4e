//! Graphs for tests.

use crate::graph::{Builder, Graph};

/// A graph from names in pairs: `"a b  b c"` has the edges a-b and b-c.
pub(crate) fn graph(edges: &str) -> Graph {
    let mut builder = Builder::default();
    let names: Vec<&str> = edges.split_whitespace().collect();
    for pair in names.chunks(2) {
        let source = builder.vertex(pair[0]).unwrap();
        let target = builder.vertex(pair[1]).unwrap();
        builder.edge(source, target);
    }
    builder.build().0
}

/// A graph that looks random, but is the same in every run; some vertices dangle, some stand alone.
pub(crate) fn scrambled(vertices: u32, edges: u32) -> Graph {
    let mut builder = Builder::default();
    for vertex in 0..vertices {
        builder.vertex(&vertex.to_string()).unwrap();
    }
    let mut numbers = Numbers(7);
    for _ in 0..edges {
        // The square concentrates edges on few targets, as in real graphs.
        let source = numbers.below(vertices);
        let target = numbers.below(vertices) as u64;
        builder.edge(source, (target * target / u64::from(vertices)) as u32);
    }
    builder.build().0
}

/// The sequence of a 64-bit linear congruential generator (Knuth's MMIX constants).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// The next number in `0..limit`.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * u64::from(limit)) >> 32) as u32
    }
}

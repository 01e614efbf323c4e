//! Distributed PageRank of a real graph: which Debian packages does everything else rest on?
#![forbid(unsafe_code)]
#![cfg_attr(not(test), expect(dead_code, reason = "the program that uses these comes next"))]

mod edges;
mod fixed;
mod graph;
mod names;
mod partition;
mod reference;
#[cfg(test)]
mod testing;

fn main() {}

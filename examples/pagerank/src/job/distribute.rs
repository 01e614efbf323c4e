//! Handing out the graph: process 0 has read it, the others get their parts with one put each.
//!
//! A part travels as words of 32 bits: the bounds of all blocks, the degrees of the block's
//! vertices, the targets of their edges. A message says beforehand how many there are.

use anyhow::Result;
use ayre::{PostOptions, RegionOptions, Rights};

use super::part::Part;
use super::process::{Process, Tag};
use super::words;
use crate::graph::Graph;
use crate::partition::Partition;

/// The name of the region that takes a part.
const PART: u64 = 0;

/// In process 0: gives every process its part; returns the own one.
pub(crate) fn hand_out(process: &mut Process, graph: &Graph) -> Result<Part> {
    let partition = Partition::new(graph, process.count());
    for other in process.others() {
        let block = partition.block(other);
        let edges = graph.edges_before(block.end) - graph.edges_before(block.start);
        let mut sizes = (block.len() as u64).to_le_bytes().to_vec();
        sizes.extend((edges as u64).to_le_bytes());
        let peer = process.peer(other);
        process.port.send_wait(peer, 0, &sizes)?;
    }
    for other in process.others() {
        let mut bytes = Vec::new();
        words::extend_u32(&mut bytes, partition.bounds().iter().copied());
        let (degrees, targets) = rows(graph, &partition, other);
        words::extend_u32(&mut bytes, degrees);
        words::extend_u32(&mut bytes, targets);
        let peer = process.peer(other);
        let region = process.port.accept_region(peer, PART)?;
        let options = PostOptions::new().completer().tag(Tag::Setup as u32);
        process.post(peer, |port| port.put(&region, 0, &bytes, options))?;
    }
    process.barrier()?;
    let (degrees, targets) = rows(graph, &partition, 0);
    let targets = targets.collect();
    Ok(Part::new(Partition::from_bounds(partition.bounds().to_vec()), 0, degrees, targets))
}

/// In the other processes: takes this process's part.
pub(crate) fn take(process: &mut Process) -> Result<Part> {
    let mut sizes = [0; 16];
    let leader = process.port.recv(&mut sizes, None)?.source;
    let sizes: Vec<usize> = words::u64s(&sizes).map(|size| size as usize).collect();
    let (rows, edges, blocks) = (sizes[0], sizes[1], process.count() + 1);
    let region = process.port.alloc(4 * (blocks + rows + edges), RegionOptions::new())?;
    process.port.share(leader, &region, 0..region.len(), Rights::WRITE | Rights::NOTIFY, PART)?;
    process.wait(Tag::Setup, 1)?;
    let mut bytes = vec![0; region.len()];
    region.read(0, &mut bytes);
    process.barrier()?;
    process.port.deregister(&region)?;

    let (bounds, rest) = bytes.split_at(4 * blocks);
    let (degrees, targets) = rest.split_at(4 * rows);
    let partition = Partition::from_bounds(words::u32s(bounds).collect());
    let targets = words::u32s(targets).collect();
    Ok(Part::new(partition, process.number(), words::u32s(degrees), targets))
}

fn rows<'a>(
    graph: &'a Graph,
    partition: &Partition,
    process: usize,
) -> (impl Iterator<Item = u32> + use<'a>, impl Iterator<Item = u32> + use<'a>) {
    let block = partition.block(process);
    let degrees = graph.rows(block.clone()).map(|row| row.len() as u32);
    (degrees, graph.rows(block).flatten().copied())
}

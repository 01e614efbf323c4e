//! Bringing all ranks to process 0.

use anyhow::Result;
use ayre::{PostOptions, Region, RegionOptions, RemoteRegion, Rights};

use super::part::Part;
use super::process::{Process, Tag};
use super::words;

/// The name of the region that takes a process's ranks.
const RANKS: u64 = 4;

/// This process's end.
pub(crate) enum Gather {
    /// Process 0 has a word for every vertex and lets each process write those of its block.
    Lead(Region),
    Follow(RemoteRegion),
}

impl Gather {
    /// All processes take part.
    pub(crate) fn new(process: &mut Process, part: &Part) -> Result<Self> {
        if process.number() > 0 {
            let leader = process.peer(0);
            return Ok(Self::Follow(process.port.accept_region(leader, RANKS)?));
        }
        let len = 8 * part.vertices() as usize;
        let region = process.port.alloc(len.max(1), RegionOptions::new())?;
        for other in process.others() {
            let (peer, block) = (process.peer(other), part.block_of(other));
            let place = 8 * block.start as usize..8 * block.end as usize;
            process.port.share(peer, &region, place, Rights::WRITE | Rights::NOTIFY, RANKS)?;
        }
        Ok(Self::Lead(region))
    }

    /// Returns all ranks in process 0, nothing in the others. All processes take part.
    pub(crate) fn run(&self, process: &mut Process, ranks: &[u64]) -> Result<Vec<u64>> {
        let mut bytes = Vec::new();
        words::set_u64(&mut bytes, ranks);
        let mut all = Vec::new();
        match self {
            Self::Lead(region) => {
                region.write(0, &bytes);
                process.wait(Tag::Gathered, process.count() - 1)?;
                bytes.resize(region.len() / 8 * 8, 0);
                region.read(0, &mut bytes);
                all = words::u64s(&bytes).collect();
            }
            Self::Follow(region) => {
                let options = PostOptions::new().completer().tag(Tag::Gathered as u32);
                process.post(region.peer(), |port| port.put(region, 0, &bytes, options))?;
            }
        }
        // From here on the region may be written again.
        process.barrier()?;
        Ok(all)
    }
}

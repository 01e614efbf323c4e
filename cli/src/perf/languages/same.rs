//! The program that is measured in each language: two ranks, of which the first one prints the
//! median of the nanoseconds that an operation takes. `same.c` and `same.py` are the same program.

use std::time::Instant;

use anyhow::{Context, Result};
use ayre::error::PostError;
use ayre::{PeerId, Port, PostOptions, RegionOptions, RemoteRegion, Rights};

use super::super::stats::median;

const ROUNDS: usize = 5;
const MIB: usize = 1 << 20;
const SMALL: usize = 5000;
const LARGE: usize = 50;
const BATCH: usize = 50_000;

/// The end of a pair of ranks.
struct Pair {
    port: Port,
    peer: PeerId,
    is_first: bool,
    remote: RemoteRegion,
    data: Vec<u8>,
}

/// Is one of the two ranks.
pub(in crate::perf) fn run() -> Result<()> {
    let mut port = Port::join()?;
    let rank = port.rank();
    let peer = port.peer(rank ^ 1).context("there are two ranks")?;
    let region = port.alloc(MIB, RegionOptions::new())?;
    port.share(peer, &region, 0..MIB, Rights::all(), 0)?;
    let remote = port.accept_region(peer, 0)?;
    let mut pair = Pair { port, peer, is_first: rank == 0, remote, data: vec![0; MIB] };
    pair.measure("there-and-back", Pair::there_and_back, SMALL)?;
    pair.measure("put", Pair::put_small, SMALL)?;
    pair.measure("fetch-add", Pair::fetch_add, SMALL)?;
    pair.measure("put-large", Pair::put_large, LARGE)?;
    pair.measure("message", Pair::one_way, BATCH)?;
    Ok(pair.port.leave()?)
}

impl Pair {
    fn measure(
        &mut self,
        name: &str,
        run: fn(&mut Self, usize) -> Result<()>,
        count: usize,
    ) -> Result<()> {
        run(self, count)?;
        let mut times = vec![];
        for _ in 0..ROUNDS {
            self.port.barrier()?;
            let begun = Instant::now();
            run(self, count)?;
            times.push(begun.elapsed().as_nanos() as f64 / count as f64);
        }
        match median(&times).filter(|_| self.is_first) {
            Some(time) => Ok(crate::print(&format!("{name} {time:.1}\n"))?),
            None => Ok(()),
        }
    }

    fn send(&mut self) -> Result<()> {
        Ok(self.port.send_wait(self.peer, 0, &self.data[..8])?)
    }

    fn receive(&mut self) -> Result<()> {
        self.port.recv(&mut [0; 8], None)?;
        Ok(())
    }

    fn put(&mut self, len: usize) -> Result<()> {
        loop {
            match self.port.put(&self.remote, 0, &self.data[..len], PostOptions::new()) {
                Err(PostError::Busy(_)) => self.port.progress(),
                posted => return Ok(posted.map(drop)?),
            }
        }
    }

    fn there_and_back(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            if self.is_first {
                self.send()?;
                self.receive()?;
            } else {
                self.receive()?;
                self.send()?;
            }
        }
        Ok(())
    }

    fn put_small(&mut self, count: usize) -> Result<()> {
        for _ in 0..self.own(count) {
            self.put(8)?;
        }
        Ok(self.port.flush(self.peer)?)
    }

    fn fetch_add(&mut self, count: usize) -> Result<()> {
        for _ in 0..self.own(count) {
            self.port.fetch_add(&self.remote, 0, 1)?;
        }
        Ok(())
    }

    fn put_large(&mut self, count: usize) -> Result<()> {
        for _ in 0..self.own(count) {
            self.put(MIB)?;
            self.port.flush(self.peer)?;
        }
        Ok(())
    }

    fn one_way(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            if self.is_first {
                self.send()?;
            } else {
                self.receive()?;
            }
        }
        Ok(())
    }

    /// The operations of this rank, where only the first one has some.
    fn own(&self, count: usize) -> usize {
        if self.is_first { count } else { 0 }
    }
}

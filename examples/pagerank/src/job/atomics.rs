//! Variant `atomics`: a remote atomic addition into the owner's memory for each amount.

use anyhow::Result;
use ayre::memory::{Atomic, AtomicOp, Width};
use ayre::{PostOptions, Region, RegionOptions, RemoteRegion, Rights};

use super::carrier::{Carrier, Sums};
use super::exchange::Exchange;
use super::part::{Part, Place};
use super::process::Process;
use super::words;

/// The name of the regions of sums.
const SUMS: u64 = 2;

/// A word for each vertex of the block in rounds with even numbers, then as many for the others.
pub(crate) struct Atomics {
    exchange: Exchange,
    sums: Region,
    /// The others' sums, by process.
    remote: Vec<Option<RemoteRegion>>,
    /// Scratch.
    bytes: Vec<u8>,
}

impl Atomics {
    /// All processes take part.
    pub(crate) fn new(process: &mut Process, part: &Part) -> Result<Self> {
        let exchange = Exchange::new(process, part, false)?;
        // A process that is alone receives nothing.
        let len = if process.count() == 1 { 0 } else { 2 * 8 * part.block().len() };
        let sums = process.port.alloc(len.max(1), RegionOptions::new())?;
        process.port.share_all(&sums, 0..len, Rights::ATOMIC, SUMS)?;
        let mut remote: Vec<_> = (0..process.count()).map(|_| None).collect();
        for other in process.others() {
            let peer = process.peer(other);
            remote[other] = Some(process.port.accept_region(peer, SUMS)?);
        }
        Ok(Self { exchange, sums, remote, bytes: vec![0; len / 2] })
    }
}

impl Carrier for Atomics {
    #[inline]
    fn carry(&mut self, process: &mut Process, to: Place, amount: u64) -> Result<()> {
        let region = self.remote[to.process as usize].as_ref().expect("it is another process");
        let first = region.len() / 2 * self.exchange.parity() as u64;
        let offset = first + 8 * u64::from(to.index);
        let add = Atomic { width: Width::W64, op: AtomicOp::Add, operand: amount, compare: 0 };
        process.post(region.peer(), |port| port.atomic(region, offset, add, PostOptions::new()))?;
        Ok(())
    }

    /// A message comes after its sender's atomics, so they are all here.
    fn exchange(&mut self, process: &mut Process, own: Sums) -> Result<Sums> {
        self.exchange.run(process, own)
    }

    fn collect(&mut self, received: &mut [u64]) {
        let first = self.bytes.len() * self.exchange.parity();
        self.sums.read(first, &mut self.bytes);
        for (received, sum) in received.iter_mut().zip(words::u64s(&self.bytes)) {
            *received += sum;
        }
        self.bytes.fill(0);
        self.sums.write(first, &self.bytes);
        self.exchange.advance();
    }

    fn close(self, process: &mut Process) -> Result<()> {
        process.port.deregister(&self.sums)?;
        self.exchange.close(process)
    }
}

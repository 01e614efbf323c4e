//! Variant `queues`: amounts travel in records of the owner's remote queue, many in each.
//!
//! ```text
//! record:  round's parity (1 byte), then for each amount: vertex's place (4), amount (8)
//! end:     round's parity + 2 (1 byte), the sender's sums (8 each)
//! ```
//!
//! A process ends its round with an end record in every queue. Since the records of one producer
//! are taken in order, a round is over once an end record of each has been taken.
//!
//! A process takes records whenever it waits: for room in another's queue as well as for the end of
//! the round. So a full queue is being emptied, and nobody waits in a circle.

use std::thread;

use anyhow::{Context, Result, ensure};
use ayre::{PostError, Queue, RemoteQueue};

use super::carrier::{Carrier, Sums};
use super::part::{Part, Place};
use super::process::Process;
use super::words;

/// The name of the queues.
const QUEUE: u64 = 3;

/// Bytes that each producer can be ahead.
const CAPACITY: usize = 1 << 16;

/// Bytes of an amount with its place.
const ENTRY: usize = 12;

/// Bytes of a record with as many amounts as a record may have.
const RECORD: usize = 1 + 300 * ENTRY;

/// Added to the parity in an end record.
const END: u8 = 2;

pub(crate) struct Queues {
    queue: Queue,
    /// By process; none for this one.
    outgoing: Vec<Option<Outgoing>>,
    /// The round's parity.
    parity: usize,
    /// The received data, by parity: a process may be a round ahead.
    incoming: [Incoming; 2],
    /// The record that was taken last.
    record: Vec<u8>,
}

struct Outgoing {
    queue: RemoteQueue,
    record: Vec<u8>,
}

/// The data that the others have sent in one round.
struct Incoming {
    /// By vertex of the block.
    amounts: Vec<u64>,
    /// Of those that have ended the round; `ended` counts them.
    sums: Sums,
    ended: usize,
}

impl Queues {
    /// All processes take part.
    pub(crate) fn new(process: &mut Process, part: &Part) -> Result<Self> {
        let mut queue = process.port.create_queue(CAPACITY)?;
        for other in process.others() {
            let peer = process.peer(other);
            process.port.share_queue(peer, &mut queue, QUEUE)?;
        }
        let mut outgoing: Vec<_> = (0..process.count()).map(|_| None).collect();
        for other in process.others() {
            let queue = process.port.accept_queue(process.peer(other), QUEUE)?;
            outgoing[other] = Some(Outgoing { queue, record: Vec::with_capacity(RECORD) });
        }
        // A process that is alone receives nothing.
        let amounts = if process.count() == 1 { 0 } else { part.block().len() };
        let incoming = [(); 2].map(|()| Incoming {
            amounts: vec![0; amounts],
            sums: Sums::default(),
            ended: 0,
        });
        Ok(Self { queue, outgoing, parity: 0, incoming, record: vec![0; RECORD] })
    }

    /// Enqueues what has been prepared for a process. Takes a record for each one sent, so that the
    /// others' queues stay short, and more while there is no room.
    #[inline(never)]
    fn enqueue(&mut self, process: &mut Process, to: usize) -> Result<()> {
        self.take(process)?;
        loop {
            let Some(Outgoing { queue, record }) = &mut self.outgoing[to] else { return Ok(()) };
            match process.port.enqueue(queue, record) {
                Ok(()) => {
                    record.clear();
                    return Ok(());
                }
                Err(PostError::Fault(fault)) => {
                    return Err(fault).with_context(|| format!("process {to}"));
                }
                Err(PostError::Busy(_)) => {
                    if !self.take(process)? {
                        process.port.progress();
                        thread::yield_now();
                    }
                }
            }
        }
    }

    /// Takes a record, if there is one.
    fn take(&mut self, process: &mut Process) -> Result<bool> {
        match process.port.dequeue(&mut self.queue, &mut self.record)? {
            Some(record) => self.read(record.len).map(|()| true),
            None => Ok(false),
        }
    }

    /// Reads the record that was taken last.
    fn read(&mut self, len: usize) -> Result<()> {
        let (&kind, rest) = self.record[..len].split_first().context("an empty record")?;
        let incoming = &mut self.incoming[usize::from(kind % 2)];
        if kind >= END {
            let sums: Vec<u64> = words::u64s(rest).collect();
            let [pushed, change] = sums[..] else { anyhow::bail!("an end record of {len} bytes") };
            incoming.sums.pushed += pushed;
            incoming.sums.change += change;
            incoming.ended += 1;
            return Ok(());
        }
        let (entries, excess) = rest.as_chunks::<ENTRY>();
        ensure!(excess.is_empty(), "a record of {len} bytes");
        for entry in entries {
            let (place, amount) = decode(entry);
            *incoming.amounts.get_mut(place).context("a place outside the block")? += amount;
        }
        Ok(())
    }
}

impl Carrier for Queues {
    #[inline]
    fn carry(&mut self, process: &mut Process, to: Place, amount: u64) -> Result<()> {
        let owner = to.process as usize;
        let Outgoing { record, .. } = self.outgoing[owner].as_mut().expect("another process");
        if record.is_empty() {
            record.push(self.parity as u8);
        }
        record.extend_from_slice(&to.index.to_le_bytes());
        record.extend_from_slice(&amount.to_le_bytes());
        if record.len() == RECORD { self.enqueue(process, owner) } else { Ok(()) }
    }

    fn exchange(&mut self, process: &mut Process, own: Sums) -> Result<Sums> {
        for other in process.others() {
            if self.outgoing[other].as_ref().is_some_and(|o| !o.record.is_empty()) {
                self.enqueue(process, other)?;
            }
            let Some(Outgoing { record, .. }) = &mut self.outgoing[other] else { continue };
            record.push(END + self.parity as u8);
            record.extend(own.pushed.to_le_bytes());
            record.extend(own.change.to_le_bytes());
            self.enqueue(process, other)?;
        }
        while self.incoming[self.parity].ended < process.count() - 1 {
            let port = &mut process.port;
            let record = port.dequeue_wait(&mut self.queue, &mut self.record, None)?;
            self.read(record.len)?;
        }
        let Sums { pushed, change } = self.incoming[self.parity].sums;
        Ok(Sums { pushed: own.pushed + pushed, change: own.change + change })
    }

    fn collect(&mut self, received: &mut [u64]) {
        let incoming = &mut self.incoming[self.parity];
        for (received, amount) in received.iter_mut().zip(&mut incoming.amounts) {
            *received += std::mem::take(amount);
        }
        (incoming.sums, incoming.ended) = (Sums::default(), 0);
        self.parity = 1 - self.parity;
    }

    fn close(mut self, process: &mut Process) -> Result<()> {
        for other in process.others() {
            let peer = process.peer(other);
            process.port.remove_producer(&mut self.queue, peer);
        }
        Ok(())
    }
}

/// An amount and its place.
fn decode(entry: &[u8; ENTRY]) -> (usize, u64) {
    let [p0, p1, p2, p3, amount @ ..] = *entry;
    (u32::from_le_bytes([p0, p1, p2, p3]) as usize, u64::from_le_bytes(amount))
}

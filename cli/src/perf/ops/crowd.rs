//! Cases of any number of ranks, also of more ranks than cores: a barrier, a token that goes round,
//! words from all to all, and many producers with one consumer. Waits are the library's own: awake
//! for a time that suits the number of ranks, then asleep.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use ayre::{PeerId, Queue, RemoteQueue};

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::pair::{Member, QUEUE_BYTES};
use super::{Label, labelled, poll_until, posted};

/// All ranks meet.
pub(crate) struct Barrier {
    pub(crate) label: Label,
    pub(crate) member: Member,
}

impl Case for Barrier {
    labelled!();

    fn run(&mut self, _side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let mut port = self.member.borrow_mut();
        let start = Instant::now();
        for _ in 0..iterations {
            port.barrier()?;
        }
        Ok(start.elapsed())
    }
}

/// A message goes round, from rank to rank; an operation is one hop.
pub(crate) struct Ring {
    pub(crate) label: Label,
    pub(crate) member: Member,
    pub(crate) ranks: usize,
}

impl Case for Ring {
    labelled!();

    fn operations(&self) -> u64 {
        self.ranks as u64
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let mut port = self.member.borrow_mut();
        let next = PeerId(((side.rank() + 1) % self.ranks) as u16);
        let mut sink = [0; 8];
        let start = Instant::now();
        for _ in 0..iterations {
            if side.measures() {
                port.send_wait(next, 0, &[0xa5; 8])?;
            }
            port.recv(&mut sink, None)?;
            if !side.measures() {
                port.send_wait(next, 0, &[0xa5; 8])?;
            }
        }
        Ok(start.elapsed())
    }
}

/// Each rank sends a message to each other one, then receives as many; an operation is a message.
pub(crate) struct AllToAll {
    pub(crate) label: Label,
    pub(crate) member: Member,
    pub(crate) ranks: usize,
}

impl Case for AllToAll {
    labelled!();

    fn operations(&self) -> u64 {
        (self.ranks * (self.ranks - 1)) as u64
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let mut port = self.member.borrow_mut();
        let mut sink = [0; 8];
        let start = Instant::now();
        for _ in 0..iterations {
            // Beginning behind oneself, so that not all send to the same rank first.
            for distance in 1..self.ranks {
                let to = PeerId(((side.rank() + distance) % self.ranks) as u16);
                port.send_wait(to, 0, &[0xa5; 8])?;
            }
            for _ in 1..self.ranks {
                port.recv(&mut sink, None)?;
            }
        }
        Ok(start.elapsed())
    }
}

/// All ranks but the first enqueue as many records each to the first one.
pub(crate) struct FanIn {
    label: Label,
    member: Member,
    end: QueueEnd,
    source: Buffer,
    sink: Buffer,
    producers: u64,
}

enum QueueEnd {
    Consumer(Queue),
    Producer(RemoteQueue),
}

const QUEUE: u64 = 1;

impl FanIn {
    /// Collective.
    pub(crate) fn join(label: Label, member: &Member) -> Result<Self> {
        let mut port = member.borrow_mut();
        let (rank, ranks) = (port.rank(), port.size());
        let end = if rank == 0 {
            let mut queue = port.create_queue(QUEUE_BYTES)?;
            for producer in 1..ranks {
                port.share_queue(PeerId(producer as u16), &mut queue, QUEUE)?;
            }
            QueueEnd::Consumer(queue)
        } else {
            QueueEnd::Producer(port.accept_queue(PeerId(0), QUEUE)?)
        };
        let (source, sink) = (Buffer::default(), Buffer::default());
        Ok(Self { label, member: member.clone(), end, source, sink, producers: ranks as u64 - 1 })
    }
}

impl Case for FanIn {
    labelled!();

    fn operations(&self) -> u64 {
        self.producers
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        (self.source, self.sink) = (Buffer::new(size), Buffer::new(size));
        Ok(())
    }

    fn run(&mut self, _side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let port = &mut *self.member.borrow_mut();
        let start = Instant::now();
        match &mut self.end {
            QueueEnd::Consumer(queue) => {
                for _ in 0..iterations * self.producers {
                    poll_until(|| Ok(port.dequeue(queue, &mut self.sink)?.is_some()))?;
                    black_box(&mut *self.sink);
                }
            }
            QueueEnd::Producer(queue) => {
                for _ in 0..iterations {
                    poll_until(|| posted(port.enqueue(queue, black_box(&*self.source))))?;
                }
            }
        }
        Ok(start.elapsed())
    }
}

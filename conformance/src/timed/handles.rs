//! Handles of ports in simulated time.
use super::shared::Door;
use crate::port::{Grant, Queue, Region, RemoteQueue, RemoteRegion};
use ayre::memory::{Atomic, Fetched, Key};
use ayre::{Fault, PeerId, Rights};
use ayre_proto::lane::longest_of_queue;
use ayre_proto::node::target::Exposed;
use ayre_proto::units::Claim;
use ayre_proto::xlate::Cover;
use std::ops::Range;

/// Where none is needed.
pub(super) const NO_KEY: Key = Key { slot: 0, generation: 0 };

/// Memory of a node.
#[derive(Clone, Debug)]
pub struct TimedRegion {
    pub(super) door: Door,
    /// The number of the port, and which of this number.
    pub(super) port: (u16, u64),
    pub(super) number: u16,
    pub(super) len: usize,
}

impl TimedRegion {
    fn part(&self, offset: usize, len: usize) -> Range<u64> {
        assert!(offset + len <= self.len, "{len} bytes at {offset} of {}", self.len);
        offset as u64..(offset + len) as u64
    }
}

impl Region for TimedRegion {
    fn len(&self) -> usize {
        self.len
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn write(&self, offset: usize, from: &[u8]) {
        let (part, mut shared) = (self.part(offset, from.len()), self.door.shared());
        let program = shared.program_mut(self.port.0, self.port.1);
        program.region_mut(self.number, part).expect("a region").copy_from_slice(from);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        let (part, shared) = (self.part(offset, into.len()), self.door.shared());
        let program = shared.program(self.port.0, self.port.1);
        into.copy_from_slice(program.region(self.number, part).expect("a region"));
    }

    fn load(&self, offset: usize) -> u64 {
        let mut word = [0; 8];
        self.read(offset, &mut word);
        u64::from_le_bytes(word)
    }

    fn store(&self, offset: usize, value: u64) {
        self.write(offset, &value.to_le_bytes());
    }

    fn atomic(&self, offset: usize, atomic: &Atomic) -> Fetched {
        let (rights, len) = (Rights::ATOMIC, self.len as u64);
        let cover = Cover { holder: PeerId(0), rights, region: self.number, base: 0, len };
        let claim = Claim { key: NO_KEY, offset: offset as u64, len: atomic.width.bytes() };
        let word = cover.check(&claim, rights).expect("a word of the region");
        let mut shared = self.door.shared();
        shared.program_mut(self.port.0, self.port.1).atomic(word, atomic)
    }
}

/// Memory of a peer.
#[derive(Clone, Debug)]
pub struct TimedRemote {
    pub(super) peer: PeerId,
    /// The identity of the connection.
    pub(super) connection: u64,
    pub(super) key: Key,
    /// The handle's rights and bytes. Only the owner knows its place.
    pub(super) cover: Cover,
    /// Where the handle's range begins in that of the capability.
    pub(super) start: u64,
}

impl RemoteRegion for TimedRemote {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn len(&self) -> u64 {
        self.cover.len
    }

    fn rights(&self) -> Rights {
        self.cover.rights
    }

    fn key(&self) -> Key {
        self.key
    }

    // spec: CAP-4
    fn narrow(&self, part: Range<u64>, rights: Rights) -> Result<Self, Fault> {
        let len = part.end.checked_sub(part.start).ok_or(Fault::Bounds)?;
        self.cover.check(&Claim { key: self.key, offset: part.start, len }, rights)?;
        if !part.start.is_multiple_of(8) {
            return Err(Fault::Alignment);
        }
        let cover = Cover { rights, len, ..self.cover };
        Ok(Self { cover, start: self.start + part.start, ..self.clone() })
    }
}

/// A capability that a port has granted.
#[derive(Debug)]
pub struct TimedGrant {
    /// The identity of the port.
    pub(super) port: u64,
    pub(super) peer: PeerId,
    pub(super) key: Key,
}

impl Grant for TimedGrant {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn key(&self) -> Key {
        self.key
    }
}

/// A queue at its consumer.
#[derive(Debug)]
pub struct TimedQueue {
    /// The identity of the port.
    pub(super) port: u64,
    pub(super) lines: u32,
    pub(super) producers: Vec<Producer>,
    /// Where the next look begins.
    pub(super) turn: usize,
}

/// A producer of a queue.
#[derive(Debug)]
pub(super) struct Producer {
    pub(super) peer: PeerId,
    pub(super) connection: u64,
    /// The queue's number among those that the peer was offered.
    pub(super) number: usize,
    /// A record that was taken from the node, and was too long for the program's buffer.
    pub(super) record: Option<Vec<u8>>,
}

impl Queue for TimedQueue {
    fn record_max(&self) -> usize {
        longest_of_queue(self.lines)
    }

    fn producers(&self) -> impl Iterator<Item = PeerId> {
        self.producers.iter().map(|producer| producer.peer)
    }
}

/// A queue at a producer.
#[derive(Debug)]
pub struct TimedRemoteQueue {
    pub(super) peer: PeerId,
    pub(super) connection: u64,
    pub(super) number: usize,
    pub(super) lines: u32,
}

impl RemoteQueue for TimedRemoteQueue {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn record_max(&self) -> usize {
        longest_of_queue(self.lines)
    }
}

//! Handles of a port of another process: numbers that its driver has given out.
use super::HOLDS;
use super::port::{DrivenPort, Way, atomic, fetched};
use super::words::{Words, hex, kind};
use crate::port::{Grant, Lock, Queue, Region, RemoteQueue, RemoteRegion};
use ayre::memory::{Atomic, Fetched, Key, LockMode};
use ayre::{Fault, PeerId, PostError, Rights};
use std::ops::Range;

/// Memory of the driver's process.
#[derive(Clone, Debug)]
pub struct DrivenRegion {
    pub(super) way: Way,
    pub(super) number: usize,
    pub(super) len: usize,
}

impl Region for DrivenRegion {
    fn len(&self) -> usize {
        self.len
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.way.ask(&format!("write {} {offset} {}", self.number, hex(from))).done();
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        let words = self.way.ask(&format!("read {} {offset} {}", self.number, into.len()));
        into.copy_from_slice(&Words::of(&words.done()).bytes());
    }

    fn load(&self, offset: usize) -> u64 {
        let mut word = [0; 8];
        self.read(offset, &mut word);
        u64::from_le_bytes(word)
    }

    fn store(&self, offset: usize, value: u64) {
        self.write(offset, &value.to_le_bytes());
    }

    fn atomic(&self, offset: usize, what: &Atomic) -> Fetched {
        let call = format!("own {} {offset} {}", self.number, atomic(what));
        fetched(&self.way.ask(&call).done())
    }
}

/// Memory of a peer of the driver's port.
#[derive(Debug)]
pub struct DrivenRemote {
    pub(super) way: Way,
    pub(super) number: usize,
    pub(super) peer: PeerId,
    pub(super) len: u64,
    pub(super) rights: Rights,
    pub(super) key: Key,
}

impl DrivenRemote {
    pub(super) fn read(way: &Way, peer: PeerId, words: &str) -> Self {
        let mut words = Words::of(words);
        let (number, len) = (words.number(), words.number());
        let rights = Rights::from_bits_truncate(words.number());
        let key = Key { slot: words.number(), generation: words.number() };
        Self { way: way.clone(), number, peer, len, rights, key }
    }
}

impl RemoteRegion for DrivenRemote {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn rights(&self) -> Rights {
        self.rights
    }

    fn key(&self) -> Key {
        self.key
    }

    fn narrow(&self, part: Range<u64>, rights: Rights) -> Result<Self, Fault> {
        let Range { start, end } = part;
        let call = format!("narrow {} {start} {end} {}", self.number, rights.bits());
        Ok(Self::read(&self.way, self.peer, &self.way.ask(&call).ended()?))
    }
}

/// A capability that the driver's port has granted.
#[derive(Debug)]
pub struct DrivenGrant {
    pub(super) way: Way,
    pub(super) number: usize,
    pub(super) peer: PeerId,
    pub(super) key: Key,
}

impl Grant for DrivenGrant {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn key(&self) -> Key {
        self.key
    }
}

/// A queue, at its consumer or at a producer.
#[derive(Debug)]
pub struct DrivenQueue {
    pub(super) way: Way,
    pub(super) number: usize,
    pub(super) peer: PeerId,
    pub(super) record_max: usize,
}

impl DrivenQueue {
    pub(super) fn read(way: &Way, peer: PeerId, words: &str) -> Self {
        let mut words = Words::of(words);
        let (number, record_max) = (words.number(), words.number());
        Self { way: way.clone(), number, peer, record_max }
    }
}

impl Queue for DrivenQueue {
    fn record_max(&self) -> usize {
        self.record_max
    }

    fn producers(&self) -> impl Iterator<Item = PeerId> {
        let words = self.way.ask(&format!("producers {}", self.number)).done();
        Words::of(&words).numbers().into_iter().map(PeerId)
    }
}

impl RemoteQueue for DrivenQueue {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn record_max(&self) -> usize {
        self.record_max
    }
}

/// A lock, at one of its users.
#[derive(Debug)]
pub struct DrivenLock {
    pub(super) way: Way,
    pub(super) number: usize,
}

impl Lock<DrivenPort> for DrivenLock {
    fn held(&self) -> Option<LockMode> {
        let held = self.way.ask(&format!("held {}", self.number)).received();
        let words = held.expect("a look")?;
        Some(HOLDS[Words::of(&words).number::<usize>()])
    }

    fn try_lock(&mut self, _: &mut DrivenPort, hold: LockMode) -> Result<bool, PostError> {
        let call = format!("try {} {}", self.number, kind(hold));
        Ok(Words::of(&self.way.ask(&call).posted()?).flag())
    }

    fn lock(&mut self, _: &mut DrivenPort, hold: LockMode) -> Result<(), Fault> {
        self.way.ask(&format!("hold {} {}", self.number, kind(hold))).ended().map(drop)
    }

    fn unlock(&mut self, _: &mut DrivenPort) -> Result<(), PostError> {
        self.way.ask(&format!("unlock {}", self.number)).posted().map(drop)
    }
}

//! The program of a node: its memory, the local ends of its operations, and its news.
use super::depot::{Depot, Depots};
use crate::extoll::lock::Answer;
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::deposit::message::Posted;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::node::carrier::lanes::Offer;
use ayre_proto::node::effects;
use ayre_proto::node::initiator::Ended;
use ayre_proto::node::target::{Delivery, Exchange, Exposed};
use ayre_proto::notify::Notification;
use ayre_proto::units::{Extent, Key, PeerId};
use core::ops::Range;
use std::collections::{HashMap, VecDeque};
use thiserror::Error;

/// The local end of an operation.
#[derive(Clone, Debug)]
pub enum Local {
    /// Bytes of a put, as they were when it was posted.
    Bytes(Vec<u8>),
    /// Memory of a region, from an offset on.
    Region(u16, u64),
    /// A buffer of the program's, by its number.
    Buffer(u64),
}

/// News for a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An operation has ended.
    Ended(PeerId, Ended),
    /// A peer offers something.
    Offered(PeerId, Offer),
    /// A connection has ended.
    Gone(PeerId, Fault),
    /// The fence of a revocation has ended: nothing lands any more that uses the key. A fault says
    /// that there was no such key.
    Fenced(Key, Result<(), Fault>),
    /// A peer's lock unit answers.
    Lock(PeerId, Answer),
    /// A message has come into the mailbox, and interrupts.
    Interrupt,
}

/// Why a place of a region cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegionError {
    /// There is no such region.
    #[error("there is no region {0}")]
    Unknown(u16),
    /// The region is shorter.
    #[error("bytes {start} to {end} of a region of {len} B")]
    Bounds {
        /// The first byte.
        start: u64,
        /// Behind the last byte.
        end: u64,
        /// The region's length.
        len: u64,
    },
    /// There are as many regions as have numbers.
    #[error("a node has at most 65,535 regions")]
    Full,
}

/// A node's program, as its node sees it.
#[derive(Debug, Default)]
pub struct Program {
    regions: Vec<Vec<u8>>,
    buffers: HashMap<u64, Vec<u8>>,
    next_buffer: u64,
    pub(super) depots: Depots,
    /// News that the program has not taken.
    pub(super) events: VecDeque<Event>,
}

impl Program {
    /// Makes a region of these bytes, and returns its number.
    ///
    /// # Errors
    /// [`RegionError::Full`].
    pub fn add_region(&mut self, bytes: Vec<u8>) -> Result<u16, RegionError> {
        let number = u16::try_from(self.regions.len()).ok().filter(|number| *number < u16::MAX);
        let number = number.ok_or(RegionError::Full)?;
        self.regions.push(bytes);
        Ok(number)
    }

    /// Bytes of a region.
    ///
    /// # Errors
    /// [`RegionError`] where there are none.
    pub fn region(&self, number: u16, part: Range<u64>) -> Result<&[u8], RegionError> {
        let region = self.regions.get(usize::from(number));
        let region = region.ok_or(RegionError::Unknown(number))?;
        let Range { start, end } = part;
        let bounds = RegionError::Bounds { start, end, len: region.len() as u64 };
        region.get(start as usize..end as usize).ok_or(bounds)
    }

    /// Bytes of a region, for writing.
    ///
    /// # Errors
    /// [`RegionError`] where there are none.
    pub fn region_mut(&mut self, number: u16, part: Range<u64>) -> Result<&mut [u8], RegionError> {
        self.region(number, part.clone())?;
        Ok(&mut self.regions[usize::from(number)][part.start as usize..part.end as usize])
    }

    /// Adds a depot, and returns its number.
    pub fn add_depot(&mut self, depot: Depot) -> usize {
        self.depots.depots.push(depot);
        self.depots.depots.len() - 1
    }

    /// A depot, if there is one with this number.
    pub fn depot(&self, number: usize) -> Option<&Depot> {
        self.depots.depots.get(number)
    }

    /// A depot, for changes of its registers.
    pub fn depot_mut(&mut self, number: usize) -> Option<&mut Depot> {
        self.depots.depots.get_mut(number)
    }

    /// Makes a buffer of these bytes, for the data of a get, and returns its number.
    pub fn add_buffer(&mut self, bytes: Vec<u8>) -> u64 {
        self.next_buffer += 1;
        self.buffers.insert(self.next_buffer, bytes);
        self.next_buffer
    }

    /// Takes a buffer out, with its bytes.
    pub fn take_buffer(&mut self, number: u64) -> Option<Vec<u8>> {
        self.buffers.remove(&number)
    }

    /// The bytes that an extent names; translation has checked it.
    fn at(&self, extent: Extent) -> &[u8] {
        let end = extent.offset() + extent.len();
        self.region(extent.region(), extent.offset()..end).expect("a translated extent")
    }

    fn at_mut(&mut self, extent: Extent) -> &mut [u8] {
        let end = extent.offset() + extent.len();
        self.region_mut(extent.region(), extent.offset()..end).expect("a translated extent")
    }
}

impl Exposed for Program {
    fn write(&mut self, to: Extent, data: &[u8]) {
        self.at_mut(to).copy_from_slice(data);
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        into.copy_from_slice(self.at(from));
    }

    fn store(&mut self, to: Extent, value: u64) {
        self.at_mut(to).copy_from_slice(&value.to_le_bytes());
    }

    fn atomic(&mut self, at: Extent, atomic: &Atomic) -> Fetched {
        let place = self.at_mut(at);
        let len = place.len();
        let mut word = [0; 8];
        word[..len].copy_from_slice(place);
        let old = u64::from_le_bytes(word);
        if let Some(new) = atomic.apply(old) {
            place.copy_from_slice(&new.to_le_bytes()[..len]);
        }
        atomic.fetched(old)
    }

    fn carry_out(&mut self, posted: &Posted, at: Extent, exchange: &mut impl Exchange) -> Delivery {
        let mut data = vec![0; if posted.message.brings { posted.message.len.into() } else { 0 }];
        exchange.bring(&mut data);
        let Self { regions, depots, .. } = self;
        let region = regions.get_mut(usize::from(at.region()));
        let memory = region.and_then(|region| region.get_mut(at.offset() as usize..));
        let carried = depots.carry_out(posted, memory.unwrap_or_default(), &data);
        carried.map_or(Delivery::NoInlet, Delivery::Carried)
    }

    fn give(&self, into: &mut [u8]) {
        debug_assert!(into.is_empty(), "a node of a cluster posts no message that reads");
    }
}

impl effects::Program for Program {
    type Local = Local;
    type Reply = ();

    fn load(&self, local: &Local, offset: u64, into: &mut [u8]) {
        let from = match local {
            Local::Bytes(bytes) => &bytes[offset as usize..][..into.len()],
            Local::Region(number, base) => {
                let start = base + offset;
                self.region(*number, start..start + into.len() as u64).expect("a checked place")
            }
            Local::Buffer(_) => return,
        };
        into.copy_from_slice(from);
    }

    fn land(&mut self, local: &Local, offset: u64, data: &[u8]) {
        match local {
            Local::Bytes(_) => {}
            Local::Region(number, base) => {
                let start = base + offset;
                let place = self.region_mut(*number, start..start + data.len() as u64);
                place.expect("a checked place").copy_from_slice(data);
            }
            Local::Buffer(number) => {
                // A program that gave up has taken its buffer out.
                if let Some(buffer) = self.buffers.get_mut(number) {
                    buffer[offset as usize..][..data.len()].copy_from_slice(data);
                }
            }
        }
    }

    fn reply(&mut self, (): &mut (), _: u64, _: &[u8]) -> Option<(Status, Option<Notification>)> {
        Some((Status::Ok, None))
    }

    fn ended(&mut self, peer: PeerId, ended: &Ended) {
        self.events.push_back(Event::Ended(peer, *ended));
    }

    fn offered(&mut self, peer: PeerId, offer: Offer) {
        self.events.push_back(Event::Offered(peer, offer));
    }

    fn gone(&mut self, peer: PeerId, why: Fault) {
        self.events.push_back(Event::Gone(peer, why));
    }
}

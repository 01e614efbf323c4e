//! Frames on their way, and the links that they belong to.
use super::fence::Fence;
use super::units::Units;
use super::{Cluster, InterfaceTimes};
use crate::network::Network;
use crate::time::Time;
use ayre_proto::link::Repair;
use ayre_proto::link::end::{Agreement, Drive, End};
use ayre_proto::link::frame::{Channel, HEADER_BYTES, Header};
use ayre_proto::node::carrier::frames::{Frames, Memory};
use ayre_proto::node::carrier::lanes::Offer;
use ayre_proto::node::connection::Lines;
use ayre_proto::node::effects::{LaneName, Wire, WordName};
use ayre_proto::node::lane::Entry;
use ayre_proto::node::linked::Linked;
use ayre_proto::units::PeerId;
use core::cmp::Reverse;
use core::num::NonZeroU32;
use std::collections::BinaryHeap;

/// CRC-32C, as frames carry it.
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// Bytes of the shortest limit of frames that a link may have.
pub(super) const LEAST: usize = 512;
/// Bytes of the longest frames: those of data in pages, with their headers.
const MOST: usize = 4096 + 512;
/// Frames that a link has buffers for, in each channel.
const BUFFERS: u32 = 32;

/// Links are driven as between hosts of one rack, but hardware acknowledges within a microsecond.
/// That is our choice: with the 20 us of software a window of 8 frames would leave the link idle.
const DRIVE: Drive = Drive { max_ack_delay: 1_000, ..Drive::RACK };

/// The lanes between two nodes.
pub(super) const LINES: Lines = Lines { messages: 64, responses: 64, commands: 64, ring: 0 };

/// The longest frame that fits a buffer.
pub(super) fn longest(buffer: u32) -> Option<usize> {
    let longest = (buffer as usize).min(MOST) & !7;
    (longest >= LEAST).then_some(longest)
}

/// Memory of frames, each made anew with this number of bytes.
#[derive(Debug)]
pub(super) struct Heap(usize);

impl Memory for Heap {
    type Buffer = Box<[u8]>;

    fn take(&mut self, _: bool) -> Box<[u8]> {
        vec![0; self.0].into()
    }

    fn give(&mut self, buffer: Box<[u8]>) {
        debug_assert!(buffer.len() == self.0, "it was taken here");
    }

    fn bytes(buffer: &Box<[u8]>) -> &[u8] {
        buffer
    }

    fn bytes_mut(buffer: &mut Box<[u8]>) -> &mut [u8] {
        buffer
    }

    fn crc(bytes: &[u8]) -> u32 {
        CRC.checksum(bytes)
    }
}

/// A frame on its way.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) to: u32,
    pub(super) header: Header,
    pub(super) payload: Vec<u8>,
    /// Its bytes on the network.
    pub(super) bytes: u32,
}

/// A node's own record, word or offer on its way back to it, through its interface.
#[derive(Clone, Debug)]
pub(super) enum Looped {
    Record(LaneName, Entry),
    Word(WordName, u64),
    Offer(Offer),
}

/// Things on their way to a node.
#[derive(Clone, Debug)]
pub(super) enum Passing {
    /// A frame in the network.
    Frame(Sent),
    /// A frame in the receiver's stage.
    Landing(Sent),
    Looped(u32, Looped),
    Fence(Fence),
    /// An interrupt on its way to the program.
    Interrupt(u32),
}

/// Things on their way, by their places.
#[derive(Debug, Default)]
pub(super) struct Underway {
    places: Vec<Option<Passing>>,
    free: Vec<u32>,
    /// Those that have left the network, by when they arrive.
    arrivals: BinaryHeap<Reverse<(Time, u64, u32)>>,
    arrived: u64,
}

impl Underway {
    pub(super) fn add(&mut self, passing: Passing) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[place as usize] = Some(passing);
        place
    }

    /// A fence comes to its next stage at a time.
    pub(super) fn fence_at(&mut self, at: Time, fence: Fence) {
        let place = self.add(Passing::Fence(fence));
        self.arrives(at, place);
    }

    /// It arrives at a time: at the receiver's stage, or at the receiver. Of two with one time the
    /// first one noted arrives first.
    pub(super) fn arrives(&mut self, at: Time, place: u32) {
        self.arrived += 1;
        self.arrivals.push(Reverse((at, self.arrived, place)));
    }

    /// When the next one arrives.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.arrivals.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next one that has arrived at a time.
    pub(super) fn take(&mut self, now: Time) -> Option<Passing> {
        self.next_time().filter(|at| *at <= now)?;
        let Reverse((_, _, place)) = self.arrivals.pop()?;
        self.free.push(place);
        self.places[place as usize].take()
    }
}

/// The ways from one node to its peers.
pub(super) struct Sending<'a> {
    pub(super) own: u32,
    /// When a frame can enter the interface's stage.
    pub(super) at: Time,
    /// When the stage is free.
    pub(super) free_at: &'a mut Time,
    pub(super) times: &'a InterfaceTimes,
    pub(super) units: &'a mut Units,
    pub(super) network: &'a mut Network,
    pub(super) underway: &'a mut Underway,
    /// Whether each node is dead.
    pub(super) is_dead: &'a [bool],
}

impl Wire for Sending<'_> {
    fn transmit(&mut self, to: PeerId, header: &Header, payload: &[u8]) {
        let cost = self.units.leave(to, payload);
        let memory = self.times.memory(payload);
        let bytes = cost.bytes;
        let begin = self.at.max(*self.free_at);
        let stage = &self.times.send;
        let passing = Time(stage.byte.0 * u64::from(bytes));
        *self.free_at = begin + stage.frame + passing + cost.hold;
        let (to, payload) = (u32::from(to.0), payload.to_vec());
        let frame = Sent { to, header: *header, payload, bytes };
        let place = self.underway.add(Passing::Frame(frame));
        let tag = NonZeroU32::MIN.saturating_add(place);
        let at = begin + memory + stage.latency + passing + cost.latency;
        if cost.reads {
            self.units.reading = self.units.reading.max(at);
        }
        self.network
            .inject(at, self.own, to, bytes, tag)
            .expect("a frame fits the buffers, between nodes that there are");
    }

    fn renew(&mut self, _: PeerId, _: Channel, left: u32) -> u32 {
        BUFFERS.saturating_sub(left)
    }

    fn is_port_closed(&mut self, peer: PeerId) -> bool {
        self.is_dead[peer.index()]
    }

    fn store(&mut self, to: PeerId, lane: LaneName, record: Entry) {
        self.turn_back(to, Looped::Record(lane, record));
    }

    fn tell(&mut self, to: PeerId, word: WordName, value: u64) {
        self.turn_back(to, Looped::Word(word, value));
    }

    fn offer(&mut self, to: PeerId, offer: Offer) {
        self.turn_back(to, Looped::Offer(offer));
    }
}

impl Sending<'_> {
    /// Passes the interface's stages, as a frame without bytes, and no network. Nobody else is of
    /// the node's own host.
    fn turn_back(&mut self, to: PeerId, looped: Looped) {
        debug_assert_eq!(u32::from(to.0), self.own, "a node has its host for itself");
        let begin = self.at.max(*self.free_at);
        *self.free_at = begin + self.times.send.frame;
        let at = *self.free_at + self.times.send.latency + self.times.receive.latency;
        let place = self.underway.add(Passing::Looped(self.own, looped));
        self.underway.arrives(at, place);
    }
}

impl Cluster {
    /// A link's end at a node. Both ends are made at once, so that no handshake is needed.
    pub(super) fn link(&self, own: u32, peer: u32) -> Linked<Heap> {
        let token = |from: u32, to: u32| 2 * self.connections + u64::from(from < to) + 1;
        let agreed = Agreement {
            to: own,
            own: peer,
            incarnation: self.members[peer as usize].incarnation,
            generation: 0,
            token: token(own, peer),
            own_token: token(peer, own),
            first: [[0; 3]; 2],
            repair: Repair::Selective,
            paths: 1,
        };
        let now = self.nanos();
        let mut end = End::new(agreed, &DRIVE, now);
        end.limit_lengths(self.longest as u16, self.longest as u16);
        for channel in Channel::ALL {
            end.give(channel, BUFFERS, now);
        }
        let room = (self.longest - HEADER_BYTES) & !7;
        Linked::new(end, Frames::new(room, || Heap(HEADER_BYTES + room)))
    }
}

//! The ways between nodes: a network that errs, and lanes of those that are on one host.
use crate::dice::Dice;
use crate::plain_memory::{Heap, crc32c, frames};
use ayre_netsim::{Item, Network};
use ayre_proto::limits::LANE_LINES_MIN;
use ayre_proto::link::Repair;
use ayre_proto::link::end::{Agreement, Drive, End};
use ayre_proto::link::frame::{Channel, HEADER_BYTES, Header, Kind};
use ayre_proto::node::carrier::lanes::Offer;
use ayre_proto::node::connection::Lines;
use ayre_proto::node::effects::{LaneName, Wire, WordName};
use ayre_proto::node::lane::Entry;
use ayre_proto::node::linked::Linked;
use ayre_proto::units::PeerId;
use std::collections::VecDeque;

/// Nanoseconds.
pub(crate) const MICROSECOND: u64 = 1_000;
/// Nanoseconds.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// Ways from each node to each other one.
pub(crate) const PATHS: usize = 2;
/// Bytes of the longest frame, and of one that every path takes.
pub(crate) const LONGEST: usize = 1400;
pub(crate) const LEAST: usize = 512;
/// Bytes of the longest payload.
const ROOM: usize = (LONGEST - HEADER_BYTES) & !7;
/// Buffers of each channel.
const BUFFERS: u32 = 32;

/// A frame on its way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    /// The node that it goes to.
    pub(crate) to: usize,
    bytes: Vec<u8>,
}

impl Datagram {
    /// Its header, where nothing was damaged on the way, and what lies behind.
    pub(crate) fn open(&self) -> Option<(Header, &[u8])> {
        let header = Header::parse(&self.bytes, crc32c).ok()?;
        Some((header, &self.bytes[HEADER_BYTES..]))
    }
}

impl Item for Datagram {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn flip(&mut self, bit: u64) {
        self.bytes[bit as usize / 8] ^= 1 << (bit % 8);
    }
}

/// An entry that one port stores for another one of the same host.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Record(LaneName, Entry),
    Word(WordName, u64),
    Offer(Offer),
}

/// A store that is not visible yet.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    due: u64,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) what: Stored,
}

/// All ways.
#[derive(Debug)]
pub(crate) struct Net {
    /// By path.
    pub(crate) ways: Network<Datagram>,
    /// Bytes of the longest datagram that a way takes: what is longer is lost.
    pub(crate) longest: [usize; PATHS],
    /// Frames that went in pieces.
    pub(crate) pieces: u64,
    /// Stores become visible in their order.
    pub(crate) stores: VecDeque<Store>,
    pub(crate) stored: u64,
    pub(crate) dice: Dice,
    /// The datagrams that were sent, if they are kept.
    pub(crate) kept: Option<Vec<Datagram>>,
    /// A node that nobody reaches, and which reaches nobody.
    pub(crate) lost: Option<usize>,
}

impl Net {
    pub(crate) fn new(ways: Network<Datagram>, longest: [usize; PATHS], dice: Dice) -> Self {
        let (stores, kept, lost) = (VecDeque::new(), None, None);
        Self { ways, longest, pieces: 0, stores, stored: 0, dice, kept, lost }
    }

    /// When something comes next.
    pub(crate) fn due(&self) -> u64 {
        let stores = self.stores.front().map(|store| store.due);
        let ways = self.ways.due();
        stores.unwrap_or(u64::MAX).min(ways.unwrap_or(u64::MAX))
    }

    /// The next store that has become visible.
    pub(crate) fn visible(&mut self, now: u64) -> Option<Store> {
        self.stores.front().filter(|store| store.due <= now)?;
        self.stores.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// The ways as a node sees them.
    pub(crate) fn at(&mut self, own: usize, now: u64) -> Sending<'_> {
        Sending { own, now, net: self }
    }
}

/// The ways as one node sees them.
pub(crate) struct Sending<'a> {
    own: usize,
    now: u64,
    net: &'a mut Net,
}

impl Sending<'_> {
    fn store_for(&mut self, to: PeerId, what: Stored) {
        let last = self.net.stores.back().map_or(0, |store| store.due);
        let due = last.max(self.now + self.net.dice.below(3 * MICROSECOND));
        self.net.stored += 1;
        self.net.stores.push_back(Store { due, from: self.own, to: to.index(), what });
    }
}

impl Wire for Sending<'_> {
    fn transmit(&mut self, to: PeerId, header: &Header, payload: &[u8]) {
        let bytes = [&header.encode(crc32c)[..], payload].concat();
        self.net.pieces += u64::from(header.kind == Kind::Piece);
        let (path, is_lost) = (usize::from(header.path), self.net.lost);
        let is_lost = is_lost.is_some_and(|lost| [self.own, to.index()].contains(&lost));
        if bytes.len() <= self.net.longest[path] && !is_lost {
            let datagram = Datagram { to: to.index(), bytes };
            self.net.kept.iter_mut().for_each(|kept| kept.push(datagram.clone()));
            self.net.ways.ways[path].send(datagram, self.now);
        }
    }

    fn renew(&mut self, _: PeerId, _: Channel, left: u32) -> u32 {
        BUFFERS - left
    }

    fn store(&mut self, to: PeerId, lane: LaneName, record: Entry) {
        self.store_for(to, Stored::Record(lane, record));
    }

    fn tell(&mut self, to: PeerId, word: WordName, value: u64) {
        self.store_for(to, Stored::Word(word, value));
    }

    fn offer(&mut self, to: PeerId, offer: Offer) {
        self.store_for(to, Stored::Offer(offer));
    }
}

/// Of the lanes between two nodes.
pub(crate) const LINES: Lines = Lines { messages: 64, responses: 64, commands: 60, ring: 0 };
const _: () = assert!(LINES.commands as usize > LANE_LINES_MIN, "commands have a lane");

/// A link's end at a node, in the ages of both: each port that is started anew has another one.
pub(crate) fn link(own: usize, peer: usize, ages: [u64; 2], now: u64) -> Linked<Heap> {
    let token = |from: usize, to: usize| (100 * ages[0].max(ages[1])) + (10 * from + to) as u64 + 1;
    let agreed = Agreement {
        to: own as u32,
        own: peer as u32,
        incarnation: ages[1],
        generation: 5,
        token: token(own, peer),
        own_token: token(peer, own),
        first: [[0, 7, u32::MAX]; 2],
        repair: Repair::Selective,
        paths: PATHS as u8,
    };
    let mut end = End::new(agreed, &Drive::RACK, now);
    end.limit_lengths(LEAST as u16, LONGEST as u16);
    for channel in Channel::ALL {
        end.give(channel, BUFFERS, now);
    }
    Linked::new(end, frames(ROOM))
}

//! Lanes, rings and windows of several endpoints, as plain queues and vectors.
use super::hosts::Hosts;
use super::memory::Buffer;
use crate::dice::Dice;
use ayre_proto::endpoint::{Choice, Head, Memory, RemoteId, Transport};
use ayre_proto::fault::Fault;
use ayre_proto::lane::Malformed;
use ayre_proto::ring::{Reader, Writer};
use ayre_proto::rma::RMA_WORDS;
use ayre_proto::units::{Rights, RmaClaim};
use std::collections::{BTreeMap, VecDeque};

/// Key and first address of each endpoint's window.
pub(crate) const KEY: u64 = 7;
pub(crate) const BASE: u64 = 1 << 40;

/// Why something was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPosted {
    Full,
    Fault(Fault),
}

impl From<Fault> for NotPosted {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A record of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) tag: u32,
    words: Vec<u64>,
    bytes: Vec<u8>,
}

impl Entry {
    /// A record of this head, and anything behind.
    pub(crate) fn of(head: &Head) -> Self {
        let words = head.words.iter().flat_map(|word| word.to_le_bytes());
        let bytes = words.chain(std::iter::repeat(0xab)).take(head.len).collect();
        Self { tag: head.tag, words: Vec::new(), bytes }
    }

    /// A message that a node has brought.
    pub(crate) fn brought(tag: u32, bytes: Vec<u8>) -> Self {
        Self { tag, words: Vec::new(), bytes }
    }

    /// As a message of a node.
    pub(crate) fn message(&self) -> (u32, Vec<u8>) {
        let words = self.words.iter().flat_map(|word| word.to_le_bytes());
        (self.tag, words.chain(self.bytes.iter().copied()).collect())
    }

    pub(crate) fn head(&self) -> Head {
        let body = self.bytes.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        });
        let mut words = [0; RMA_WORDS];
        for (word, value) in words.iter_mut().zip(self.words.iter().copied().chain(body)) {
            *word = value;
        }
        Head { tag: self.tag, words, len: 8 * self.words.len() + self.bytes.len() }
    }
}

/// A ring, both ends.
#[derive(Debug)]
struct Ring {
    writer: Writer,
    reader: Reader,
    taken: u64,
    bytes: Vec<u8>,
}

/// One direction between two endpoints.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) lane: VecDeque<Entry>,
    /// Entries that have yet to go to another host.
    pub(crate) leaving: VecDeque<Entry>,
    pub(crate) is_far: bool,
    room: usize,
    ring: Option<Ring>,
    pub(crate) is_open: bool,
    /// Nothing may be posted now.
    pub(crate) is_held: bool,
    pub(crate) is_linked: bool,
}

impl Wire {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let len = 1_u64 << dice.between(15, 19);
        let ring = (dice.below(5) > 0).then(|| Ring {
            writer: Writer::new(len, len),
            reader: Reader::new(len),
            taken: 0,
            bytes: vec![0; len as usize],
        });
        let (room, is_linked) = (dice.between(2, 40) as usize, dice.below(3) == 0);
        let (lane, leaving) = (VecDeque::new(), VecDeque::new());
        let (is_open, is_held, is_far) = (true, false, false);
        Self { lane, leaving, is_far, room, ring, is_open, is_held, is_linked }
    }

    /// It leads to another host, and its node has the ring.
    pub(crate) fn lead_away(&mut self) {
        (self.is_far, self.is_linked, self.ring) = (true, true, None);
    }

    /// The queue that is written to.
    fn out(&mut self) -> &mut VecDeque<Entry> {
        if self.is_far { &mut self.leaving } else { &mut self.lane }
    }
}

/// The transports of several endpoints.
pub(crate) struct Around {
    /// By sender and receiver.
    pub(crate) wires: Vec<Vec<Wire>>,
    /// Where each is on a host of its own, the nodes below, which have their rings.
    pub(crate) hosts: Option<Hosts>,
    pub(crate) windows: Vec<Vec<u8>>,
    /// Messages that may be read where they lie, by sender and address.
    pub(crate) lent: BTreeMap<(usize, u64), Vec<u8>>,
    pub(crate) last_address: u64,
    pub(crate) dice: Dice,
    /// Messages that were chosen for and timed, and have not ended.
    pub(crate) trials: usize,
    /// By endpoint, those that it has shut out.
    pub(crate) shut_out: Vec<Vec<usize>>,
    /// Connections that have ended for want of memory: who was told so, and by whom.
    pub(crate) flooded: Vec<(usize, usize)>,
}

impl Around {
    pub(crate) fn new(count: usize, window: usize, seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0x5eed);
        let wires = (0..count).map(|_| (0..count).map(|_| Wire::new(&mut dice)).collect());
        Self {
            wires: wires.collect(),
            hosts: None,
            windows: vec![vec![0; window]; count],
            lent: BTreeMap::new(),
            last_address: 0,
            dice,
            trials: 0,
            shut_out: vec![Vec::new(); count],
            flooded: Vec::new(),
        }
    }

    pub(crate) fn of(&mut self, own: usize) -> Side<'_> {
        Side { own, all: self }
    }
}

/// The number of an endpoint.
pub(crate) fn id(index: usize) -> RemoteId {
    RemoteId::new(1, index)
}

/// The transport of one endpoint.
pub(crate) struct Side<'a> {
    own: usize,
    all: &'a mut Around,
}

impl Side<'_> {
    fn out(&mut self, to: usize) -> &mut Wire {
        &mut self.all.wires[self.own][to]
    }

    fn inward(&mut self, from: RemoteId) -> Option<&mut Ring> {
        self.all.wires[from.index()][self.own].ring.as_mut()
    }

    /// The nodes between this one and one of another host.
    fn hosts(&mut self, other: RemoteId) -> Option<(usize, &mut Hosts)> {
        let is_far = self.out(other.index()).is_far;
        Some(self.own).zip(self.all.hosts.as_mut().filter(|_| is_far))
    }

    fn find(&self, claim: &RmaClaim, at: u64, len: usize) -> Result<(usize, usize), Fault> {
        if claim.key != KEY {
            return Err(Fault::UnknownKey);
        }
        let all = Rights::READ | Rights::WRITE;
        assert!(all.contains(claim.rights) && !claim.rights.is_empty(), "it has a purpose");
        let start = claim.address.checked_sub(BASE).ok_or(Fault::Bounds)?;
        let end = start.checked_add(claim.len).ok_or(Fault::Bounds)?;
        if end > self.all.windows[self.own].len() as u64 {
            return Err(Fault::Bounds);
        }
        assert!(at + len as u64 <= claim.len, "only what is claimed is touched");
        let start = (start + at) as usize;
        Ok((start, start + len))
    }
}

impl Transport for Side<'_> {
    type Memory = Buffer;
    type Lane = usize;
    type Error = NotPosted;

    fn lane(&self, of: RemoteId) -> Option<usize> {
        self.all.wires[self.own][of.index()].is_open.then_some(of.index())
    }

    fn push<const H: usize>(
        &mut self,
        to: usize,
        tag: u32,
        head: [u64; H],
        bytes: &[u8],
    ) -> Result<(), NotPosted> {
        let wire = self.out(to);
        if !wire.is_open {
            return Err(NotPosted::Fault(Fault::PeerDead));
        }
        if wire.out().len() >= wire.room {
            return Err(NotPosted::Full);
        }
        wire.out().push_back(Entry { tag, words: head[1..].to_vec(), bytes: bytes.to_vec() });
        Ok(())
    }

    fn reserve(&mut self, to: usize) -> Result<(), NotPosted> {
        let wire = self.out(to);
        if wire.out().len() < wire.room { Ok(()) } else { Err(NotPosted::Full) }
    }

    fn no_room(&mut self, _: usize) -> NotPosted {
        NotPosted::Full
    }

    fn longest_piece(&mut self, to: RemoteId) -> Option<usize> {
        if let Some((own, hosts)) = self.hosts(to) {
            return hosts.longest_piece(own, to.index());
        }
        Some(self.out(to.index()).ring.as_ref()?.writer.longest())
    }

    fn write_ring(&mut self, to: RemoteId, piece: &[u8]) -> Option<u64> {
        if let Some((own, hosts)) = self.hosts(to) {
            return hosts.write_ring(own, to.index(), piece);
        }
        let ring = self.out(to.index()).ring.as_mut()?;
        let len = piece.len();
        ring.writer.on_taken(ring.taken).expect("an honest reader's count");
        let at = ring.writer.next(len).or_else(|| ring.writer.find(len, |_| true))?;
        let start = at as usize & (ring.bytes.len() - 1);
        ring.bytes[start..start + len].copy_from_slice(piece);
        ring.writer.wrote(at, len);
        Some(at)
    }

    fn check_ring(&mut self, of: RemoteId, at: u64, len: usize) -> Result<(), Malformed> {
        if let Some((own, hosts)) = self.hosts(of) {
            return hosts.check_ring(own, of.index(), (at, len));
        }
        self.inward(of).ok_or(Malformed)?.reader.check(at, len)
    }

    fn take_ring(&mut self, of: RemoteId, (at, len): (u64, usize), into: &mut [u8]) {
        if let Some((own, hosts)) = self.hosts(of) {
            return hosts.take_ring(own, of.index(), (at, len), into);
        }
        let ring = self.inward(of).expect("it was checked");
        let start = at as usize & (ring.bytes.len() - 1);
        let count = into.len().min(len);
        into[..count].copy_from_slice(&ring.bytes[start..start + count]);
        ring.taken = ring.reader.take(at, len);
    }

    fn copy(&self, from: usize, skip: usize, into: &mut [u8]) {
        let entry = &self.all.wires[from][self.own].lane[0];
        let at = 8 * (skip - 1 - entry.words.len());
        into.copy_from_slice(&entry.bytes[at..at + into.len()]);
    }

    fn copy_short(&self, from: usize, skip: usize, into: &mut [u8]) {
        self.copy(from, skip, into);
    }

    fn is_linked(&self, to: usize) -> bool {
        self.all.wires[self.own][to].is_linked
    }

    fn address_of(&mut self, to: usize, memory: &Buffer) -> u64 {
        let Some(bytes) = memory.whole().filter(|_| !self.is_linked(to)) else { return 0 };
        self.all.last_address += 1 << 32;
        let address = self.all.last_address;
        self.all.lent.insert((self.own, address), bytes.to_vec());
        address
    }

    fn choose(&mut self, _: RemoteId, _: u64) -> Choice {
        let is_timed = self.all.dice.below(3) > 0;
        self.all.trials += usize::from(is_timed);
        Choice { is_read: self.all.dice.below(2) == 0, since: is_timed.then_some(1) }
    }

    fn chosen(&mut self, choice: Choice, _: u64, _: bool) {
        self.all.trials -= usize::from(choice.since.is_some());
    }

    fn read_remote(&mut self, source: RemoteId, address: u64, into: &mut [u8]) -> bool {
        if self.all.dice.below(8) == 0 {
            return false;
        }
        let lent = self.all.lent.range(..=(source.index(), address)).next_back();
        let ((whose, start), bytes) = lent.expect("its sender keeps it until it has been read");
        assert_eq!(*whose, source.index());
        let at = (address - start) as usize;
        into.copy_from_slice(&bytes[at..at + into.len()]);
        true
    }

    fn is_still_connected(&mut self, remote: RemoteId) -> bool {
        self.lane(remote).is_some()
    }

    fn check_claim(&mut self, claim: &RmaClaim) -> Result<(), Fault> {
        self.find(claim, 0, 0).map(|_| ())
    }

    fn write_region(&mut self, claim: &RmaClaim, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        let (start, end) = self.find(claim, at, bytes.len())?;
        self.all.windows[self.own][start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_region(&mut self, claim: &RmaClaim, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        let (start, end) = self.find(claim, at, into.len())?;
        into.copy_from_slice(&self.all.windows[self.own][start..end]);
        Ok(())
    }

    fn ring_to_region(
        &mut self,
        of: RemoteId,
        piece: (u64, usize),
        claim: &RmaClaim,
        at: u64,
    ) -> Result<(), Fault> {
        let (start, end) = self.find(claim, at, piece.1)?;
        let mut bytes = vec![0; end - start];
        self.take_ring(of, piece, &mut bytes);
        self.all.windows[self.own][start..end].copy_from_slice(&bytes);
        Ok(())
    }

    fn region_to_ring(
        &mut self,
        to: RemoteId,
        len: usize,
        claim: &RmaClaim,
        at: u64,
    ) -> Result<Option<u64>, Fault> {
        let (start, end) = self.find(claim, at, len)?;
        let bytes = self.all.windows[self.own][start..end].to_vec();
        Ok(self.write_ring(to, &bytes))
    }

    fn update_region<A: AsMut<[u8]> + Clone + PartialEq>(
        &mut self,
        claim: &RmaClaim,
        mut place: A,
        make: impl Fn(&mut [u8]),
    ) -> Result<A, Fault> {
        self.read_region(claim, 0, place.as_mut())?;
        let mut new = place.clone();
        make(new.as_mut());
        self.write_region(claim, 0, new.as_mut())?;
        Ok(place)
    }

    fn hold_back(&mut self, to: RemoteId) {
        let wire = self.out(to.index());
        assert!(!std::mem::replace(&mut wire.is_held, true), "one write leaves at a time");
    }

    fn let_through(&mut self, to: RemoteId) {
        let wire = self.out(to.index());
        assert!(std::mem::replace(&mut wire.is_held, false), "it was held back");
    }

    fn shut_out(&mut self, remote: RemoteId) -> bool {
        let own = self.own;
        self.all.shut_out[own].push(remote.index());
        if remote.index() == own {
            self.all.flooded.push((own, own));
        }
        remote.index() == own
    }

    fn on_shut_out(&mut self, by: RemoteId) {
        let own = self.own;
        self.all.flooded.push((own, by.index()));
    }

    fn request_poll(&self) {}
}

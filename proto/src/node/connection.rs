//! The lanes, words and offers of one connection, in memory of the node. At their far side there is
//! a carrier, or a peer of the same host.
use super::carrier::QUEUES_MAX;
use super::carrier::lanes::{Lanes, NoRoom, Offer, OfferKind, RxLane, TxLane};
use super::effects::LaneName;
use super::lane::Lane;
use super::ring::Rings;
use crate::lane::{Kind, Malformed, Status};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Lines of a connection's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Lines of the lane of short messages.
    pub messages: u32,
    /// Lines of the lane of answers.
    pub responses: u32,
    /// Lines of the lane of commands, for a peer of this host.
    pub commands: u32,
    /// Lines of each of the two rings that a link carries, a power of two; 0 for none.
    pub ring: u32,
}

/// Progress of commands in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Commands executed.
    pub done: u64,
    /// Notifications that the target's program has taken.
    pub noted: u64,
}

/// The lanes, rings and counts of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The lane of messages that the port writes.
    pub(super) messages: Lane,
    pub(super) feeds: Vec<Lane>,
    pub(super) offers: VecDeque<Offer>,
    /// The rings, if there are any.
    pub(super) rings: Option<Rings>,
    /// The lane of messages that the port reads.
    pub(super) incoming: Lane,
    pub(super) responses: Lane,
    pub(super) sinks: Vec<Lane>,
    pub(super) offered: VecDeque<Offer>,
    /// Progress of the peer's commands here, and of this node's commands there.
    pub(super) here: Progress,
    pub(super) there: Progress,
}

impl Connection {
    pub(super) fn new(lines: &Lines) -> Self {
        Self {
            messages: Lane::new(lines.messages),
            feeds: Vec::new(),
            offers: VecDeque::new(),
            rings: Rings::new(lines.ring),
            incoming: Lane::new(lines.messages),
            responses: Lane::new(lines.responses),
            sinks: Vec::new(),
            offered: VecDeque::new(),
            here: Progress::default(),
            there: Progress::default(),
        }
    }

    fn check(&self) {
        debug_assert!(self.sinks.len() <= QUEUES_MAX, "the number of offered queues is bounded");
        debug_assert!(self.feeds.len() <= QUEUES_MAX, "and so is that of taken ones");
    }

    /// A lane that the port writes, and a peer of the same host reads.
    pub(super) fn tx_lane(&mut self, lane: TxLane) -> Option<&mut Lane> {
        match lane {
            TxLane::Messages => Some(&mut self.messages),
            TxLane::Queue(number) => self.feeds.get_mut(number),
        }
    }

    /// A lane that the port reads.
    pub(super) fn rx_lane(&mut self, lane: RxLane) -> Option<&mut Lane> {
        match lane {
            RxLane::Messages => Some(&mut self.incoming),
            RxLane::Responses => Some(&mut self.responses),
            RxLane::Queue(number) => self.sinks.get_mut(number),
        }
    }

    /// The lanes that the port reads, by their names.
    pub(super) fn all_rx(&self) -> impl Iterator<Item = (LaneName, &Lane)> {
        let sinks = self.sinks.iter().enumerate();
        let queues = sinks.map(|(number, lane)| (LaneName::Queue(number), lane));
        let others = [(LaneName::Messages, &self.incoming), (LaneName::Responses, &self.responses)];
        others.into_iter().chain(queues)
    }

    /// A peer of the same host makes an offer.
    // spec: WIRE-9
    pub(super) fn take_offer(&mut self, offer: Offer) -> Result<(), Malformed> {
        match offer.kind {
            OfferKind::Queue if self.feeds.len() == QUEUES_MAX => Err(Malformed),
            OfferKind::Queue if !self.make_queue(self.feeds.len(), offer) => Err(Malformed),
            OfferKind::Queue => Ok(()),
            OfferKind::Region | OfferKind::Inlet => {
                self.deliver(offer);
                Ok(())
            }
        }
    }

    fn source(&self, lane: TxLane) -> &Lane {
        match lane {
            TxLane::Messages => &self.messages,
            TxLane::Queue(number) => &self.feeds[number],
        }
    }

    fn source_mut(&mut self, lane: TxLane) -> &mut Lane {
        self.tx_lane(lane).expect("a carrier names lanes that there are")
    }
}

impl Lanes for Connection {
    fn head(&self, lane: TxLane) -> Option<Result<Status, Malformed>> {
        self.source(lane).peek().map(|entry| Ok(entry.status()))
    }

    fn copy(&self, lane: TxLane, into: &mut [u8]) {
        let entry = self.source(lane).peek().expect("a record is copied while it is there");
        into.copy_from_slice(&entry.bytes);
    }

    fn pass(&mut self, lane: TxLane, _: &Status) {
        let passed = self.source_mut(lane).pass();
        debug_assert!(passed.is_some(), "a record is passed on once it is there");
    }

    fn give_back(&mut self, lane: TxLane, consumed: u32) -> Result<(), Malformed> {
        self.source_mut(lane).give_back(consumed)
    }

    fn publish(&mut self, lane: RxLane, head: (Kind, u32), bytes: &[u8]) -> Result<(), NoRoom> {
        let target = self.rx_lane(lane).expect("a carrier names lanes that there are");
        if target.push(head.0, head.1, bytes) { Ok(()) } else { Err(NoRoom) }
    }

    fn given_back(&self, lane: RxLane) -> u32 {
        match lane {
            RxLane::Messages => self.incoming.given_back(),
            RxLane::Responses => self.responses.given_back(),
            RxLane::Queue(number) => self.sinks[number].given_back(),
        }
    }

    fn ring_lines(&self) -> u32 {
        self.rings.as_ref().map_or(0, Rings::lines)
    }

    fn ring_left(&self) -> usize {
        self.rings.as_ref().map_or(0, Rings::left)
    }

    fn pass_ring(&mut self, into: &mut [u8]) {
        self.rings.as_mut().expect("bytes are left in a ring that there is").pass(into);
    }

    fn give_back_ring(&mut self, lines: u32) -> Result<(), Malformed> {
        self.rings.as_mut().ok_or(Malformed)?.give_back(lines)
    }

    fn place_ring(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.rings.as_mut().ok_or(Malformed)?.place(bytes)
    }

    fn ring_given_back(&self) -> u32 {
        self.rings.as_ref().map_or(0, Rings::given_back)
    }

    fn done(&self) -> u64 {
        self.here.done
    }

    fn noted(&self) -> u64 {
        self.here.noted
    }

    fn barrier(&self) -> u64 {
        0
    }

    fn set_done(&mut self, done: u64) {
        debug_assert!(done >= self.there.done, "what was executed stays executed");
        self.there.done = done;
    }

    fn set_noted(&mut self, noted: u64) {
        self.there.noted = noted;
    }

    fn set_barrier(&mut self, _: u64) {}

    fn offer(&mut self) -> Option<Offer> {
        self.offers.front().copied()
    }

    fn pass_offer(&mut self) {
        self.offers.pop_front();
    }

    fn join_queue(&mut self, number: usize) -> bool {
        debug_assert!(number == self.sinks.len(), "queues are numbered one by one");
        let lines = self.offers.front().and_then(Offer::lines);
        self.sinks.extend(lines.map(Lane::new));
        self.check();
        lines.is_some()
    }

    fn deliver(&mut self, offer: Offer) {
        self.offered.push_back(offer);
    }

    fn make_queue(&mut self, number: usize, offer: Offer) -> bool {
        debug_assert!(number == self.feeds.len(), "queues are numbered one by one");
        let Some(lines) = offer.lines() else { return false };
        self.feeds.push(Lane::new(lines));
        self.offered.push_back(offer);
        self.check();
        true
    }
}

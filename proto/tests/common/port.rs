//! A port in plain memory: the lanes, rings and words of one connection, as its program and its
//! carrier see them.
#![allow(dead_code, reason = "each test takes what it needs")]
use ayre_proto::lane::{Kind, Malformed, Status};
use ayre_proto::limits::LINE;
use ayre_proto::node::carrier::lanes::{Lanes, NoRoom, Offer, RxLane, TxLane};
use ayre_proto::node::lane::Lane;
use std::collections::VecDeque;

/// A ring of each direction: its bytes from the beginning of time.
#[derive(Debug, Default)]
pub(crate) struct PlainRing {
    pub(crate) bytes: Vec<u8>,
    passed: usize,
    /// Bytes that were taken.
    pub(crate) taken: usize,
}

/// One connection of a port.
#[derive(Debug)]
pub(crate) struct PlainPort {
    pub(crate) messages: Lane,
    pub(crate) came: Lane,
    /// The count of lines that its reader is to have given back.
    pub(crate) came_said: Option<u32>,
    pub(crate) answers: Lane,
    pub(crate) feeds: Vec<Lane>,
    pub(crate) sinks: Vec<Lane>,
    ring_lines: u32,
    pub(crate) ring: PlainRing,
    pub(crate) ring_come: PlainRing,
    /// Commands of the peer that were executed here, and notifications that were taken.
    pub(crate) done: u64,
    pub(crate) noted: u64,
    pub(crate) barrier: u64,
    /// Our commands that were executed at the peer, and our notifications that it took.
    pub(crate) done_there: u64,
    pub(crate) noted_there: u64,
    pub(crate) barrier_there: u64,
    pub(crate) offers: VecDeque<Offer>,
    pub(crate) offered: Vec<Offer>,
    /// Whether there is memory for queues.
    pub(crate) has_memory: bool,
}

impl PlainPort {
    /// A port with lanes of these lengths in lines: for messages, for answers, and of rings.
    pub(crate) fn new([messages, answers, ring_lines]: [u32; 3]) -> Self {
        Self {
            messages: Lane::new(messages),
            came: Lane::new(messages),
            came_said: None,
            answers: Lane::new(answers),
            feeds: Vec::new(),
            sinks: Vec::new(),
            ring_lines,
            ring: PlainRing::default(),
            ring_come: PlainRing::default(),
            done: 0,
            noted: 0,
            barrier: 0,
            done_there: 0,
            noted_there: 0,
            barrier_there: 0,
            offers: VecDeque::new(),
            offered: Vec::new(),
            has_memory: true,
        }
    }

    /// Writes to the ring, where there is room: whether there was.
    pub(crate) fn write_ring(&mut self, bytes: &[u8]) -> bool {
        let end = self.ring.bytes.len() + bytes.len();
        let fits = end - self.ring.taken <= self.ring_lines as usize * LINE;
        if fits {
            self.ring.bytes.extend_from_slice(bytes);
        }
        fits
    }

    fn source(&self, lane: TxLane) -> &Lane {
        match lane {
            TxLane::Messages => &self.messages,
            TxLane::Queue(number) => &self.feeds[number],
        }
    }

    fn source_mut(&mut self, lane: TxLane) -> &mut Lane {
        match lane {
            TxLane::Messages => &mut self.messages,
            TxLane::Queue(number) => &mut self.feeds[number],
        }
    }

    fn target(&mut self, lane: RxLane) -> &mut Lane {
        match lane {
            RxLane::Messages => &mut self.came,
            RxLane::Responses => &mut self.answers,
            RxLane::Queue(number) => &mut self.sinks[number],
        }
    }
}

fn lines_of(offer: &Offer) -> u32 {
    offer.words[1] as u32
}

impl Lanes for PlainPort {
    fn head(&self, lane: TxLane) -> Option<Result<Status, Malformed>> {
        self.source(lane).peek().map(|entry| Ok(entry.status()))
    }

    fn copy(&self, lane: TxLane, into: &mut [u8]) {
        let entry = self.source(lane).peek().expect("a record is copied while it is there");
        into.copy_from_slice(&entry.bytes);
    }

    fn pass(&mut self, lane: TxLane, _: &Status) {
        let passed = self.source_mut(lane).pass();
        assert!(passed.is_some(), "a record is passed on once it is there");
    }

    fn give_back(&mut self, lane: TxLane, consumed: u32) -> Result<(), Malformed> {
        self.source_mut(lane).give_back(consumed)
    }

    fn publish(
        &mut self,
        lane: RxLane,
        (kind, tag): (Kind, u32),
        bytes: &[u8],
    ) -> Result<(), NoRoom> {
        if self.target(lane).push(kind, tag, bytes) { Ok(()) } else { Err(NoRoom) }
    }

    fn given_back(&self, lane: RxLane) -> u32 {
        match lane {
            RxLane::Messages => self.came_said.unwrap_or_else(|| self.came.given_back()),
            RxLane::Responses => self.answers.given_back(),
            RxLane::Queue(number) => self.sinks[number].given_back(),
        }
    }

    fn ring_lines(&self) -> u32 {
        self.ring_lines
    }

    fn ring_left(&self) -> usize {
        let len = self.ring_lines as usize * LINE;
        let before_end = len.checked_rem(len).map_or(0, |_| len - self.ring.passed % len);
        (self.ring.bytes.len() - self.ring.passed).min(before_end)
    }

    fn pass_ring(&mut self, into: &mut [u8]) {
        let PlainRing { bytes, passed, .. } = &mut self.ring;
        into.copy_from_slice(&bytes[*passed..][..into.len()]);
        *passed += into.len();
    }

    fn give_back_ring(&mut self, lines: u32) -> Result<(), Malformed> {
        let more = lines.wrapping_sub((self.ring.taken / LINE) as u32) as usize * LINE;
        if more > self.ring.passed - self.ring.taken {
            return Err(Malformed);
        }
        self.ring.taken += more;
        Ok(())
    }

    fn place_ring(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let PlainRing { bytes: come, taken, .. } = &mut self.ring_come;
        if come.len() + bytes.len() - *taken > self.ring_lines as usize * LINE {
            return Err(Malformed);
        }
        come.extend_from_slice(bytes);
        Ok(())
    }

    fn ring_given_back(&self) -> u32 {
        (self.ring_come.taken / LINE) as u32
    }

    fn done(&self) -> u64 {
        self.done
    }

    fn noted(&self) -> u64 {
        self.noted
    }

    fn barrier(&self) -> u64 {
        self.barrier
    }

    fn set_done(&mut self, done: u64) {
        assert!(done >= self.done_there, "what was executed stays executed");
        self.done_there = done;
    }

    fn set_noted(&mut self, noted: u64) {
        self.noted_there = noted;
    }

    fn set_barrier(&mut self, reached: u64) {
        self.barrier_there = reached;
    }

    fn offer(&mut self) -> Option<Offer> {
        self.offers.front().copied()
    }

    fn pass_offer(&mut self) {
        self.offers.pop_front();
    }

    fn join_queue(&mut self, number: usize) -> bool {
        assert_eq!(number, self.sinks.len(), "queues are numbered one by one");
        if self.has_memory {
            let lines = lines_of(self.offers.front().expect("a queue is offered"));
            self.sinks.push(Lane::new(lines));
        }
        self.has_memory
    }

    fn deliver(&mut self, offer: Offer) {
        self.offered.push(offer);
    }

    fn make_queue(&mut self, number: usize, offer: Offer) -> bool {
        assert_eq!(number, self.feeds.len(), "queues are numbered one by one");
        if self.has_memory {
            self.feeds.push(Lane::new(lines_of(&offer)));
            self.offered.push(offer);
        }
        self.has_memory
    }
}

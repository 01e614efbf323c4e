//! Several endpoints, their programs, and what is expected of each.
use super::hosts::Hosts;
use super::memory::{Buffer, Home};
use super::oracle::{Message, Oracle, Pattern, Placed};
use super::ways::{Around, BASE, Entry, KEY, NotPosted, id};
use crate::dice::Dice;
use ayre_proto::combine::{Combine, Number};
use ayre_proto::endpoint::{
    Head, OutgoingMessage, PostedReceive, Protocol, Received, RemoteAddress, RmaUpdate, RmaWrite,
    Sent, Taken,
};
use ayre_proto::envelope::{AHEAD_MIN, Envelope, Record};
use ayre_proto::fault::Fault;
use ayre_proto::rma::RmaRecord;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of each endpoint's memory that another one works on; the last eight are a number.
pub(crate) const REGION: usize = 4096;

/// An operation that was posted and is not complete.
#[derive(Debug)]
pub(super) enum Posted {
    Send {
        to: usize,
        lent: Option<u64>,
    },
    Receive {
        into: Home,
        placed: Vec<Placed>,
        source: Option<usize>,
        is_over: bool,
    },
    Write {
        to: usize,
    },
    /// The bytes that a read expects, unless something is written before.
    Read {
        from: usize,
        into: Home,
        expected: Vec<u8>,
        written: u64,
    },
    Update {
        at: usize,
        into: Option<Home>,
        expected: u64,
    },
}

/// One endpoint and its program.
pub(super) struct Place {
    pub(super) protocol: Protocol<Buffer>,
    pub(super) tagged: Oracle,
    pub(super) plain: Oracle,
    pub(super) posted: BTreeMap<u128, Posted>,
    contexts: u128,
    /// By endpoint: what it was sent, in order, and how many of those have come.
    sent: Vec<Vec<Message>>,
    came: Vec<usize>,
    /// By endpoint: what is to be in its window, and how many writes and updates there were.
    pub(super) there: Vec<Vec<u8>>,
    pub(super) written: Vec<u64>,
}

impl Place {
    pub(super) fn oracle(&mut self, is_tagged: bool) -> &mut Oracle {
        if is_tagged { &mut self.tagged } else { &mut self.plain }
    }
}

/// All of them.
pub(crate) struct World {
    pub(crate) around: Around,
    pub(super) places: Vec<Place>,
    pub(crate) dice: Dice,
    pub(crate) seen: Seen,
}

/// Counts of events, for tests to see that they have happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) received: u64,
    pub(crate) cut: u64,
    pub(crate) touched: u64,
    pub(crate) cancelled: u64,
    pub(crate) found: u64,
    pub(crate) dead: u64,
    pub(crate) full: u64,
}

pub(super) fn content(message: &Message, to: usize) -> Vec<u8> {
    let seed = message.source as u64 * 31 + to as u64 * 17 + message.number * 7;
    (0..message.len).map(|at| (seed + at * 3 + (at >> 8)) as u8).collect()
}

impl World {
    pub(crate) fn new(count: usize, budget: u64, seed: u64) -> Self {
        let around = Around::new(count, count * REGION, seed);
        let places = (0..count).map(|_| {
            let mut protocol = Protocol::new(budget, seed);
            (0..count).for_each(|remote| protocol.connect(id(remote)));
            Place {
                protocol,
                tagged: Oracle::default(),
                plain: Oracle::default(),
                posted: BTreeMap::new(),
                contexts: 0,
                sent: vec![Vec::new(); count],
                came: vec![0; count],
                there: vec![vec![0; REGION]; count],
                written: vec![0; count],
            }
        });
        let (places, dice, seen) = (places.collect(), Dice(seed), Seen::default());
        Self { around, places, dice, seen }
    }

    /// Endpoints each on a host of its own, over a network that errs.
    pub(crate) fn of_hosts(count: usize, budget: u64, seed: u64) -> Self {
        let mut world = Self::new(count, budget, seed);
        for own in 0..count {
            for to in (0..count).filter(|to| *to != own) {
                world.around.wires[own][to].lead_away();
            }
        }
        world.around.hosts = Some(Hosts::new(count, seed));
        world
    }

    /// Records go over the network, and come. Whether any may still.
    pub(crate) fn carry(&mut self) -> bool {
        let Self { around, .. } = self;
        around.hosts.as_mut().is_some_and(|hosts| hosts.carry(&mut around.wires))
    }

    /// Frames that the network has lost, or that went in vain.
    pub(crate) fn again(&self) -> u64 {
        self.around.hosts.as_ref().map_or(0, Hosts::again)
    }

    /// Bytes that went through rings of nodes.
    pub(crate) fn ringed(&self) -> u64 {
        self.around.hosts.as_ref().map_or(0, Hosts::ringed)
    }

    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    fn next_context(&mut self, own: usize) -> u128 {
        let place = &mut self.places[own];
        place.contexts += 1;
        // The labels that receives are taken back by are the lower halves.
        place.contexts | (own as u128) << 100
    }

    /// Whether something may be posted there.
    fn is_open(&self, own: usize, to: usize) -> bool {
        let wire = &self.around.wires[own][to];
        wire.is_open && !wire.is_held && !self.around.shut_out[own].contains(&to)
    }

    fn len(&mut self) -> u64 {
        match self.dice.below(10) {
            0..5 => self.dice.below(200),
            5..7 => self.dice.between(500, 5000),
            7..9 => self.dice.between(5000, 70_000),
            _ => self.dice.between(70_000, 300_000),
        }
    }

    fn tag(&mut self) -> Option<u64> {
        (self.dice.below(3) > 0).then(|| self.dice.below(4))
    }

    /// Sends a message: whether it was posted.
    pub(crate) fn send(&mut self, own: usize, to: usize, len: Option<u64>) -> bool {
        let (tag, len) = (self.tag(), len.unwrap_or_else(|| self.len()));
        self.send_of((own, to), tag, len)
    }

    /// Sends a message with this tag.
    pub(crate) fn send_of(
        &mut self,
        (own, to): (usize, usize),
        tag: Option<u64>,
        len: u64,
    ) -> bool {
        if !self.is_open(own, to) {
            return false;
        }
        let number = self.places[own].sent[to].len() as u64;
        let data = (self.dice.below(2) == 0).then_some(number);
        let message = Message { source: own, number, tag, data, len };
        let (context, cut) = (self.next_context(own), self.dice.below(3 * len + 1) as usize);
        let delivered = self.dice.below(3) == 0;
        let bytes = Buffer::of(content(&message, to), cut);
        let outgoing = OutgoingMessage { tag, data, bytes, context, delivered };
        let before = self.around.last_address;
        let place = &mut self.places[own];
        let sent = place.protocol.send(&mut self.around.of(own), (id(to), to), &outgoing);
        let address = self.around.last_address;
        let lent = (address > before).then_some(address);
        match sent {
            Ok(sent) => {
                place.sent[to].push(message);
                match sent {
                    Sent::Completed => assert!(!delivered, "its end is to be told"),
                    Sent::Pending => {
                        place.posted.insert(context, Posted::Send { to, lent });
                    }
                }
                return true;
            }
            Err(NotPosted::Full) => self.seen.full += 1,
            Err(NotPosted::Fault(why)) => assert_eq!(why, Fault::NoMemory),
        }
        lent.map(|address| self.around.lent.remove(&(own, address)));
        false
    }

    pub(crate) fn receive(&mut self, own: usize) {
        let tag = (self.dice.below(3) > 0).then(|| {
            let ignore = [0, 0, 1, u64::MAX][self.dice.below(4) as usize];
            (self.dice.below(4), ignore)
        });
        let count = self.count() as u64;
        let source = (self.dice.below(3) > 0).then(|| self.dice.below(count) as usize);
        let source = source.filter(|source| self.around.wires[own][*source].is_open);
        let len = self.len();
        let least = (self.dice.below(6) == 0).then(|| self.dice.below(len + 2));
        let cut = if least.is_some() { 0 } else { self.dice.below(2 * len + 1) as usize };
        self.receive_of(own, Pattern { source, tag }, (len, least, cut));
    }

    pub(crate) fn receive_of(
        &mut self,
        own: usize,
        pattern: Pattern,
        (len, many, cut): (u64, Option<u64>, usize),
    ) {
        let context = self.next_context(own);
        let into: Home = Rc::new(RefCell::new(vec![0xee; len as usize]));
        let Pattern { source, tag } = pattern;
        let receive = PostedReceive {
            source: source.map(id),
            tag,
            into: Buffer::at(&into, cut),
            context,
            many,
        };
        let place = &mut self.places[own];
        let posted = place.protocol.receive(receive, || self.around.of(own));
        assert_eq!(posted, Ok(()));
        let placed = place.oracle(tag.is_some()).post(pattern, (context, len), many);
        let is_over = placed.last().is_some_and(|placed| placed.released);
        place.posted.insert(context, Posted::Receive { into, placed, source, is_over });
    }

    pub(crate) fn write(&mut self, own: usize, to: usize) {
        if !self.is_open(own, to) {
            return;
        }
        let at = self.dice.below(REGION as u64 - 8) as usize;
        let len = self.dice.below((REGION - 8 - at) as u64 + 1) as usize;
        let context = self.next_context(own);
        let bytes: Vec<u8> = (0..len).map(|_| self.dice.below(256) as u8).collect();
        let inject = len <= AHEAD_MIN && self.dice.below(2) == 0;
        let cut = self.dice.below(2 * len as u64 + 1) as usize;
        let buffer = Buffer::of(bytes.clone(), cut);
        let write = RmaWrite { bytes: buffer, data: Some(len as u64), context, inject };
        let place = &mut self.places[own];
        match place.protocol.write(&mut self.around.of(own), (to, spot(own, to, at)), &write) {
            Ok(_) => {
                place.there[to][at..at + len].copy_from_slice(&bytes);
                place.written[to] += 1;
                place.posted.insert(context, Posted::Write { to });
            }
            Err(why) => assert_eq!(why, NotPosted::Full),
        }
    }

    pub(crate) fn read(&mut self, own: usize, from: usize) {
        if !self.is_open(own, from) {
            return;
        }
        let at = self.dice.below(REGION as u64) as usize;
        let len = self.dice.below((REGION - at) as u64 + 1) as usize;
        let context = self.next_context(own);
        let into: Home = Rc::new(RefCell::new(vec![0xee; len]));
        let buffer = Buffer::at(&into, self.dice.below(2 * len as u64 + 1) as usize);
        let place = &mut self.places[own];
        let spot = spot(own, from, at);
        if place.protocol.read(&mut self.around.of(own), (from, spot), buffer, context).is_ok() {
            let expected = place.there[from][at..at + len].to_vec();
            let written = place.written[from];
            place.posted.insert(context, Posted::Read { from, into, expected, written });
        }
    }

    pub(crate) fn update(&mut self, own: usize, to: usize) {
        if !self.is_open(own, to) {
            return;
        }
        let context = self.next_context(own);
        let operand = self.dice.below(1000);
        let tells = self.dice.below(2) == 0;
        let into: Option<Home> = tells.then(|| Rc::new(RefCell::new(vec![0; 8])));
        let update = RmaUpdate {
            op: Combine::Sum,
            number: Number::U64,
            operand: Buffer::of(operand.to_le_bytes().to_vec(), 0),
            compare: Buffer::default(),
            result: into.as_ref().map(|into| Buffer::at(into, 0)),
            data: None,
            context,
        };
        let place = &mut self.places[own];
        let spot = spot(own, to, REGION - 8);
        if place.protocol.update(&mut self.around.of(own), (to, spot), &update).is_ok() {
            let number = &mut place.there[to][REGION - 8..];
            let expected = u64::from_le_bytes(number.try_into().expect("eight bytes"));
            number.copy_from_slice(&(expected + operand).to_le_bytes());
            place.written[to] += 1;
            place.posted.insert(context, Posted::Update { at: to, into, expected });
        }
    }

    /// Looks for a message that has come, and receives it or throws it away.
    pub(crate) fn find(&mut self, own: usize) {
        let tag = (self.dice.below(3) > 0).then(|| (self.dice.below(4), self.dice.below(4)));
        let pattern = Pattern { source: None, tag };
        let place = &mut self.places[own];
        let found = place.protocol.find(None, tag);
        let expected = place.oracle(tag.is_some()).find(pattern);
        let seen = found.map(|found| {
            let Received { source, tag, data, len, .. } = found.message;
            (source, tag, data, len)
        });
        let expected = expected.map(|it| (Some(id(it.source)), it.tag, it.data, it.len));
        assert_eq!(seen, expected);
        let Some(found) = found.filter(|_| self.dice.below(2) == 0) else { return };
        self.seen.found += 1;
        let is_tagged = tag.is_some();
        assert!(place.protocol.set_aside(is_tagged, found.id));
        let message = place.oracle(is_tagged).take(pattern).expect("it is there");
        let side = &mut self.around.of(own);
        if self.dice.below(3) == 0 {
            assert!(place.protocol.discard(side, (is_tagged, found.id)));
            return;
        }
        let len = self.dice.below(2 * message.len + 1);
        let context = {
            place.contexts += 1;
            place.contexts | (own as u128) << 100
        };
        let into: Home = Rc::new(RefCell::new(vec![0xee; len as usize]));
        let buffer = (Buffer::at(&into, 0), context);
        let taken = place.protocol.receive_found(side, (is_tagged, found.id), buffer);
        assert_eq!(taken, Ok(()));
        let len = len.min(message.len);
        let placed = vec![Placed { context, message, offset: 0, len, released: true }];
        place.posted.insert(context, Posted::Receive { into, placed, source: None, is_over: true });
    }

    pub(crate) fn cancel(&mut self, own: usize) {
        let place = &mut self.places[own];
        let waiting = [place.tagged.receives(), place.plain.receives()].concat();
        let label = match waiting.len() as u64 {
            0 => u64::MAX,
            count => waiting[self.dice.below(count) as usize] as u64,
        };
        let cancelled = place.protocol.cancel(label);
        assert_eq!(cancelled.is_some(), !waiting.is_empty());
        let Some(end) = cancelled else { return };
        self.seen.cancelled += 1;
        assert!(place.tagged.cancel(end.context) != place.plain.cancel(end.context));
        self.ended(own, end);
    }

    /// Takes the record at the head of a lane: false where there is none, or it has to stay.
    pub(crate) fn take(&mut self, own: usize, from: usize) -> bool {
        if self.around.shut_out[own].contains(&from) {
            return false;
        }
        let Some(entry) = self.around.wires[from][own].lane.front() else { return false };
        let (head, message) = (entry.head(), self.message_of(own, from));
        let mut ends = Vec::new();
        let place = &mut self.places[own];
        let side = &mut self.around.of(own);
        // What has ended before what comes now.
        place.protocol.tell_completions(&mut |end| ends.push(end));
        let taken = place.protocol.on_record(side, (from, id(from)), &head, &mut |end| {
            ends.push(end);
        });
        let taken = taken.expect("an honest remote says nothing else");
        if taken == Taken::Yes {
            self.around.wires[from][own].lane.pop_front();
            if let Some((message, is_whole)) = message {
                self.arrived(own, message, is_whole);
            }
        }
        ends.into_iter().for_each(|end| self.ended(own, end));
        taken == Taken::Yes
    }

    /// A remote sends a record; returns whether it was valid. Completions by it are not looked at.
    pub(crate) fn say(&mut self, own: usize, from: usize, head: &Head) -> bool {
        let lane = &mut self.around.wires[from][own].lane;
        lane.clear();
        lane.push_front(Entry::of(head));
        let (protocol, side) = (&mut self.places[own].protocol, &mut self.around.of(own));
        let said = protocol.on_record(side, (from, id(from)), head, &mut |_| ());
        self.around.wires[from][own].lane.clear();
        said.is_ok()
    }

    /// The message that the record at the head of a lane brings, or asks for.
    fn message_of(&self, own: usize, from: usize) -> Option<(Message, bool)> {
        let head = self.around.wires[from][own].lane.front()?.head();
        if RmaRecord::is_one(head.tag) {
            return None;
        }
        let words = *head.words.first_chunk().expect("it is shorter");
        let (record, _) = Record::parse(head.tag, words, head.len).expect("an honest remote's");
        let next = self.places[from].sent[own].get(self.places[own].came[from]);
        match record {
            Record::Short { envelope, .. } | Record::Long { envelope, .. } => {
                let message = *next.expect("it was sent");
                assert_eq!(envelope, Envelope { tag: message.tag, data: message.data });
                Some((message, true))
            }
            Record::Rts { .. } => Some((*next.expect("it was sent"), false)),
            _ => None,
        }
    }

    fn arrived(&mut self, own: usize, message: Message, is_whole: bool) {
        let place = &mut self.places[own];
        place.came[message.source] += 1;
        let is_tagged = message.tag.is_some();
        let Some(placed) = place.oracle(is_tagged).arrive(message, is_whole) else { return };
        match place.posted.get_mut(&placed.context) {
            Some(Posted::Receive { placed: all, is_over, .. }) => {
                assert!(!*is_over, "it takes no more");
                all.push(placed);
                *is_over = placed.released;
            }
            other => panic!("{placed:?} goes into {other:?}"),
        }
    }

    /// Sends what waits for room, and tells what has ended.
    pub(crate) fn push_waiting(&mut self, own: usize) -> bool {
        let mut ends = Vec::new();
        let place = &mut self.places[own];
        let mut tell = |end| ends.push(end);
        place.protocol.tell_completions(&mut tell);
        let any = place.protocol.push_waiting(&mut self.around.of(own), &mut tell);
        place.protocol.tell_completions(&mut tell);
        let any = any || !ends.is_empty();
        ends.into_iter().for_each(|end| self.ended(own, end));
        any
    }

    /// The connection between two ends: what has come is taken, everything else faults.
    pub(crate) fn kill(&mut self, one: usize, other: usize) {
        for (own, from) in [(one, other), (other, one)] {
            while self.take(own, from) {}
        }
        for (own, from) in [(one, other), (other, one)] {
            let wire = &mut self.around.wires[own][from];
            (wire.is_open, wire.is_held) = (false, false);
            wire.lane.clear();
        }
        for (own, from) in [(one, other), (other, one)] {
            let place = &mut self.places[own];
            let over = [place.tagged.end(from), place.plain.end(from)].concat();
            place.protocol.end(&mut self.around.of(own), id(from), Fault::PeerDead);
            let waited = over.iter().all(|context| place.posted.contains_key(context));
            assert!(waited, "each receive was posted");
            self.push_waiting(own);
            let place = &self.places[own];
            let are_over = over.iter().all(|context| !place.posted.contains_key(context));
            assert!(are_over, "who waits for the dead alone is told");
            assert!(place.protocol.has_completed_all(id(from)), "nothing is under way with it");
            if one == other {
                break;
            }
        }
    }
}

fn spot(own: usize, remote: usize, at: usize) -> RemoteAddress {
    let address = BASE + (own * REGION + at) as u64;
    RemoteAddress { remote: id(remote), key: KEY, address }
}

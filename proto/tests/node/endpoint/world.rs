//! Several endpoints, their programs, and what is expected of each.
use super::hosts::Hosts;
use super::memory::{Buffer, Home};
use super::oracle::{Message, Oracle, Pattern, Placed};
use super::ways::{Around, BASE, Entry, KEY, NotPosted, id};
use crate::dice::Dice;
use ayre_proto::combine::{Combine, Number};
use ayre_proto::endpoint::{
    End, Head, Outgoing, Protocol, Receive, Received, Sent, Spot, Taken, TouchKind, Touched,
    Update, What, Write,
};
use ayre_proto::envelope::{AHEAD_MIN, Envelope, Record};
use ayre_proto::fault::Fault;
use ayre_proto::touch::Touch;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of each endpoint's window that another one works on; the last eight are a number.
pub(crate) const REGION: usize = 4096;

/// What was posted and has not ended.
#[derive(Debug)]
enum Posted {
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
    /// What is to be read, if that is known.
    Read {
        from: usize,
        into: Home,
        expected: Option<Vec<u8>>,
        written: u64,
    },
    Update {
        at: usize,
        into: Option<Home>,
        expected: u64,
    },
}

/// One endpoint and its program.
struct Place {
    protocol: Protocol<Buffer>,
    tagged: Oracle,
    plain: Oracle,
    posted: BTreeMap<u128, Posted>,
    contexts: u128,
    /// By endpoint: what it was sent, in order, and how many of those have come.
    sent: Vec<Vec<Message>>,
    came: Vec<usize>,
    /// By endpoint: what is to be in its window, and how many writes and updates there were.
    there: Vec<Vec<u8>>,
    written: Vec<u64>,
    /// Bytes that others have touched, as this one was told.
    touched: u64,
}

impl Place {
    fn oracle(&mut self, is_tagged: bool) -> &mut Oracle {
        if is_tagged { &mut self.tagged } else { &mut self.plain }
    }
}

/// All of them.
pub(crate) struct World {
    pub(crate) around: Around,
    /// Where each is on a host of its own.
    hosts: Option<Hosts>,
    places: Vec<Place>,
    pub(crate) dice: Dice,
    pub(crate) seen: Seen,
}

/// What has happened, for tests to see that it has.
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

fn content(message: &Message, to: usize) -> Vec<u8> {
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
                touched: 0,
            }
        });
        let (places, dice, seen) = (places.collect(), Dice(seed), Seen::default());
        Self { around, hosts: None, places, dice, seen }
    }

    /// The same, each on a host of its own, over a network that errs.
    pub(crate) fn of_hosts(count: usize, budget: u64, seed: u64) -> Self {
        let mut world = Self::new(count, budget, seed);
        for own in 0..count {
            for to in (0..count).filter(|to| *to != own) {
                world.around.wires[own][to].lead_away();
            }
        }
        world.hosts = Some(Hosts::new(count, seed));
        world
    }

    /// Records go over the network, and come. Whether any may still.
    pub(crate) fn carry(&mut self) -> bool {
        let Self { hosts, around, .. } = self;
        hosts.as_mut().is_some_and(|hosts| hosts.carry(around))
    }

    /// Frames that the network has lost, or that went in vain.
    pub(crate) fn again(&self) -> u64 {
        self.hosts.as_ref().map_or(0, Hosts::again)
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
        let outgoing = Outgoing { tag, data, bytes, context, delivered };
        let place = &mut self.places[own];
        let before = self.around.lent.len();
        match place.protocol.send(&mut self.around.of(own), (id(to), to), &outgoing) {
            Ok(sent) => {
                place.sent[to].push(message);
                let lent = self.around.lent.keys().next_back().map(|(_, address)| *address);
                let lent = lent.filter(|_| self.around.lent.len() > before);
                match sent {
                    Sent::Gone => assert!(!delivered, "its end is to be told"),
                    Sent::UnderWay => {
                        let last = self.around.lent.range((own, 0)..=(own, u64::MAX)).next_back();
                        let lent = lent.and(last).map(|((_, address), _)| *address);
                        place.posted.insert(context, Posted::Send { to, lent });
                    }
                }
                true
            }
            Err(NotPosted::Full) => {
                self.seen.full += 1;
                while self.around.lent.len() > before {
                    let last = self.around.lent.range((own, 0)..=(own, u64::MAX)).next_back();
                    let key = last.map(|(key, _)| *key).expect("it was lent");
                    self.around.lent.remove(&key);
                }
                false
            }
            Err(NotPosted::Fault(why)) => {
                assert_eq!(why, Fault::NoMemory);
                false
            }
        }
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
        let receive =
            Receive { source: source.map(id), tag, into: Buffer::at(&into, cut), context, many };
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
        let write = Write { bytes: buffer, data: Some(len as u64), context, inject };
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
            let expected = Some(expected);
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
        let update = Update {
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
        place.protocol.tell_ended(&mut |end| ends.push(end));
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

    /// A remote says something: whether it could be. What ends by it is not looked at.
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
        if Touch::is_one(head.tag) {
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
            Record::Ask { .. } => Some((*next.expect("it was sent"), false)),
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
                all.push(placed);
                *is_over |= placed.released;
            }
            other => panic!("{placed:?} goes into {other:?}"),
        }
    }

    /// Sends what waits for room, and tells what has ended.
    pub(crate) fn push_on(&mut self, own: usize) -> bool {
        let mut ends = Vec::new();
        let place = &mut self.places[own];
        let mut tell = |end| ends.push(end);
        place.protocol.tell_ended(&mut tell);
        let any = place.protocol.push_on(&mut self.around.of(own), &mut tell);
        place.protocol.tell_ended(&mut tell);
        let any = any || !ends.is_empty();
        ends.into_iter().for_each(|end| self.ended(own, end));
        any
    }

    /// An end is told: it is what was expected.
    fn ended(&mut self, own: usize, end: End) {
        if let What::Touched(touched) = end.what {
            return self.on_touched(own, touched);
        }
        let place = &mut self.places[own];
        let posted = place.posted.remove(&end.context);
        let posted = posted.unwrap_or_else(|| panic!("{end:?} was not posted, or has ended"));
        let is_alive = |around: &Around, with: usize| around.wires[own][with].is_open;
        match (posted, end.what) {
            (Posted::Send { to, lent }, What::Sent) => {
                assert!(end.result.is_ok() || !is_alive(&self.around, to), "{end:?}");
                lent.map(|address| self.around.lent.remove(&(own, address)));
            }
            (Posted::Write { to }, What::Written) => {
                assert!(end.result.is_ok() || !is_alive(&self.around, to), "{end:?}");
            }
            (Posted::Read { from, into, expected, written }, What::Read) => {
                let is_short = into.borrow().len() <= 512;
                let is_known = is_short || written == place.written[from];
                if end.result.is_ok() && is_known {
                    assert!(Some(into.take()) == expected, "it has what was there");
                }
                assert!(end.result.is_ok() || !is_alive(&self.around, from), "{end:?}");
            }
            (Posted::Update { at, into, expected }, What::Updated) => {
                if let (Some(into), Ok(())) = (into, end.result) {
                    assert_eq!(into.take(), expected.to_le_bytes(), "what was there before");
                }
                assert!(end.result.is_ok() || !is_alive(&self.around, at), "{end:?}");
            }
            (Posted::Receive { into, placed, source, .. }, What::Cancelled) => {
                assert_eq!(end.result, Ok(()));
                // What it has taken before still comes.
                if !placed.is_empty() {
                    let posted = Posted::Receive { into, placed, source, is_over: true };
                    place.posted.insert(end.context, posted);
                }
            }
            (Posted::Receive { into, placed, source, is_over }, What::Received(received)) => {
                self.on_received(own, end, (into, placed, source, is_over), received);
            }
            (posted, what) => panic!("{posted:?} ends as {what:?}"),
        }
    }

    fn on_received(
        &mut self,
        own: usize,
        end: End,
        (into, mut placed, source, is_over): (Home, Vec<Placed>, Option<usize>, bool),
        received: Received,
    ) {
        if let Err(why) = end.result {
            self.seen.dead += 1;
            assert_eq!(why, Fault::PeerDead);
            let of = received.source.map(|of| of.index()).or(source).expect("somebody died");
            assert!(!self.around.wires[own][of].is_open, "it is dead");
            if let Some(from) = received.source {
                let is_it =
                    |it: &Placed| (id(it.message.source), it.offset) == (from, received.offset);
                placed.remove(placed.iter().position(is_it).expect("it was coming"));
            }
        } else {
            let is_it = |it: &Placed| {
                let Message { source, tag, data, len, .. } = it.message;
                let told = (received.source, received.tag, received.data, received.len);
                told == (Some(id(source)), tag, data, len)
                    && (received.offset, received.placed) == (it.offset, it.len)
            };
            let at = placed.iter().position(is_it);
            let at = at.unwrap_or_else(|| panic!("{received:?} is none of {placed:?}"));
            let Placed { message, offset, len, .. } = placed.remove(at);
            self.seen.received += 1;
            self.seen.cut += u64::from(len < message.len);
            if received.released {
                let (from, to) = (offset as usize, (offset + len) as usize);
                let bytes = content(&message, own);
                assert!(into.borrow()[from..to] == bytes[..len as usize], "{message:?}");
            }
        }
        if received.released {
            assert!(placed.is_empty(), "{received:?} is the last one, {placed:?} are not");
        } else {
            let posted = Posted::Receive { into, placed, source, is_over };
            self.places[own].posted.insert(end.context, posted);
        }
    }

    fn on_touched(&mut self, own: usize, touched: Touched) {
        let Touched { source, key, kind, len, data } = touched;
        assert_eq!(key, KEY);
        assert!(self.around.wires[own].len() > source.index());
        match kind {
            TouchKind::Wrote => assert_eq!(data, Some(len), "what came along"),
            TouchKind::Updated | TouchKind::Fetched => assert_eq!(len, 8),
            TouchKind::Read => assert!(len <= REGION as u64),
        }
        self.places[own].touched += 1;
        self.seen.touched += 1;
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
            self.push_on(own);
            let place = &self.places[own];
            let are_over = over.iter().all(|context| !place.posted.contains_key(context));
            assert!(are_over, "who waits for the dead alone is told");
            assert!(place.protocol.has_ended_all(id(from)), "nothing is under way with it");
            if one == other {
                break;
            }
        }
    }

    /// Everything goes on until nothing more happens.
    pub(crate) fn settle(&mut self) {
        let count = self.count();
        loop {
            let mut any = self.carry();
            for own in 0..count {
                any |= self.push_on(own);
                for from in 0..count {
                    while self.take(own, from) {
                        any = true;
                    }
                }
            }
            if !any {
                return;
            }
        }
    }

    /// Receives for all that has come are posted; then nothing is under way, and all windows are as
    /// they are to be.
    pub(crate) fn finish(&mut self) {
        self.settle();
        for own in 0..self.count() {
            for tag in [Some((0, u64::MAX)), None] {
                while self.places[own].oracle(tag.is_some()).messages() > 0 {
                    self.receive_of(own, Pattern { source: None, tag }, (100_000, None, 0));
                }
            }
            while !self.places[own].tagged.receives().is_empty()
                || !self.places[own].plain.receives().is_empty()
            {
                self.cancel(own);
                self.settle();
            }
        }
        self.settle();
        assert!(self.around.lent.is_empty(), "each message that asked has ended");
        assert_eq!(self.around.trials, 0, "each that was timed was told of");
        for own in 0..self.count() {
            let place = &self.places[own];
            let left: Vec<_> = place.posted.iter().take(3).collect();
            assert!(left.is_empty(), "{own}: {left:?}");
            assert_eq!(place.protocol.under_way(), 0);
            assert!(!place.protocol.waits_for_room());
            assert_eq!(place.protocol.curbed(), 0);
            for to in (0..self.count()).filter(|to| self.around.wires[own][*to].is_open) {
                let there = &self.around.windows[to][own * REGION..(own + 1) * REGION];
                assert!(place.there[to] == there, "{own} has written to {to}");
                assert_eq!(self.places[to].protocol.kept_of(id(own)), 0);
            }
        }
    }
}

fn spot(own: usize, remote: usize, at: usize) -> Spot {
    let address = BASE + (own * REGION + at) as u64;
    Spot { remote: id(remote), key: KEY, address }
}

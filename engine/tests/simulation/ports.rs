//! Ports of one process on a simulated network that errs: puts, gets, atomics, notifications,
//! messages and waits, all by one thread.
use super::common::random::{Random, fill};
use super::common::simulated::{assert_repeatable, bad_mesh, rounds};
use ayre::memory::{Atomic, AtomicOp, Width};
use ayre::{
    Fault, Message, Notification, PeerId, Port, PostError, PostOptions, ReceiveError, Region,
    RegionOptions, RemoteRegion, Rights, Simulation,
};
use std::time::Duration;

const PORTS: usize = 3;
/// Rounds, in each of which each port is polled once and may do something.
const ROUNDS: usize = 600;
/// Rounds after which what has not ended by then is taken never to.
const PATIENCE: usize = 4_000_000;
/// Bits of the longest transfer's length, and of the longest message's.
const LENGTH_BITS: u64 = 16;
const MESSAGE_BITS: u64 = 9;
/// Bits of the longest wait for a message, in nanoseconds.
const WAIT_BITS: u64 = 18;
/// Of each port's memory: a counter that all add to, then a part for each writer, and its own.
const COUNTER: usize = 8;
const PART: usize = 1 << LENGTH_BITS;

struct Side {
    port: Port,
    region: Region,
    /// Memory of each port, as this one reaches it; of itself, none.
    remotes: Vec<Option<RemoteRegion>>,
    added: u64,
    /// The contents of this one's part of each port's memory once all its puts have ended.
    written: [Vec<u8>; PORTS],
    /// Messages to each port, and those of each.
    sent: [u64; PORTS],
    received: [u64; PORTS],
}

impl Side {
    /// Of the messages of one sender, the next one has come, as it was sent.
    fn take(&mut self, own: usize, message: Message, bytes: &[u8]) -> Found {
        let from = message.source.index();
        let bytes = &bytes[..message.len];
        assert_eq!(message.tag as usize, message.len, "the sender's tag is the length");
        let mut due = vec![0; message.len];
        fill(&mut due, from as u64, own as u64, self.received[from]);
        assert_eq!(bytes, due, "message {} of {from} to {own}", self.received[from]);
        self.received[from] += 1;
        Found::Message(message, due)
    }
}

/// An event at a port, and its time by the network's clock.
#[derive(Debug, PartialEq)]
enum Found {
    Message(Message, Vec<u8>),
    Nothing,
    Note(Notification),
    Flushed(Result<(), Fault>),
    Value(u64),
}

struct Run {
    dice: Random,
    simulation: Simulation,
    sides: Vec<Side>,
    log: Vec<(Duration, usize, Found)>,
}

/// The outcome, if it was posted: the network loses no operation, and nobody dies.
fn posted<T>(result: Result<T, PostError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(PostError::Busy(_)) => None,
        Err(PostError::Fault(fault)) => panic!("all live: {fault}"),
    }
}

fn is_posted<T>(result: Result<T, PostError>) -> bool {
    posted(result).is_some()
}

fn id(at: usize) -> PeerId {
    PeerId(at as u16)
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Random::new(seed);
        let (simulation, mut ports) = bad_mesh(&mut dice, seed, PORTS as u16);
        let regions = ports.iter_mut().map(|port| {
            let len = COUNTER + (PORTS + 1) * PART;
            port.alloc(len, RegionOptions::new()).expect("there is memory")
        });
        let regions: Vec<_> = regions.collect();
        for (at, port) in ports.iter_mut().enumerate() {
            for to in (0..PORTS).filter(|to| *to != at) {
                let all = 0..regions[at].len();
                port.share(id(to), &regions[at], all, Rights::all(), 1).expect("a grant");
            }
        }
        let sides = ports.into_iter().zip(regions).enumerate().map(|(at, (mut port, region))| {
            let remotes = (0..PORTS).map(|from| {
                (from != at).then(|| port.accept_region(id(from), 1).expect("it was shared"))
            });
            let remotes = remotes.collect();
            let written = [(); PORTS].map(|()| vec![0; PART]);
            let (sent, received) = ([0; PORTS], [0; PORTS]);
            Side { port, region, remotes, added: 0, written, sent, received }
        });
        Self { dice, sides: sides.collect(), simulation, log: Vec::new() }
    }

    fn act(&mut self, at: usize) {
        let to = (at + 1 + self.dice.below(PORTS as u64 - 1) as usize) % PORTS;
        match self.dice.below(40) {
            0..5 => self.put(at, to),
            5..8 => self.get(at, to),
            8..12 => self.add(at, to),
            12..16 => self.send(at, to),
            16..18 => self.notify(at, to),
            18 => self.flush(at, to),
            19 => self.fetch(at, to),
            20 => self.wait(at),
            _ => {}
        }
    }

    fn options(&mut self) -> PostOptions {
        let options = PostOptions::new().tag(self.dice.below(9) as u32).value(self.dice.word());
        match self.dice.below(4) {
            0 => options.completer(),
            1 => options.requester(),
            _ => options,
        }
    }

    /// Writes into this one's part of the other's memory.
    fn put(&mut self, at: usize, to: usize) {
        let (len, options) = (self.dice.scaled(LENGTH_BITS) as usize, self.options());
        let mut bytes = vec![0; len];
        fill(&mut bytes, at as u64, to as u64, self.dice.word());
        let Side { port, remotes, written, .. } = &mut self.sides[at];
        let remote = remotes[to].as_ref().expect("another one");
        if is_posted(port.put(remote, (COUNTER + at * PART) as u64, &bytes, options)) {
            written[to][..len].copy_from_slice(&bytes);
        }
    }

    /// Reads this one's part of the other's memory.
    fn get(&mut self, at: usize, from: usize) {
        let (len, options) = (self.dice.scaled(LENGTH_BITS) as usize, self.options());
        let Side { port, remotes, region, .. } = &mut self.sides[at];
        let remote = remotes[from].as_ref().expect("another one");
        let into = region.slice(COUNTER + PORTS * PART..COUNTER + PORTS * PART + len);
        is_posted(port.get(remote, (COUNTER + at * PART) as u64, into, options));
    }

    fn add(&mut self, at: usize, to: usize) {
        let options = self.options();
        let Side { port, remotes, added, .. } = &mut self.sides[at];
        let remote = remotes[to].as_ref().expect("another one");
        let one = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 1, compare: 0 };
        *added += u64::from(is_posted(port.atomic(remote, 0, one, options)));
    }

    fn send(&mut self, at: usize, to: usize) {
        let len = 1 + self.dice.below((1 << MESSAGE_BITS) - 1) as usize;
        let Side { port, sent, .. } = &mut self.sides[at];
        let mut bytes = vec![0; len];
        fill(&mut bytes, at as u64, to as u64, sent[to]);
        sent[to] += u64::from(is_posted(port.send(id(to), len as u32, &bytes)));
    }

    fn notify(&mut self, at: usize, to: usize) {
        let options = self.options();
        is_posted(self.sides[at].port.notify(id(to), options.completer()));
    }

    /// Waits until all that this one has posted to the other has ended; nobody polls that one
    /// meanwhile.
    fn flush(&mut self, at: usize, to: usize) {
        let flushed = self.sides[at].port.flush(id(to));
        self.log.push((self.simulation.now(), at, Found::Flushed(flushed)));
    }

    fn fetch(&mut self, at: usize, to: usize) {
        let Side { port, remotes, added, .. } = &mut self.sides[at];
        let remote = remotes[to].as_ref().expect("another one");
        if let Some(value) = posted(port.fetch_add(remote, 0, 1)) {
            *added += 1;
            self.log.push((self.simulation.now(), at, Found::Value(value)));
        }
    }

    /// Waits for a message, which may not come: as nobody polls the others, they send none.
    fn wait(&mut self, at: usize) {
        let time = Duration::from_nanos(self.dice.scaled(WAIT_BITS));
        let side = &mut self.sides[at];
        let mut bytes = [0; 1 << MESSAGE_BITS];
        let found = match side.port.recv(&mut bytes, Some(time)) {
            Ok(message) => side.take(at, message, &bytes),
            Err(ReceiveError::TimedOut) => Found::Nothing,
            Err(error) => panic!("it is long enough, and all live: {error}"),
        };
        self.log.push((self.simulation.now(), at, found));
    }

    fn poll(&mut self) {
        let Self { sides, simulation, log, .. } = self;
        for (at, side) in sides.iter_mut().enumerate() {
            let mut bytes = [0; 1 << MESSAGE_BITS];
            side.port.progress();
            while let Some(message) = side.port.try_recv(&mut bytes).expect("it is long enough") {
                let found = side.take(at, message, &bytes);
                log.push((simulation.now(), at, found));
            }
            while let Some(note) = side.port.poll_notification() {
                log.push((simulation.now(), at, Found::Note(note)));
            }
        }
    }

    fn is_over(&self) -> bool {
        let sent: u64 = self.sides.iter().flat_map(|side| side.sent).sum();
        let received: u64 = self.sides.iter().flat_map(|side| side.received).sum();
        let is_flushed = |(at, side): (usize, &Side)| {
            (0..PORTS).filter(|to| *to != at).all(|to| side.port.is_flushed(id(to)))
        };
        sent == received && self.sides.iter().enumerate().all(is_flushed)
    }

    /// Each part of each port's memory holds what its writer has put there, and nothing else.
    fn assert_written(&self) {
        for (to, side) in self.sides.iter().enumerate() {
            for (at, writer) in self.sides.iter().enumerate() {
                let mut have = vec![0; PART];
                side.region.read(COUNTER + at * PART, &mut have);
                let wrong =
                    have.iter().zip(&writer.written[to]).position(|(have, due)| have != due);
                assert_eq!(wrong, None, "a byte of what {at} has put into the memory of {to}");
                assert_eq!(writer.sent[to], side.received[at], "messages of {at} to {to}");
            }
        }
    }

    /// The events of all ports, and the counters of the network.
    fn go(mut self) -> (Vec<(Duration, usize, Found)>, u64, Duration) {
        for _ in 0..rounds(ROUNDS) {
            (0..PORTS).for_each(|at| self.act(at));
            self.poll();
        }
        let over = (0..PATIENCE).find(|_| {
            self.poll();
            self.is_over()
        });
        assert!(over.is_some(), "something never ends at {:?}", self.simulation.now());
        let added: u64 = self.sides.iter().map(|side| side.added).sum();
        let counted: u64 = self.sides.iter().map(|side| side.region.load(0)).sum();
        assert_eq!(counted, added, "each was added once");
        self.assert_written();
        (self.log, self.simulation.course(), self.simulation.now())
    }
}

// spec: NET-8, NET-9, PUT-1, ATOM-1, MSG-3, MSG-4
#[test]
fn a_seed_brings_the_same_operations_of_ports_back() {
    assert_repeatable(|seed| Run::new(seed).go());
}

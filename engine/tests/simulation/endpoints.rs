//! Endpoints of one process on a simulated network that errs: messages, writes, reads and updates,
//! all polled by one thread.
use super::common::random::{Random, fill};
use super::common::simulated::{Named, assert_repeatable, rounds};
use ayre::collective::{Combine, Number};
use ayre::endpoint::RemoteId;
use ayre::endpoint::raw::{
    Completion, CompletionKind, MemoryRegion, MemoryRegions, OutgoingMessage, PostedReceive,
    RawEndpoint, RemoteAddress, RmaUpdate, RmaWrite, Sent, Span, Spans,
};
use ayre::{EndpointOptions, PostError, Rights, Simulation, Spin};
use std::time::Duration;

const SIDES: usize = 3;
/// Rounds, in each of which each endpoint is polled once and may post something.
const ROUNDS: usize = 600;
/// Rounds after which what has not ended by then is taken never to.
const PATIENCE: usize = 4_000_000;
/// Bits of the longest message's length, and of the longest write's.
const LENGTH_BITS: u64 = 20;
const WRITE_BITS: u64 = 17;
const KEY: u64 = 7;
const BASE: u64 = 1 << 32;
/// The counter that all add to stands before what each writes.
const COUNTER: usize = 8;

/// Memory that an operation works with until it has ended.
struct Bytes(Vec<u8>);

impl Bytes {
    fn spans(&mut self) -> Spans {
        // SAFETY: they stay where they are, and untouched, until all operations have ended.
        unsafe { Span::new(self.0.as_mut_ptr(), self.0.len()) }.into()
    }
}

/// The two sides of a comparison, once all has ended.
struct Due {
    have: usize,
    want: Vec<u8>,
}

struct Side {
    endpoint: RawEndpoint,
    remotes: Vec<RemoteId>,
    kept: Vec<Bytes>,
    due: Vec<Due>,
    /// Lengths of the messages that were sent to each of the others; and how many of each of theirs
    /// this one has posted receives for.
    sent: [Vec<usize>; SIDES],
    received: [usize; SIDES],
    added: u64,
    under_way: usize,
}

impl Side {
    fn keep(&mut self, bytes: Vec<u8>) -> (usize, Spans) {
        self.kept.push(Bytes(bytes));
        let place = self.kept.len() - 1;
        (place, self.kept[place].spans())
    }
}

fn content(from: usize, to: usize, number: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(&mut bytes, from as u64, to as u64, number as u64);
    bytes
}

/// An event at an endpoint, and its time by the network's clock.
type Told = (Duration, usize, Completion);

struct Run {
    dice: Random,
    simulation: Simulation,
    sides: Vec<Side>,
    /// The counter and the part of each writer, at each endpoint.
    windows: Vec<(MemoryRegions, Bytes)>,
    log: Vec<Told>,
}

/// Whether it was posted, and whether its end will be told.
fn posted(result: Result<bool, PostError>) -> Option<bool> {
    match result {
        Ok(is_told) => Some(is_told),
        Err(PostError::Busy(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Random::new(seed);
        let simulation = Simulation::with_seed(Duration::from_micros(5), seed);
        let plan = format!("loss={}%,dup=2%,reorder=5%,corrupt=1%,jitter=20us", dice.below(8));
        let is_plain = dice.below(2) == 0;
        let endpoints = (0..SIDES as u64).map(|number| {
            let faults = format!("{plan},seed={}", seed.wrapping_add(number));
            let options = EndpointOptions::new().simulated(&simulation).linger(Duration::ZERO);
            let options = options.spin(Spin::SHARED).faults(faults.parse().expect("a plan"));
            let options = if is_plain { options.plain() } else { options };
            RawEndpoint::open_with(&options).expect("an endpoint")
        });
        let mut endpoints: Vec<_> = endpoints.collect();
        let addresses: Vec<_> = endpoints.iter().map(RawEndpoint::address).collect();
        let windows: Vec<_> = endpoints.iter_mut().map(expose).collect();
        let sides = endpoints.into_iter().map(|mut endpoint| {
            let remote = |address| endpoint.remote(address).expect("it is reached");
            let remotes = addresses.iter().map(remote).collect();
            let (kept, due, sent) = (Vec::new(), Vec::new(), [const { Vec::new() }; SIDES]);
            let (received, added, under_way) = ([0; SIDES], 0, 0);
            Side { endpoint, remotes, kept, due, sent, received, added, under_way }
        });
        Self { dice, sides: sides.collect(), simulation, windows, log: Vec::new() }
    }

    /// One of the others.
    fn other(&mut self, at: usize) -> usize {
        (at + 1 + self.dice.below(SIDES as u64 - 1) as usize) % SIDES
    }

    fn act(&mut self, at: usize) {
        let to = self.other(at);
        match self.dice.below(40) {
            0..8 => self.send(at, to),
            8..16 => self.receive(at, to),
            16..19 => self.write_and_read(at, to),
            19..22 => self.add(at, to),
            _ => {}
        }
    }

    fn send(&mut self, from: usize, to: usize) {
        let (len, is_delivered) = (self.dice.scaled(LENGTH_BITS) as usize, self.dice.below(2) == 0);
        let side = &mut self.sides[from];
        let number = side.sent[to].len();
        let (_, bytes) = side.keep(content(from, to, number, len));
        let (tag, context) = (Some((from << 32 | number) as u64), number as u128);
        let message = OutgoingMessage { tag, data: None, bytes, context, delivered: is_delivered };
        let sent = side.endpoint.send(side.remotes[to], &message);
        if let Some(is_told) = posted(sent.map(|sent| sent == Sent::Pending)) {
            side.sent[to].push(len);
            side.under_way += usize::from(is_told);
        }
    }

    /// Takes the next message that the other one has sent.
    fn receive(&mut self, at: usize, from: usize) {
        let number = self.sides[at].received[from];
        let Some(len) = self.sides[from].sent[at].get(number).copied() else { return };
        let side = &mut self.sides[at];
        let (have, into) = side.keep(vec![0; len]);
        let tag = Some(((from << 32 | number) as u64, 0));
        let receive =
            PostedReceive { source: None, tag, into, context: number as u128, many: None };
        side.endpoint.receive(receive).expect("there is room");
        side.received[from] += 1;
        side.under_way += 1;
        side.due.push(Due { have, want: content(from, at, number, len) });
    }

    /// Writes to this one's part of the other's window, and reads that.
    fn write_and_read(&mut self, at: usize, to: usize) {
        let len = self.dice.scaled(WRITE_BITS) as usize;
        let side = &mut self.sides[at];
        let want = content(at, to, side.kept.len(), len);
        let (_, bytes) = side.keep(want.clone());
        let address = BASE + (COUNTER + (at << WRITE_BITS)) as u64;
        let spot = RemoteAddress { remote: side.remotes[to], key: KEY, address };
        let write = RmaWrite { bytes, data: None, context: 1 << 64, inject: false };
        if posted(side.endpoint.write(spot, &write).map(|_| true)).is_none() {
            return;
        }
        side.under_way += 1;
        let (have, into) = side.keep(vec![0; len]);
        if posted(side.endpoint.read(spot, into, 2 << 64).map(|()| true)).is_some() {
            side.under_way += 1;
            // Later writes may come between the parts of a longer one.
            if len <= RawEndpoint::prompt_read_max() {
                side.due.push(Due { have, want });
            }
        }
    }

    fn add(&mut self, at: usize, to: usize) {
        let side = &mut self.sides[at];
        let (_, operand) = side.keep(1_u64.to_le_bytes().to_vec());
        let (op, number) = (Combine::Sum, Number::U64);
        let compare = Spans::default();
        let context = 3 << 64;
        let update = RmaUpdate { op, number, operand, compare, result: None, data: None, context };
        let spot = RemoteAddress { remote: side.remotes[to], key: KEY, address: BASE };
        if posted(side.endpoint.update(spot, &update).map(|()| true)).is_some() {
            side.under_way += 1;
            side.added += 1;
        }
    }

    fn poll(&mut self) {
        let Self { sides, simulation, log, .. } = self;
        for (at, side) in sides.iter_mut().enumerate() {
            let Side { endpoint, under_way, .. } = side;
            endpoint.progress(|end| {
                assert_eq!(end.result, Ok(()), "{end:?}");
                *under_way -= usize::from(!matches!(end.what, CompletionKind::RmaEvent(_)));
                log.push((simulation.now(), at, end));
            });
        }
    }

    /// Whether a receive was posted for each message.
    fn is_received(&self) -> bool {
        let Self { sides, .. } = self;
        pairs().all(|(at, from)| sides[at].received[from] == sides[from].sent[at].len())
    }

    /// The events at all endpoints, and the counters of the network.
    fn go(mut self) -> (Vec<Told>, u64, Duration) {
        for _ in 0..rounds(ROUNDS) {
            (0..SIDES).for_each(|at| self.act(at));
            self.poll();
        }
        let over = (0..PATIENCE).find(|_| {
            pairs().for_each(|(at, from)| self.receive(at, from));
            self.poll();
            let is_all = |side: &Side| side.under_way == 0 && side.endpoint.under_way() == 0;
            self.is_received() && self.sides.iter().all(is_all)
        });
        assert!(over.is_some(), "something never ends at {:?}", self.simulation.now());
        for side in &self.sides {
            let have = |due: &Due| side.kept[due.have].0 == due.want;
            assert!(side.due.iter().all(have), "each is as it was sent");
        }
        let added: u64 = self.sides.iter().map(|side| side.added).sum();
        let counted = self.windows.iter().map(|(windows, memory)| {
            windows.withdraw(KEY);
            u64::from_le_bytes(*memory.0.first_chunk().expect("a counter"))
        });
        assert_eq!(counted.sum::<u64>(), added, "each was added once");
        (self.log, self.simulation.course(), self.simulation.now())
    }
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..SIDES).flat_map(|one| (0..SIDES).map(move |other| (one, other)))
}

fn expose(endpoint: &mut RawEndpoint) -> (MemoryRegions, Bytes) {
    let (windows, mut memory) =
        (MemoryRegions::new(), Bytes(vec![0; COUNTER + (SIDES << WRITE_BITS)]));
    // SAFETY: they stay where they are until the window is withdrawn.
    let whole = unsafe { Span::new(memory.0.as_mut_ptr(), memory.0.len()) };
    let window = MemoryRegion { key: KEY, base: BASE, memory: vec![whole], rights: Rights::all() };
    windows.expose(window).expect("there is room");
    endpoint.share(&windows);
    (windows, memory)
}

// spec: NET-8, NET-9, ENV-4, ENV-24, ENV-25, ENV-28
#[test]
fn a_seed_brings_the_same_operations_of_endpoints_back() {
    assert_repeatable(|seed| Run::new(seed).go());
}

// spec: NET-9
#[test]
fn other_seeds_take_another_course() {
    let _named = Named(1);
    let [(one, ..), (other, ..)] = [1, 2].map(|seed| Run::new(seed).go());
    let kinds = |what: fn(&CompletionKind) -> bool| one.iter().any(|(_, _, end)| what(&end.what));
    assert!(
        kinds(|what| matches!(what, CompletionKind::Sent))
            && kinds(|what| *what == CompletionKind::Read)
    );
    assert!(
        kinds(|what| *what == CompletionKind::Updated)
            && kinds(|what| matches!(what, CompletionKind::Received(_)))
    );
    assert_ne!(one, other);
}

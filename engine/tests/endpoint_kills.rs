//! A process is killed at any instruction, while operations of all kinds are pending between four.
//! The others are told, their own operations go on unharmed, and no resource stays behind.
mod common;

use ayre::collective::{Combine, Number};
use ayre::endpoint::raw::{
    Completion, CompletionKind, MemoryRegion, MemoryRegions, OutgoingMessage, PostedReceive,
    RawEndpoint, RemoteAddress, RmaUpdate, RmaWrite, Sent, Span, Spans,
};
use ayre::endpoint::{Address, RemoteId};
use ayre::{EndpointOptions, Fault, PostError, Rights, Spin};
use common::random::fill;
use common::system::held;
use common::{Line, Process, Random, iterations, with_processes};
use std::fs;
use std::time::Duration;

const PROCESSES: u64 = 4;
const KEY: u64 = 9;
/// Bytes of a window that each process writes.
const SHARE: usize = 10_000;
const LONGEST: usize = 70_000;
/// Bytes of a plain message.
const PLAIN: usize = 100;
/// Operations that have ended with each other one before the kill, and again after it.
const ENOUGH: u64 = 60;

/// An operation that a process repeats with another one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Send,
    SendPlain,
    Receive,
    Write,
    Read,
    Update,
    /// Plain messages of anybody.
    ReceiveMany,
}

const KINDS: [Kind; 6] =
    [Kind::Send, Kind::SendPlain, Kind::Receive, Kind::Write, Kind::Read, Kind::Update];

/// An operation and its memory.
struct Slot {
    kind: Kind,
    /// The number of the process it is done with.
    with: usize,
    bytes: Vec<u8>,
    is_under_way: bool,
    /// How many have been done.
    done: u64,
}

struct Member {
    own: usize,
    endpoint: RawEndpoint,
    /// By number; its own is itself.
    remotes: Vec<RemoteId>,
    slots: Vec<Slot>,
    ended: [u64; PROCESSES as usize],
    dead: Option<usize>,
    random: Random,
}

fn span(bytes: &mut [u8]) -> Span {
    // SAFETY: slots keep their memory, and keep off it, until their operations have ended, and the
    // window's memory outlives the endpoint.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }
}

impl Slot {
    fn new(kind: Kind, with: usize) -> Self {
        Self { kind, with, bytes: vec![0; LONGEST], is_under_way: false, done: 0 }
    }

    fn spans(&mut self, len: usize) -> Spans {
        span(&mut self.bytes[..len]).into()
    }
}

impl Member {
    fn new(own: usize, endpoint: RawEndpoint, remotes: Vec<RemoteId>) -> Self {
        let others = (0..PROCESSES as usize).filter(|other| *other != own);
        let pairs = others.flat_map(|other| KINDS.map(|kind| Slot::new(kind, other)));
        let slots = pairs.chain([Slot::new(Kind::ReceiveMany, own)]).collect();
        let (ended, random) = ([0; PROCESSES as usize], Random::new(own as u64));
        Self { own, endpoint, remotes, slots, ended, dead: None, random }
    }

    /// Posts what is not under way, and takes what has ended.
    fn go_on(&mut self) {
        for index in 0..self.slots.len() {
            let Slot { is_under_way, with, .. } = self.slots[index];
            if is_under_way || self.dead == Some(with) {
                continue;
            }
            match self.post(index) {
                Ok(is_under_way) => {
                    self.slots[index].is_under_way = is_under_way;
                    self.slots[index].done += u64::from(!is_under_way);
                }
                Err(PostError::Busy(_)) => {}
                Err(PostError::Fault(fault)) => self.died(with, fault),
            }
        }
        let mut ends = Vec::new();
        self.endpoint.progress(|end| ends.push(end));
        ends.iter().for_each(|end| self.take(end));
        std::thread::yield_now();
    }

    /// Whether its end will be told.
    fn post(&mut self, index: usize) -> Result<bool, PostError> {
        let Self { own, endpoint, remotes, slots, random, .. } = self;
        let slot = &mut slots[index];
        let (to, context, data) = (remotes[slot.with], index as u128, Some(slot.done));
        let spot = |address| RemoteAddress { remote: to, key: KEY, address: address as u64 };
        let long = 1 + random.scaled(16) as usize;
        let short = 1 + random.scaled(13) as usize;
        match slot.kind {
            Kind::Send | Kind::SendPlain => {
                let is_plain = slot.kind == Kind::SendPlain;
                let len = if is_plain { PLAIN } else { long };
                fill(&mut slot.bytes[..len], *own as u64, slot.with as u64, slot.done);
                let tag = (!is_plain).then_some(*own as u64);
                let bytes = slot.spans(len);
                let message = OutgoingMessage { tag, data, bytes, context, delivered: false };
                Ok(endpoint.send(to, &message)? == Sent::Pending)
            }
            Kind::Receive => {
                let (source, tag) = (Some(to), Some((slot.with as u64, 0)));
                let into = slot.spans(LONGEST);
                endpoint.receive(PostedReceive { source, tag, into, context, many: None })?;
                Ok(true)
            }
            Kind::ReceiveMany => {
                let (into, many) = (slot.spans(10 * PLAIN), Some(PLAIN as u64));
                endpoint.receive(PostedReceive { source: None, tag: None, into, context, many })?;
                Ok(true)
            }
            Kind::Write => {
                let bytes = slot.spans(short);
                let write = RmaWrite { bytes, data: None, context, inject: false };
                endpoint.write(spot(*own * SHARE), &write).map(|_| true)
            }
            Kind::Read => {
                let into = slot.spans(short);
                endpoint.read(spot(0), into, context).map(|()| true)
            }
            Kind::Update => {
                let (one, old) = slot.bytes.split_at_mut(8);
                one.copy_from_slice(&1_u64.to_le_bytes());
                let update = RmaUpdate {
                    op: Combine::Sum,
                    number: Number::U64,
                    operand: span(one).into(),
                    compare: Spans::default(),
                    result: Some(span(&mut old[..8]).into()),
                    data: None,
                    context,
                };
                let address = PROCESSES as usize * SHARE + 8 * *own;
                endpoint.update(spot(address), &update).map(|()| true)
            }
        }
    }

    fn take(&mut self, end: &Completion) {
        if matches!(end.what, CompletionKind::RmaEvent(_)) {
            return;
        }
        let index = end.context as usize;
        let slot = &mut self.slots[index];
        assert!(slot.is_under_way, "{end:?}");
        let mut with = slot.with;
        slot.is_under_way = false;
        if let Err(fault) = end.result {
            return self.died(with, fault);
        }
        if let CompletionKind::Received(received) = end.what {
            let source = self.remotes.iter().position(|remote| Some(*remote) == received.source);
            with = source.expect("all are known");
            slot.is_under_way = !received.released;
            assert_eq!(received.placed, received.len);
            let at = received.offset as usize;
            let bytes = &slot.bytes[at..at + received.len as usize];
            let mut due = vec![0; bytes.len()];
            fill(&mut due, with as u64, self.own as u64, received.data.expect("its number"));
            assert!(bytes == due, "{received:?}");
        }
        if slot.kind == Kind::Update {
            assert_eq!(slot.bytes[8..16], slot.done.to_le_bytes(), "nobody else counts there");
        }
        slot.done += 1;
        self.ended[with] += 1;
    }

    fn died(&mut self, who: usize, fault: Fault) {
        assert_eq!(fault, Fault::PeerDead);
        assert!(self.dead.is_none_or(|dead| dead == who), "{who} lives");
        self.dead = Some(who);
    }

    /// Goes on until enough has ended with everybody who lives.
    fn do_enough(&mut self) {
        let wanted = self.ended.map(|ended| ended + ENOUGH);
        let is_due = |member: &Self, other: usize| {
            other != member.own && member.dead != Some(other) && member.ended[other] < wanted[other]
        };
        while (0..PROCESSES as usize).any(|other| is_due(self, other)) {
            self.go_on();
        }
    }
}

fn say(line: &Line, address: &Address) {
    address.to_bytes().as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
}

fn hear(line: &Line) -> Address {
    let mut bytes = [0; Address::BYTES];
    bytes.as_chunks_mut().0.iter_mut().for_each(|word| *word = line.hear().to_le_bytes());
    Address::from_bytes(&bytes).expect("an address")
}

/// A process of the test, until it is killed or told to go.
fn member(own: usize, line: &Line) {
    let before = held();
    let windows = MemoryRegions::new();
    let mut memory = vec![0; PROCESSES as usize * (SHARE + 8)];
    let memory = vec![span(&mut memory)];
    windows
        .expose(MemoryRegion { key: KEY, base: 0, memory, rights: Rights::all() })
        .expect("room");
    let mut endpoint = RawEndpoint::open(Spin::SHARED).expect("an endpoint");
    endpoint.share(&windows);
    say(line, &endpoint.address());
    let all = [0; PROCESSES as usize].map(|_: u64| hear(line));
    let remotes = all.iter().map(|address| endpoint.remote(address).expect("a neighbour"));
    let remotes = remotes.collect();
    let mut member = Member::new(own, endpoint, remotes);
    member.do_enough();
    let with_all = held();
    line.say(0);
    while member.dead.is_none() {
        member.go_on();
    }
    let dead = member.dead;
    let is_left = |slot: &Slot| slot.is_under_way && Some(slot.with) == dead;
    while member.slots.iter().any(is_left) {
        member.go_on();
    }
    member.do_enough();
    let without = held();
    assert!(without.memory_files < with_all.memory_files, "{without:?} {with_all:?}");
    assert!(without.descriptors < with_all.descriptors, "{without:?} {with_all:?}");
    line.say(dead.expect("one has died") as u64);
    while !line.has_word() {
        member.go_on();
    }
    line.hear();
    // Who goes first is a death to those who still look.
    line.say(0);
    line.hear();
    drop(member);
    drop(windows);
    assert_eq!(held(), before);
}

/// One of four is killed.
fn one_round(ranks: &mut Vec<Process>, seed: u64) {
    let mut random = Random::new(seed);
    let addresses: Vec<Address> = ranks.iter().map(|rank| hear(&rank.line)).collect();
    for rank in ranks.iter() {
        addresses.iter().for_each(|address| say(&rank.line, address));
    }
    ranks.iter().for_each(|rank| assert_eq!(rank.line.hear(), 0));
    assert!(addresses.iter().all(has_socket));
    let victim = random.below(PROCESSES);
    for _ in 0..random.scaled(22) {
        std::hint::spin_loop();
    }
    ranks.remove(victim as usize).kill();
    assert!(!has_socket(&addresses[victim as usize]));
    ranks.iter().for_each(|rank| assert_eq!(rank.line.hear(), victim, "who has died"));
    ranks.iter().for_each(|rank| rank.line.say(0));
    ranks.iter().for_each(|rank| assert_eq!(rank.line.hear(), 0, "it looks no more"));
    ranks.iter().for_each(|rank| rank.line.say(0));
    ranks.iter_mut().for_each(Process::succeeds);
    assert!(!addresses.iter().any(has_socket));
    assert!(!has_file());
}

/// Whether there is a file by name that an endpoint may have made. `ayre run` makes a directory
/// beside this test, which does not count.
fn has_file() -> bool {
    let entries = fs::read_dir("/dev/shm").expect("files").flatten();
    let mut files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.any(|file| file.file_name().to_string_lossy().contains("ayre"))
}

/// Whether there is a socket at which this endpoint is called.
fn has_socket(address: &Address) -> bool {
    let sockets = fs::read_to_string("/proc/net/unix").expect("sockets");
    let [_, low, high] = address.local_words();
    sockets.contains(&format!("@ayre-{low:016x}{high:016x}"))
}

// spec: ENV-8
#[test]
fn a_killed_process_does_not_disturb_others() {
    with_processes(
        |number, line| member((number % PROCESSES) as usize, &line),
        |family| {
            for seed in iterations(3) {
                let mut ranks = (0..PROCESSES).map(|_| family.start()).collect();
                one_round(&mut ranks, seed);
            }
        },
    );
}

/// One of two, of which the second one is stopped: it takes nothing, for longer than a process of
/// another host would be waited for.
fn sender_or_stopped(number: u64, line: &Line) {
    let dead_after = Duration::from_millis(1);
    let options = EndpointOptions::new().spin(Spin::SHARED);
    let options = options.silence(dead_after).dead_after(dead_after);
    let mut endpoint = RawEndpoint::open_with(&options).expect("an endpoint");
    say(line, &endpoint.address());
    let to = endpoint.remote(&hear(line)).expect("it is there");
    let mut bytes = [number as u8; 64];
    let bytes: Spans = span(&mut bytes).into();
    let message = OutgoingMessage { tag: Some(1), data: None, bytes, context: 0, delivered: false };
    let mut full = 0;
    while !line.has_word() {
        if number == 0 {
            match endpoint.send(to, &message) {
                Ok(_) => full = 0,
                Err(PostError::Busy(_)) => full += 1,
                Err(PostError::Fault(fault)) => {
                    assert_eq!(fault, Fault::PeerDead);
                    return line.say(99);
                }
            }
            if full > 0 && full % FULL == 0 {
                line.say(FULL);
            }
        }
        endpoint.progress(|_| {});
        std::thread::yield_now();
    }
}

/// Refusals in a row, for longer than the dead time.
const FULL: u64 = 5_000;

// spec: ENV-43, LIFE-15
#[test]
fn a_stopped_remote_of_this_host_is_busy_and_its_end_is_told_though_it_is_stopped() {
    with_processes(
        |number, line| sender_or_stopped(number, &line),
        |family| {
            let (mut sender, mut stopped) = (family.start(), family.start());
            let both = [&sender, &stopped];
            let addresses = both.map(|process| hear(&process.line));
            say(&sender.line, &addresses[1]);
            say(&stopped.line, &addresses[0]);
            for _ in 0..2 {
                stopped.stop();
                assert_eq!(sender.line.hear(), FULL, "it is no dead one");
                stopped.resume();
            }
            stopped.stop();
            while sender.line.hear() != FULL {}
            stopped.kill();
            while sender.line.hear() != 99 {}
            sender.succeeds();
        },
    );
}

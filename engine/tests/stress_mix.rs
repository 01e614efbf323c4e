//! All ranks use all operations with each other, and one is killed at a random instruction. No rank
//! hangs, the traffic of the others stays exactly right, and the dead one's traffic ends with a
//! whole record, message and notification.
mod common;

use ayre::error::Status;
use ayre::memory::Width;
use ayre::memory::{Atomic, AtomicOp, Classes};
use ayre::{Fault, PeerId, Port, PostError, PostOptions, Queue, ReceiveError};
use ayre::{Region, RegionOptions, RemoteQueue, RemoteRegion, Rights};
use common::ports::post;
use common::random::{fill, mix};
use common::system::{Held, held, mappings};
use common::{Executor, Family, Line, Process, Random, iterations, with_processes};
use std::ops::RangeInclusive;

/// Messages, records and puts from each rank to each other one.
const QUOTA: u64 = 120;
const SLOTS: u64 = 8;
const SLOT: u64 = 600;
const RECORD_MAX: u64 = 1500;
/// In each region, one part for each source: counters, then slots for its puts.
const PART: u64 = 64 + SLOTS * 640;
const ADDS: u64 = 0;
const MESSAGES: u64 = 8;
const RECORDS: u64 = 16;
const PUTS: u64 = 24;
/// How many of the region owner's puts the source has seen.
const SEEN: u64 = 32;

/// A round of the test, the same in every process of it.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    size: usize,
    victim: usize,
    /// Steps until the victim asks to be killed.
    steps: u64,
    executor: Executor,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let size = 4 + random.below(3) as usize;
        let victim = random.below(size as u64) as usize;
        let steps = 1 + random.scaled(12);
        Self { seed, size, victim, steps, executor: Executor::of(seed) }
    }
}

/// The traffic of one rank with one other.
#[derive(Debug)]
struct Pair {
    peer: PeerId,
    remote: RemoteRegion,
    queue: RemoteQueue,
    /// Where its puts land in our region, and ours in its.
    part_here: u64,
    part_there: u64,
    sent: Tally,
    received: Tally,
    adds: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    messages: u64,
    records: u64,
    puts: u64,
}

const ALL: Tally = Tally { messages: QUOTA, records: QUOTA, puts: QUOTA };

#[derive(Debug)]
struct Rank {
    plan: Plan,
    me: u64,
    port: Port,
    region: Region,
    queue: Queue,
    pairs: Vec<Pair>,
    random: Random,
    buffer: Vec<u8>,
}

impl Rank {
    fn join(plan: Plan) -> Self {
        let mut port = Port::join().unwrap();
        if plan.executor == Executor::Thread {
            port.start_engine().unwrap();
        }
        let me = port.rank() as u64;
        let len = PART as usize * plan.size;
        let region = port.alloc(len, RegionOptions::new()).unwrap();
        let mut queue = port.create_queue(RECORD_MAX as usize * 4).unwrap();
        port.share_all(&region, 0..len, Rights::all(), 1).unwrap();
        let others: Vec<_> = port.peers().filter(|peer| peer.index() as u64 != me).collect();
        for peer in &others {
            port.share_queue(*peer, &mut queue, 2).unwrap();
        }
        let pairs = others.into_iter().map(|peer| Pair {
            peer,
            remote: port.accept_region(peer, 1).unwrap(),
            queue: port.accept_queue(peer, 2).unwrap(),
            part_here: PART * peer.index() as u64,
            part_there: PART * me,
            sent: Tally::default(),
            received: Tally::default(),
            adds: 0,
        });
        let (pairs, random) = (pairs.collect(), Random::new(mix(plan.seed) ^ me));
        port.barrier().unwrap();
        Self { plan, me, port, region, queue, pairs, random, buffer: vec![0; 2048] }
    }

    /// The result of a posting call, if it was posted. Only the victim's peers may find a dead one.
    fn posted<T>(&self, peer: PeerId, result: Result<T, PostError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(PostError::Busy(_)) => None,
            Err(PostError::Fault(fault)) => {
                assert_eq!((fault, peer.index()), (Fault::PeerDead, self.plan.victim));
                None
            }
        }
    }

    /// One operation of a random kind to a random peer, and a look at what has come.
    fn step(&mut self) {
        let index = self.random.below(self.pairs.len() as u64) as usize;
        match self.random.below(4) {
            0 => self.send_message(index),
            1 => self.send_record(index),
            2 => self.put(index),
            _ => self.add(index),
        }
        for _ in 0..self.random.below(4) {
            self.take_message();
            self.take_record();
            self.take_notification();
        }
        if self.random.below(64) == 0 {
            self.port.progress();
            std::thread::yield_now();
        }
    }

    fn data(&mut self, to: PeerId, sequence: u64, lengths: RangeInclusive<u64>) -> Vec<u8> {
        let len = lengths.start() + self.random.below(lengths.end() - lengths.start() + 1);
        let mut data = vec![0; len as usize];
        fill(&mut data, self.me, to.index() as u64, sequence);
        data
    }

    /// Tells a peer's region how far we are, as an operation of its own.
    fn publish(&mut self, index: usize, counter: u64, value: u64) {
        let Pair { peer, remote, part_there, .. } = &self.pairs[index];
        let at = part_there + counter;
        let result = self.port.put_immediate(remote, at, value, PostOptions::new());
        self.posted(*peer, result);
    }

    fn send_message(&mut self, index: usize) {
        let Pair { peer, sent: Tally { messages, .. }, .. } = self.pairs[index];
        if messages == QUOTA {
            return;
        }
        let data = self.data(peer, messages, 1..=ayre::message::EAGER_MAX as u64);
        let result = self.port.send(peer, messages as u32, &data);
        if self.posted(peer, result).is_some() {
            self.pairs[index].sent.messages += 1;
            self.publish(index, MESSAGES, messages + 1);
        }
    }

    fn send_record(&mut self, index: usize) {
        let Pair { peer, sent: Tally { records, .. }, .. } = self.pairs[index];
        if records == QUOTA {
            return;
        }
        let mut data = self.data(peer, records, 8..=RECORD_MAX);
        data[..8].copy_from_slice(&records.to_le_bytes());
        let result = self.port.enqueue(&mut self.pairs[index].queue, &data);
        if self.posted(peer, result).is_some() {
            self.pairs[index].sent.records += 1;
            self.publish(index, RECORDS, records + 1);
        }
    }

    fn put(&mut self, index: usize) {
        let Pair { peer, part_here, part_there, sent: Tally { puts, .. }, .. } = self.pairs[index];
        let seen = self.region.load((part_here + SEEN) as usize);
        if puts == QUOTA || puts - seen == SLOTS {
            return;
        }
        let data = self.data(peer, puts, 1..=SLOT);
        let options = PostOptions::new().completer().tag(puts as u32).value(data.len() as u64);
        let at = part_there + 64 + puts % SLOTS * 640;
        let result = self.port.put(&self.pairs[index].remote, at, &data, options);
        if self.posted(peer, result).is_some() {
            self.pairs[index].sent.puts += 1;
            self.publish(index, PUTS, puts + 1);
        }
    }

    fn add(&mut self, index: usize) {
        let Pair { peer, remote, part_there, adds, .. } = &self.pairs[index];
        let atomic = Atomic { width: Width::W64, op: AtomicOp::Add, operand: 3, compare: 0 };
        let result = self.port.fetch(remote, part_there + ADDS, atomic, PostOptions::new());
        if let Some(fetched) = self.posted(*peer, result) {
            assert_eq!(fetched.value, 3 * adds);
            self.pairs[index].adds += 1;
        }
    }

    fn pair_of(&mut self, source: PeerId) -> &mut Pair {
        self.pairs.iter_mut().find(|pair| pair.peer == source).expect("a known source")
    }

    fn expect(&self, source: PeerId, sequence: u64, found: &[u8], skip: usize) {
        let mut expected = vec![0; found.len()];
        fill(&mut expected, source.index() as u64, self.me, sequence);
        assert!(found[skip..] == expected[skip..], "torn: {sequence} of {source:?}");
    }

    // spec: MSG-3, MSG-4
    fn take_message(&mut self) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let found = self.port.try_recv(&mut buffer).unwrap();
        if let Some(message) = found {
            let next = self.pair_of(message.source).received.messages;
            assert_eq!(u64::from(message.tag), next);
            self.expect(message.source, next, &buffer[..message.len], 0);
            self.pair_of(message.source).received.messages += 1;
        }
        self.buffer = buffer;
        found.is_some()
    }

    // spec: QUE-5, QUE-6
    fn take_record(&mut self) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let found = self.port.dequeue(&mut self.queue, &mut buffer).unwrap();
        if let Some(record) = found {
            let next = self.pair_of(record.source).received.records;
            assert_eq!(buffer[..8], next.to_le_bytes());
            self.expect(record.source, next, &buffer[..record.len], 8);
            self.pair_of(record.source).received.records += 1;
        }
        self.buffer = buffer;
        found.is_some()
    }

    // spec: NOTI-4, NOTI-10, NOTI-12
    fn take_notification(&mut self) -> bool {
        let Some(note) = self.port.poll_notification() else { return false };
        let (source, victim) = (note.source, self.plan.victim);
        if note.class == Classes::REQUESTER {
            let dead = Status::Fault(Fault::PeerDead);
            assert_eq!((note.status, source.index()), (dead, victim), "{note:?}");
            return true;
        }
        assert_eq!((note.class, note.status), (Classes::COMPLETER, Status::Ok), "{note:?}");
        let pair = self.pair_of(source);
        let next = pair.received.puts;
        assert_eq!(u64::from(note.tag), next);
        pair.received.puts += 1;
        let at = pair.part_here + 64 + next % SLOTS * 640;
        let mut data = vec![0; note.value as usize];
        self.region.read(at as usize, &mut data);
        self.expect(source, next, &data, 0);
        true
    }

    /// Says how many puts were seen, so that their slots can be used again.
    fn give_slots_back(&mut self) {
        for index in 0..self.pairs.len() {
            let seen = self.pairs[index].received.puts;
            self.publish(index, SEEN, seen);
        }
    }

    fn survivors(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.peer.index() != self.plan.victim)
    }

    /// Whether all that survivors exchange has been exchanged, and the death was noticed.
    // spec: LIFE-10
    fn is_done(&self) -> bool {
        let all = |pair: &Pair| pair.sent == ALL && pair.received == ALL;
        self.survivors().all(all) && !self.port.is_alive(PeerId(self.plan.victim as u16))
    }

    fn run(&mut self, line: &Line) {
        let mut steps = 0;
        let mut done = false;
        loop {
            steps += 1;
            if steps == self.plan.steps && self.me == self.plan.victim as u64 {
                line.say(self.me);
            }
            self.step();
            if done {
                std::thread::yield_now();
            }
            if steps % 16 == 0 {
                self.give_slots_back();
            }
            if !done && steps % 64 == 0 && self.is_done() {
                done = true;
                line.say(self.me);
            }
            if done && steps % 64 == 0 && line.has_word() {
                line.hear();
                return;
            }
        }
    }

    /// The operations that the victim had completed are here, and at most one more.
    // spec: LIFE-12, MSG-10, QUE-9
    fn check_victim(&mut self) {
        // Three empty looks at each of the peers: nothing is left.
        let mut idle = 0;
        while idle < 3 * self.plan.size {
            let found = self.take_message() | self.take_record() | self.take_notification();
            idle = if found { 0 } else { idle + 1 };
        }
        let victim = PeerId(self.plan.victim as u16);
        let (region, direct) = (self.region.clone(), self.plan.executor == Executor::Direct);
        let Pair { part_here, received, .. } = *self.pair_of(victim);
        let Tally { messages, records, puts } = received;
        for (counter, received) in [(MESSAGES, messages), (RECORDS, records), (PUTS, puts)] {
            let completed = region.load((part_here + counter) as usize);
            let most = if direct { completed + 1 } else { QUOTA };
            let right = (completed..=most).contains(&received);
            assert!(right, "{received} of {completed} at {counter}, {:?}", self.plan);
        }
        assert_eq!(region.load((part_here + ADDS) as usize) % 3, 0);
    }

    /// Everything that only the victim could give says so, and the others are as they were.
    // spec: LIFE-11, LIFE-13
    fn check_end(&mut self) {
        let victim = PeerId(self.plan.victim as u16);
        let sent = self.port.send(victim, 0, b"are you there");
        assert_eq!(sent, Err(Fault::PeerDead.into()));
        let died = self.port.recv(&mut [0; 8], None);
        assert_eq!(died, Err(ReceiveError::PeerDied(victim)));
        for pair in self.pairs.iter().filter(|pair| pair.peer != victim) {
            self.port.flush(pair.peer).unwrap();
            let at = pair.part_there + ADDS;
            let sum = post(&mut self.port, |port| port.fetch_add(&pair.remote, at, 0));
            assert_eq!(sum, Ok(3 * pair.adds));
        }
    }

    /// Gives up what was shared with a peer, and says how much of this process went with it.
    // spec: LIFE-14
    fn forget(&mut self, peer: PeerId) -> Held {
        let before = held();
        self.pairs.retain(|pair| pair.peer != peer);
        self.port.remove_producer(&mut self.queue, peer);
        self.port.disconnect(peer).unwrap();
        let after = held();
        assert_eq!(self.port.send(peer, 0, b"x"), Err(Fault::ForeignHandle.into()));
        Held {
            descriptors: before.descriptors - after.descriptors,
            memory_files: before.memory_files - after.memory_files,
            threads: before.threads - after.threads,
        }
    }

    fn serve_until_told(&mut self, line: &Line) {
        while !line.has_word() {
            self.port.progress();
            std::thread::yield_now();
        }
        line.hear();
    }
}

fn rank(line: &Line) {
    let plan = Plan::new(std::env::var("SEED").unwrap().parse().unwrap());
    let before = held();
    let mut rank = Rank::join(plan);
    rank.run(line);
    rank.check_victim();
    rank.check_end();
    let gone = rank.forget(PeerId(plan.victim as u16));
    line.say(rank.me);
    rank.serve_until_told(line);
    // Nothing of the dead one has stayed that goes with one that lives.
    let survivor = rank.pairs[0].peer;
    assert_eq!(rank.forget(survivor), gone);
    // spec: LIFE-17
    drop(rank);
    assert_eq!(held(), before);
    assert!(mappings().iter().all(|mapped| !mapped.name.starts_with("/dev/shm")));
}

fn start(family: &Family, plan: Plan) -> Vec<Process> {
    let start = |rank| {
        family.start_rank_with(rank, plan.size, |command| {
            command.env("SEED", plan.seed.to_string());
            if plan.executor != Executor::Direct {
                command.env("AYRE_MODE", "mediated");
            }
        })
    };
    (0..plan.size).map(start).collect()
}

fn round(family: &Family, seed: u64) {
    let plan = Plan::new(seed);
    println!("{plan:?}");
    let mut ranks = start(family, plan);
    let mut victim = ranks.remove(plan.victim);
    victim.line.hear();
    for _ in 0..Random::new(!seed).scaled(14) {
        std::hint::spin_loop();
    }
    victim.kill();
    for phase in ["exchanged", "checked"] {
        for rank in &ranks {
            assert!(rank.line.try_hear().is_some(), "{plan:?}: a survivor has not {phase} all");
        }
        ranks.iter().for_each(|rank| rank.line.say(0));
    }
    ranks.iter_mut().for_each(Process::succeeds);
    assert!(family.directory().entries().is_empty(), "a file stays in the job's directory");
}

// spec: LIFE-10, LIFE-11, LIFE-12, LIFE-13, LIFE-17, MSG-5, QUE-7
#[test]
fn survivors_of_a_kill_go_on_exactly() {
    with_processes(
        |_, line| rank(&line),
        |family| {
            iterations(24).for_each(|seed| round(family, seed));
        },
    );
}

//! Producers of a remote queue are killed or stopped in the middle of an enqueue. Their records are
//! whole and in order up to a point, and no other producer is delayed.
mod common;

use ayre::message::Record;
use ayre::{Config, Fault, Mode, PeerId, Port, PostError, PostOptions, Queue, ReceiveError};
use ayre::{Region, RegionOptions, Rights};
use common::ports::owner;
use common::random::fill;
use common::system::held;
use common::{Executor, Family, Line, Process, Random, iterations, with_processes};

/// Of each producer's lane; producers go round it often, and sometimes find it full.
const CAPACITY: usize = 16 << 10;
/// The producer that is never killed, and the number that all others have in turn.
const STEADY: PeerId = PeerId(1);
const VICTIM: PeerId = PeerId(2);
const QUEUE: u64 = 3;
/// A record begins with its number.
const HEAD: usize = 8;

/// A process that enqueues records without end, and says in the consumer's memory how many it has
/// completed.
fn producer(line: &Line) {
    let variable = |name| std::env::var(name).unwrap();
    let (number, path) = (variable("PRODUCER").parse().unwrap(), variable("CONSUMER"));
    let mediated = variable("MODE") == "mediated";
    let mode = if mediated { Mode::Mediated } else { Mode::Direct };
    let mut port = Port::open(Config::new().number(number).mode(mode)).unwrap();
    let consumer = port.connect(path).unwrap();
    let completed = port.accept_region(consumer, QUEUE).unwrap();
    let mut queue = port.accept_queue(consumer, QUEUE).unwrap();
    let mut random = Random::new(u64::from(number));
    let mut record = vec![0; HEAD + 2048];
    line.say(0);
    for sequence in 0.. {
        let len = HEAD + random.scaled(11) as usize;
        fill(&mut record[..len], u64::from(number), 0, sequence);
        record[..HEAD].copy_from_slice(&sequence.to_le_bytes());
        loop {
            match port.enqueue(&mut queue, &record[..len]) {
                Ok(()) => break,
                Err(PostError::Busy(_)) => port.progress(),
                Err(PostError::Fault(Fault::PeerDead)) => return,
                Err(PostError::Fault(fault)) => panic!("{fault}"),
            }
        }
        // Busy or not does not matter: the next one says more.
        let _ = port.put_immediate(&completed, 0, sequence + 1, PostOptions::new());
    }
}

/// The consumer, in the test's own process.
struct Consumer {
    executor: Executor,
    path: String,
    port: Port,
    queue: Queue,
    /// The records that each producer reports as completed.
    completed: [Region; 3],
    /// Records taken of each producer.
    taken: [u64; 3],
    buffer: Vec<u8>,
}

impl Consumer {
    fn new(family: &Family, executor: Executor) -> Self {
        let name = format!("{executor:?}");
        let mut port = owner(family.directory(), &name, executor, Config::new());
        let queue = port.create_queue(CAPACITY).unwrap();
        let path = family.directory().join(&name).to_string_lossy().into_owned();
        let completed = [0; 3].map(|_| port.alloc(4096, RegionOptions::new()).unwrap());
        let buffer = vec![0; CAPACITY];
        Self { executor, path, port, queue, completed, taken: [0; 3], buffer }
    }

    /// Starts a producer that is about to enqueue.
    fn admit(&mut self, family: &Family, number: PeerId) -> Process {
        let process = family.start_with(|command| {
            let mode = if self.executor == Executor::Direct { "direct" } else { "mediated" };
            command.env("PRODUCER", number.0.to_string()).env("MODE", mode);
            command.env("CONSUMER", &self.path);
        });
        assert_eq!(self.port.accept().unwrap(), number);
        let completed = &self.completed[number.index()];
        completed.store(0, 0);
        self.taken[number.index()] = 0;
        self.port.share(number, completed, 0..8, Rights::all(), QUEUE).unwrap();
        self.port.share_queue(number, &mut self.queue, QUEUE).unwrap();
        assert_eq!(process.line.hear(), 0);
        process
    }

    /// Checks a record in the buffer: whole, unchanged, and the next of its producer.
    // spec: QUE-5, QUE-6
    fn check(&mut self, Record { source, len }: Record) {
        let next = &mut self.taken[source.index()];
        let record = &self.buffer[..len];
        assert_eq!(record[..HEAD], next.to_le_bytes());
        let mut expected = vec![0; len];
        fill(&mut expected, source.index() as u64, 0, *next);
        assert!(record[HEAD..] == expected[HEAD..], "torn: {next} of {source:?}");
        *next += 1;
    }

    fn take(&mut self) -> Option<PeerId> {
        let record = self.port.dequeue(&mut self.queue, &mut self.buffer).unwrap()?;
        self.check(record);
        Some(record.source)
    }

    /// Takes records until `count` of one producer have come.
    fn take_of(&mut self, producer: PeerId, count: u64) {
        let goal = self.taken[producer.index()] + count;
        while self.taken[producer.index()] < goal {
            self.take();
        }
    }

    /// Takes everything there is, with a producer that is silent, until the victim's death is told.
    // spec: LIFE-11, LIFE-12
    fn drain_until_told(&mut self) {
        loop {
            match self.port.dequeue_wait(&mut self.queue, &mut self.buffer, None) {
                Ok(record) => self.check(record),
                Err(ReceiveError::PeerDied(peer)) => {
                    assert_eq!(peer, VICTIM);
                    return;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Takes everything there is while the other producer floods its lane.
    // spec: QUE-7
    fn drain_in_a_flood(&mut self) {
        while self.port.is_alive(VICTIM) {
            self.take();
            self.port.progress();
        }
        let mut others = 0;
        while others < 256 {
            match self.take() {
                Some(VICTIM) => others = 0,
                Some(_) => others += 1,
                None => {}
            }
        }
    }

    /// The records that the victim had completed have come, and at most one more.
    // spec: QUE-9
    fn check_victim(&self) {
        let completed = self.completed[VICTIM.index()].load(0);
        let taken = self.taken[VICTIM.index()];
        let most = if self.executor == Executor::Direct { completed + 1 } else { u64::MAX };
        assert!((completed..=most).contains(&taken), "{taken} of {completed}");
    }
}

/// Kills a producer somewhere in its work, while the other one is stopped or floods.
fn round(family: &Family, consumer: &mut Consumer, steady: &Process, seed: u64) {
    let mut random = Random::new(seed);
    let before = held();
    let mut victim = consumer.admit(family, VICTIM);
    let silent = random.below(2) == 0;
    if silent {
        steady.stop();
    }
    consumer.take_of(VICTIM, random.scaled(9));
    for _ in 0..random.scaled(14) {
        std::hint::spin_loop();
    }
    victim.kill();
    if silent {
        consumer.drain_until_told();
    } else {
        consumer.drain_in_a_flood();
    }
    consumer.check_victim();
    consumer.port.remove_producer(&mut consumer.queue, VICTIM);
    consumer.port.disconnect(VICTIM).unwrap();
    drop(victim);
    // spec: LIFE-13, LIFE-14
    assert_eq!(held(), before, "something of the dead producer is still here");
    if silent {
        steady.resume();
    }
    consumer.take_of(STEADY, 50);
}

/// The only test of this file: it counts what its own process holds.
// spec: QUE-5, QUE-6, QUE-7, QUE-9, LIFE-12, LIFE-13, LIFE-14
#[test]
fn records_of_killed_producers_end_whole() {
    with_processes(
        |_, line| producer(&line),
        |family| {
            let seeds = iterations(60);
            for executor in Executor::ALL {
                let mut consumer = Consumer::new(family, executor);
                let mut steady = consumer.admit(family, STEADY);
                for seed in seeds.clone().filter(|seed| Executor::of(*seed) == executor) {
                    round(family, &mut consumer, &steady, seed);
                }
                drop(consumer);
                steady.succeeds();
            }
        },
    );
}

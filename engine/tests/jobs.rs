//! Jobs of a few and of many ranks: joining, barriers, rings, waits with a limit.
mod common;

use ayre::{Config, PeerId, Port, PostOptions, ReceiveError, RegionOptions, Rights, SetupError};
use common::ports::post;
use common::{Executor, Family, Line, Process, with_processes};
use std::time::Duration;

const BARRIERS: u64 = 50;

/// Starts a job whose ranks have the mode of an executor.
fn start(family: &Family, size: usize, executor: Executor) -> Vec<Process> {
    let start = |rank| {
        family.start_rank_with(rank, size, |command| {
            if executor != Executor::Direct {
                command.env("AYRE_MODE", "mediated");
            }
        })
    };
    (0..size).map(start).collect()
}

/// Runs a job, and finds that it leaves its directory empty.
fn run(family: &Family, size: usize, executor: Executor) {
    start(family, size, executor).iter_mut().for_each(Process::succeeds);
    assert!(family.directory().entries().is_empty());
}

/// Counts entries into barriers in the memory of rank 0.
fn barriers() {
    let mut port = Port::join().unwrap();
    let (rank, size) = (port.rank(), port.size());
    for other in (0..size).filter(|other| *other != rank) {
        assert_eq!(port.peer(other), Some(PeerId(other as u16)));
    }
    assert_eq!(port.peer(size), None);
    let region = port.alloc(64, RegionOptions::new()).unwrap();
    if rank == 0 {
        port.share_all(&region, 0..64, Rights::all(), 0).unwrap();
    }
    let remote = (rank != 0).then(|| port.accept_region(PeerId(0), 0).unwrap());
    for round in 1..=BARRIERS {
        if let Some(remote) = &remote {
            // Not flushed: the barrier is to see to that.
            let add = ayre::memory::Atomic {
                width: ayre::memory::Width::W64,
                op: ayre::memory::AtomicOp::Add,
                operand: 1,
                compare: 0,
            };
            post(&mut port, |port| port.atomic(remote, 0, add, PostOptions::new())).unwrap();
        }
        port.barrier().unwrap();
        if rank == 0 {
            assert_eq!(region.load(0), round * (size as u64 - 1));
        }
        port.barrier().unwrap();
    }
    port.leave().ok();
}

// spec: LIFE-2, LIFE-4, LIFE-5, BAR-1, BAR-2
#[test]
fn ranks_join_and_meet_in_barriers() {
    with_processes(
        |_, _| barriers(),
        |family| {
            for size in [1, 2, 3, 8] {
                run(family, size, Executor::Direct);
                run(family, size, Executor::Progress);
            }
        },
    );
}

const LAPS: u64 = 20;

/// Receives the next message of one sender; between senders there is no order, so that of another
/// one waits in `early`.
fn from(
    port: &mut Port,
    early: &mut Vec<(PeerId, u32, [u8; 8])>,
    source: PeerId,
) -> (u32, [u8; 8]) {
    if let Some(index) = early.iter().position(|message| message.0 == source) {
        let (_, tag, word) = early.remove(index);
        return (tag, word);
    }
    loop {
        let mut word = [0; 8];
        let message = port.recv(&mut word, None).unwrap();
        if message.source == source {
            return (message.tag, word);
        }
        early.push((message.source, message.tag, word));
    }
}

/// Passes a token round a ring, and a ping-pong to each neighbour before it goes on.
fn ring() {
    let mut port = Port::join().unwrap();
    let (rank, size) = (port.rank(), port.size());
    let next = port.peer((rank + 1) % size).unwrap();
    let previous = port.peer((rank + size - 1) % size).unwrap();
    let mut early = Vec::new();
    for lap in 0..LAPS {
        let expected = lap * size as u64 + rank as u64;
        if rank != 0 || lap != 0 {
            let (tag, word) = from(&mut port, &mut early, previous);
            assert_eq!((tag, u64::from_le_bytes(word)), (0, expected));
            port.send_wait(previous, 1, &word).unwrap();
        }
        let token = (expected + 1).to_le_bytes();
        port.send_wait(next, 0, &token).unwrap();
        if rank + 1 != size || lap + 1 != LAPS {
            assert_eq!(from(&mut port, &mut early, next), (1, token));
        }
    }
    if rank == 0 {
        // The last token of the last lap, which nobody answers.
        let word = from(&mut port, &mut early, previous).1;
        assert_eq!(word, (LAPS * size as u64).to_le_bytes());
    }
    port.barrier().unwrap();
}

/// Thirty-two ranks on whatever there is: all but two of them sleep at any time.
// spec: WAIT-1, WAIT-3, MSG-9
#[test]
fn a_ring_of_many_ranks_on_few_processors_goes_round() {
    with_processes(
        |_, _| ring(),
        |family| {
            run(family, 32, Executor::Direct);
            run(family, 32, Executor::Progress);
        },
    );
}

fn join_in_vain() {
    let config = Config::new().setup_timeout(Duration::from_millis(100));
    let error = Port::join_with(config).expect_err("a rank is missing");
    assert!(matches!(error, SetupError::TimedOut(_) | SetupError::PeerLeft { .. }), "{error}");
    // Whoever gives up first is gone for the others.
    if std::env::var("AYRE_RANK").unwrap() == std::env::var("FIRST").unwrap() {
        assert!(matches!(error, SetupError::TimedOut(_)), "{error}");
    }
}

// spec: LIFE-4
#[test]
fn a_rank_that_never_comes_fails_the_others_in_time() {
    with_processes(
        |_, _| join_in_vain(),
        |family| {
            for missing in 0..3 {
                let present: Vec<_> = (0..3).filter(|rank| *rank != missing).collect();
                let start = |rank: &usize| {
                    family.start_rank_with(*rank, 3, |command| {
                        command.env("FIRST", "none");
                    })
                };
                let mut ranks: Vec<_> = present.iter().map(start).collect();
                ranks.iter_mut().for_each(Process::succeeds);
                let path = family.directory().path().to_owned();
                for entry in std::fs::read_dir(path).unwrap() {
                    std::fs::remove_file(entry.unwrap().path()).unwrap();
                }
            }
            let mut alone = family.start_rank_with(1, 2, |command| {
                command.env("FIRST", "1");
            });
            alone.succeeds();
        },
    );
}

// spec: WAIT-1, WAIT-2
#[test]
fn waits_end_when_their_time_is_up() {
    with_processes(|_, _| {}, |_| time_is_up());
}

fn time_is_up() {
    for executor in Executor::ALL {
        let config = |number| Config::new().number(number).mode(executor.mode());
        let (mut near, mut far) = Port::pair(config(0), config(1)).unwrap();
        if executor == Executor::Thread {
            near.start_engine().unwrap();
        }
        let (to, from) = (near.peer(1).unwrap(), far.peer(0).unwrap());
        let mut queue = near.create_queue(4096).unwrap();
        near.share_queue(to, &mut queue, 0).unwrap();
        let mut remote = far.accept_queue(from, 0).unwrap();
        let mut word = [0; 8];
        for timeout in [0, 1, 20].map(Duration::from_millis) {
            let late = ReceiveError::TimedOut;
            assert_eq!(near.recv(&mut word, Some(timeout)), Err(late));
            assert_eq!(near.wait_notification(Some(timeout)), Err(late));
            assert_eq!(near.dequeue_wait(&mut queue, &mut word, Some(timeout)), Err(late));
        }
        // A wait that timed out has taken nothing, and the next one finds what has come.
        far.send(from, 5, b"message").unwrap();
        far.notify(from, PostOptions::new().tag(6)).unwrap();
        far.enqueue(&mut remote, b"record").unwrap();
        let limit = (executor == Executor::Direct).then_some(Duration::ZERO);
        assert_eq!(near.recv(&mut word, limit).unwrap().tag, 5);
        assert_eq!(near.wait_notification(limit).unwrap().tag, 6);
        assert_eq!(near.dequeue_wait(&mut queue, &mut word, limit).unwrap().len, 6);
    }
}

/// A process that opens several ports, which are peers of each other as those of others are.
fn several_ports(line: &Line) {
    let path = std::path::PathBuf::from(std::env::var("SOCKET").unwrap());
    let ports = (1..5).map(|number| {
        let mut port = Port::open(Config::new().number(number)).unwrap();
        port.connect(&path).unwrap();
        std::thread::spawn(move || {
            let mut word = [0; 8];
            for _ in 0..100 {
                let message = port.recv(&mut word, None).unwrap();
                port.send_wait(message.source, message.tag, &word).unwrap();
            }
            port
        })
    });
    let threads: Vec<_> = ports.collect();
    // Ports may move between threads: they are dropped in this one.
    let ports: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    line.say(ports.len() as u64);
    line.hear();
}

// spec: LIFE-1, LIFE-6
#[test]
fn a_process_has_several_ports() {
    with_processes(
        |_, line| several_ports(&line),
        |family| {
            let path = family.directory().join("socket");
            let mut port = Port::open(Config::new()).unwrap();
            port.listen(&path).unwrap();
            let mut process = family.start_with(|command| {
                command.env("SOCKET", &path);
            });
            let peers: Vec<_> = (0..4).map(|_| port.accept().unwrap()).collect();
            let mut word = [0; 8];
            for turn in 0..100u64 {
                for peer in &peers {
                    port.send_wait(*peer, turn as u32, &turn.to_le_bytes()).unwrap();
                }
                for _ in &peers {
                    let message = port.recv(&mut word, None).unwrap();
                    assert_eq!((u64::from(message.tag), u64::from_le_bytes(word)), (turn, turn));
                }
            }
            assert_eq!(process.line.hear(), 4);
            process.line.say(0);
            process.succeeds();
        },
    );
}

//! Death, stopping and leaving, as the ports that stay see it.
mod common;
#[path = "lifecycle/guest.rs"]
mod guest;
#[path = "lifecycle/limits.rs"]
mod limits;

use ayre::error::Refusal;
use ayre::{Config, Fault, NetOptions, PeerId, Port, PostError, PostOptions, Queue, ReceiveError};
use ayre::{Region, RegionOptions, RemoteQueue, RemoteRegion, Rights, SetupError};
use common::directory::Directory;
use common::ports::{post, progress_until, tell, told};
use common::system::held;
use common::{Executor, Family, Line, Process, Random, iterations, with_processes};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

const NAME: u64 = 1;
const LEN: usize = 1 << 20;
/// A wait of this long ends because of its time.
const SHORT: Duration = Duration::from_millis(20);

/// A rank of a job of two or more, with a region and a queue handed to rank 0 and one from it.
struct Rank {
    port: Port,
    other: PeerId,
    region: Region,
    queue: Queue,
    remote: RemoteRegion,
    remote_queue: RemoteQueue,
}

impl Rank {
    fn join() -> Self {
        let mut port = Port::join().unwrap();
        if std::env::var("ENGINE").is_ok() {
            port.start_engine().unwrap();
        }
        let other = port.peer(1 - port.rank()).unwrap();
        let region = port.alloc(LEN, RegionOptions::new()).unwrap();
        let mut queue = port.create_queue(4096).unwrap();
        port.share(other, &region, 0..LEN, Rights::all(), NAME).unwrap();
        port.share_queue(other, &mut queue, NAME).unwrap();
        let remote = port.accept_region(other, NAME).unwrap();
        let remote_queue = port.accept_queue(other, NAME).unwrap();
        port.barrier().unwrap();
        Self { port, other, region, queue, remote, remote_queue }
    }
}

/// Starts a job of two.
fn pair(family: &Family, executor: Executor, task: &str) -> [Process; 2] {
    [0, 1].map(|rank| {
        family.start_rank_with(rank, 2, |command| {
            command.env("TASK", task);
            if executor != Executor::Direct {
                command.env("AYRE_MODE", "mediated");
            }
            if executor == Executor::Thread {
                command.env("ENGINE", "1");
            }
        })
    })
}

fn task() -> String {
    std::env::var("TASK").unwrap()
}

/// The kinds of waits, and whether each sleeps, on a direct and on a mediated connection.
const WAITS: [(&str, bool, bool); 11] = [
    ("message", true, true),
    ("notification", true, true),
    ("record", true, true),
    ("barrier", true, true),
    ("region", true, true),
    ("queue", true, true),
    ("room for a message", false, false),
    ("get", false, true),
    ("fetch", false, true),
    ("flush", false, true),
    ("long put", false, true),
];

/// Waits for what the other rank never gives.
fn wait_in_vain(rank: &mut Rank) {
    let Rank { port, other, queue, remote, .. } = rank;
    let (died, dead) = (ReceiveError::PeerDied(*other), Fault::PeerDead);
    let mut buffer = [0; 64];
    match task().as_str() {
        "message" => assert_eq!(port.recv(&mut buffer, None), Err(died)),
        "notification" => assert_eq!(port.wait_notification(None), Err(died)),
        "record" => assert_eq!(port.dequeue_wait(queue, &mut buffer, None), Err(died)),
        "barrier" => assert_eq!(port.barrier(), Err(dead)),
        "region" => {
            let error = port.accept_region(*other, 99).unwrap_err();
            assert!(matches!(error, SetupError::PeerLeft { .. }), "{error}");
        }
        "queue" => {
            let error = port.accept_queue(*other, 99).unwrap_err();
            assert!(matches!(error, SetupError::PeerLeft { .. }), "{error}");
        }
        "room for a message" => {
            let refused = (0..).find_map(|_| port.send_wait(*other, 0, &[1; 1024]).err());
            assert_eq!(refused, Some(dead));
        }
        "get" => {
            let got = port.get(remote, 0, &mut buffer, PostOptions::new());
            assert_eq!(got, Err(PostError::Fault(dead)));
        }
        "fetch" => assert_eq!(port.fetch_add(remote, 0, 1), Err(PostError::Fault(dead))),
        "flush" => {
            port.put(remote, 0, &buffer, PostOptions::new()).unwrap();
            assert_eq!(port.flush(*other), Err(dead));
        }
        "long put" => {
            let put = port.put(remote, 0, &vec![1; LEN], PostOptions::new());
            assert!(put.is_ok() || put == Err(PostError::Fault(dead)), "{put:?}");
            assert_eq!(port.flush(*other).err(), put.is_ok().then_some(dead));
        }
        other => panic!("{other}"),
    }
    assert!(!port.is_alive(*other));
    assert_eq!(port.send(*other, 0, b"x"), Err(dead.into()));
}

// spec: LIFE-10, LIFE-11, WAIT-1, BAR-3
#[test]
fn every_wait_ends_when_the_peer_dies() {
    let child = |_, line: Line| {
        let mut rank = Rank::join();
        line.say(0);
        // The other one executes nothing any more once it has come here, too.
        line.hear();
        if rank.port.rank() == 0 {
            wait_in_vain(&mut rank);
        }
    };
    with_processes(child, |family| {
        for executor in Executor::ALL {
            for (wait, sleeps_direct, sleeps_mediated) in WAITS {
                let direct = executor == Executor::Direct;
                let sleeps = if direct { sleeps_direct } else { sleeps_mediated };
                let operation = ["get", "fetch", "flush", "long put"].contains(&wait);
                // A target that is not asked, or has a thread that answers, is not waited for.
                if operation && executor != Executor::Progress {
                    continue;
                }
                println!("{executor:?}: {wait}");
                let [mut waiter, mut victim] = pair(family, executor, wait);
                waiter.line.hear();
                victim.line.hear();
                waiter.line.say(0);
                if sleeps {
                    waiter.until_asleep();
                }
                victim.kill();
                waiter.succeeds();
            }
        }
    });
}

const MESSAGES: u64 = 20;
const NOTES: u64 = 16;
const RECORDS: u64 = 10;

/// Publishes as much as there is room for, says so, and waits to be killed.
fn publish(rank: &mut Rank, line: &Line) {
    let Rank { port, other, remote, remote_queue, .. } = rank;
    for value in 0..NOTES {
        let options = PostOptions::new().completer().value(value);
        post(port, |port| port.put(remote, 8 * value, &value.to_le_bytes(), options)).unwrap();
    }
    for value in 0..MESSAGES {
        port.send(*other, 7, &value.to_le_bytes()).unwrap();
    }
    for value in 0..RECORDS {
        port.enqueue(remote_queue, &value.to_le_bytes()).unwrap();
    }
    line.say(1);
    line.hear();
}

/// Looks for the first time when the other one is dead.
fn collect(rank: &mut Rank, line: &Line) {
    line.hear();
    let Rank { port, queue, region, .. } = rank;
    let mut word = [0; 8];
    for value in 0..MESSAGES {
        let message = port.recv(&mut word, None).unwrap();
        assert_eq!((message.tag, u64::from_le_bytes(word)), (7, value));
    }
    for value in 0..RECORDS {
        port.dequeue_wait(queue, &mut word, None).unwrap();
        assert_eq!(u64::from_le_bytes(word), value);
    }
    for value in 0..NOTES {
        assert_eq!(port.wait_notification(None).unwrap().value, value);
        assert_eq!(region.load(8 * value as usize), value);
    }
    let end = port.recv(&mut word, None);
    assert_eq!(end, Err(ReceiveError::PeerDied(PeerId(1))));
    assert_eq!(port.recv(&mut word, Some(SHORT)), Err(ReceiveError::TimedOut));
}

// spec: LIFE-12, MSG-10, QUE-9
#[test]
fn messages_published_before_a_death_are_delivered() {
    let child = |_, line: Line| {
        let mut rank = Rank::join();
        match rank.port.rank() {
            0 => collect(&mut rank, &line),
            _ => publish(&mut rank, &line),
        }
    };
    with_processes(child, |family| {
        for executor in Executor::ALL {
            let [mut survivor, mut victim] = pair(family, executor, "");
            victim.line.hear();
            victim.kill();
            survivor.line.say(0);
            survivor.succeeds();
        }
    });
}

/// Fills the lane to a peer that is stopped, and is patient.
fn outlast(rank: &mut Rank, line: &Line) {
    line.hear();
    let Rank { port, other, .. } = rank;
    let mut sent = 0u64;
    while port.send(*other, 0, &sent.to_le_bytes()).is_ok() {
        sent += 1;
    }
    assert_eq!(port.recv(&mut [0; 8], Some(SHORT)), Err(ReceiveError::TimedOut));
    port.progress();
    assert!(port.is_alive(*other));
    line.say(sent);
    port.send_wait(*other, 1, &sent.to_le_bytes()).unwrap();
    assert_eq!(told(port, *other, 2), sent);
}

fn be_stopped(rank: &mut Rank, line: &Line) {
    let Rank { port, other, .. } = rank;
    line.say(0);
    let mut word = [0; 8];
    for next in 0u64.. {
        let message = port.recv(&mut word, None).unwrap();
        assert_eq!(u64::from_le_bytes(word), next);
        if message.tag == 1 {
            tell(port, *other, 2, next);
            // Whoever leaves first is a death to the one that waits.
            assert_eq!(port.recv(&mut word, None), Err(ReceiveError::PeerDied(*other)));
            return;
        }
    }
}

// spec: LIFE-15, WAIT-2
#[test]
fn a_stopped_peer_is_not_dead() {
    let child = |_, line: Line| {
        let mut rank = Rank::join();
        match rank.port.rank() {
            0 => outlast(&mut rank, &line),
            _ => be_stopped(&mut rank, &line),
        }
    };
    with_processes(child, |family| {
        for executor in Executor::ALL {
            let [mut patient, mut stopped] = pair(family, executor, "");
            stopped.line.hear();
            stopped.until_asleep();
            stopped.stop();
            patient.line.say(0);
            assert!(patient.line.hear() > 0);
            stopped.resume();
            patient.succeeds();
            stopped.succeeds();
        }
    });
}

/// One rank of three leaves; the others go on with waits without a limit.
fn outlive(line: &Line) {
    let mut port = Port::join().unwrap();
    line.say(0);
    if port.rank() == 2 {
        return port.leave().unwrap();
    }
    let other = port.peer(1 - port.rank()).unwrap();
    progress_until(&mut port, |port| !port.is_alive(PeerId(2)));
    for turn in 0..200 {
        if turn % 2 == port.rank() as u64 {
            tell(&mut port, other, 0, turn);
        } else {
            assert_eq!(told(&mut port, other, 0), turn);
        }
    }
    assert_eq!(port.send(PeerId(2), 0, b"x"), Err(Fault::PeerDead.into()));
    assert_eq!(port.barrier(), Err(Fault::PeerDead));
    port.leave().unwrap();
}

// spec: LIFE-16, LIFE-13, BAR-3
#[test]
fn a_rank_that_leaves_early_does_not_disturb_others() {
    with_processes(
        |_, line| outlive(&line),
        |family| {
            for _ in 0..4 {
                family.start_job(3).iter_mut().for_each(Process::succeeds);
            }
        },
    );
}

/// A rank is killed on its way into the job: the others are in, or are told that it failed.
fn join_or_fail(line: &Line) {
    let before = held();
    line.say(0);
    let joined = Port::join_with(Config::new().setup_timeout(Duration::from_millis(300)));
    match joined {
        Ok(mut port) => {
            let victim = PeerId(std::env::var("VICTIM").unwrap().parse().unwrap());
            progress_until(&mut port, |port| !port.is_alive(victim));
        }
        Err(SetupError::PeerLeft { .. } | SetupError::TimedOut(_)) => {}
        Err(SetupError::Fault(fault)) => assert_eq!(fault, Fault::PeerDead),
        // A socket that nobody listens at any more.
        Err(SetupError::Os { call, .. }) => assert_eq!(call, "connect"),
        Err(other) => panic!("{other}"),
    }
    // spec: LIFE-17
    assert_eq!(held(), before);
    line.say(1);
}

// spec: LIFE-4
#[test]
fn a_rank_killed_while_joining_does_not_block_others() {
    with_processes(
        |_, line| join_or_fail(&line),
        |family| {
            for seed in iterations(16) {
                let mut random = Random::new(seed);
                let victim = random.below(4);
                let start = |rank| {
                    family.start_rank_with(rank, 4, |command| {
                        command.env("VICTIM", victim.to_string());
                    })
                };
                let mut ranks: Vec<_> = (0..4).map(start).collect();
                let mut victim = ranks.remove(victim as usize);
                victim.line.hear();
                for _ in 0..random.scaled(17) {
                    std::hint::spin_loop();
                }
                victim.kill();
                ranks.iter_mut().for_each(Process::succeeds);
                for path in family.directory().entries() {
                    std::fs::remove_file(path).unwrap();
                }
            }
        },
    );
}

/// Everything that a port can hold, held once and given back.
fn hold_everything(line: &Line) {
    let before = held();
    let mut rank = Rank::join();
    let Rank { port, other, region, remote, .. } = &mut rank;
    port.start_engine().unwrap();
    let narrowed = remote.narrow(0..8, Rights::READ).unwrap();
    let grant = port.share(*other, region, 0..64, Rights::READ, 2).unwrap();
    let unused = port.share(*other, region, 0..64, Rights::READ, 3).unwrap();
    let second = port.accept_region(*other, 2).unwrap();
    let (mut one, two) = Port::pair(Config::new(), Config::new().number(1)).unwrap();
    one.connect_loopback().unwrap();
    port.barrier().unwrap();
    port.revoke(grant).unwrap();
    drop((one, two, narrowed, second, unused));
    port.barrier().unwrap();
    line.say(0);
    line.hear();
    let Rank { port, region, queue, remote, remote_queue, .. } = rank;
    let left = port.leave();
    assert!(matches!(left, Ok(()) | Err(Fault::PeerDead)), "{left:?}");
    drop((region, queue, remote, remote_queue));
    assert_eq!(held(), before);
}

// spec: LIFE-17
#[test]
fn a_closed_port_leaves_no_resources() {
    with_processes(
        |_, line| hold_everything(&line),
        |family| {
            for executor in Executor::ALL {
                let mut ranks = pair(family, executor, "");
                ranks.iter().for_each(|rank| assert_eq!(rank.line.hear(), 0));
                ranks.iter().for_each(|rank| rank.line.say(0));
                ranks.iter_mut().for_each(Process::succeeds);
                assert!(family.directory().entries().is_empty());
            }
        },
    );
}

fn listen_and_go() {
    let path = std::path::PathBuf::from(std::env::var("SOCKET").unwrap());
    let before = held();
    let mut port = Port::open(Config::new()).unwrap();
    port.listen(&path).unwrap();
    assert!(path.exists());
    drop(port);
    assert_eq!(held(), before);
    assert!(!path.exists(), "the socket has outlived its port");
}

// spec: LIFE-17
#[test]
fn a_listening_port_takes_its_socket_along() {
    with_processes(
        |_, _| listen_and_go(),
        |family| {
            let start = |command: &mut std::process::Command| {
                command.env("SOCKET", family.directory().join("socket"));
            };
            family.start_with(start).succeeds();
        },
    );
}

/// A peer that waits to be killed; it hands over what the test hands to it.
fn come_and_go(line: &Line) {
    let mut port = Port::open(Config::new().number(3)).unwrap();
    let other = port.connect(std::env::var("SOCKET").unwrap()).unwrap();
    let region = port.alloc(64, RegionOptions::new()).unwrap();
    let mut queue = port.create_queue(4096).unwrap();
    port.share(other, &region, 0..64, Rights::all(), NAME).unwrap();
    port.share_queue(other, &mut queue, NAME).unwrap();
    line.say(0);
    line.hear();
}

fn meet(family: &Family, port: &mut Port) -> (Process, RemoteRegion, RemoteQueue) {
    let process = family.start_with(|command| {
        command.env("SOCKET", family.directory().join("socket"));
    });
    let peer = port.accept().unwrap();
    assert_eq!(peer, PeerId(3));
    process.line.hear();
    let region = port.accept_region(peer, NAME).unwrap();
    (process, region, port.accept_queue(peer, NAME).unwrap())
}

// spec: LIFE-14, LIFE-19, REV-4
#[test]
fn a_number_comes_back_but_its_handles_do_not() {
    with_processes(
        |_, line| come_and_go(&line),
        |family| {
            let mut port = Port::open(Config::new()).unwrap();
            port.listen(family.directory().join("socket")).unwrap();
            let own = port.alloc(64, RegionOptions::new()).unwrap();
            let (mut process, old_region, mut old_queue) = meet(family, &mut port);
            let grant = port.share(PeerId(3), &own, 0..64, Rights::all(), 9).unwrap();
            process.kill();
            let died = ReceiveError::PeerDied(PeerId(3));
            assert_eq!(port.recv(&mut [0; 8], None), Err(died));
            port.disconnect(PeerId(3)).unwrap();
            let revoked = port.revoke(grant);
            assert!(matches!(revoked, Err(SetupError::Fault(Fault::StaleKey))), "{revoked:?}");

            let (_process, region, mut queue) = meet(family, &mut port);
            let foreign = Err(PostError::Fault(Fault::ForeignHandle));
            assert_eq!(port.fetch_add(&old_region, 0, 1), foreign);
            assert_eq!(port.enqueue(&mut old_queue, b"x"), Err(Fault::ForeignHandle.into()));
            assert_eq!(port.fetch_add(&region, 0, 1), Ok(0));
            port.enqueue(&mut queue, b"x").unwrap();
            port.flush(PeerId(3)).unwrap();
        },
    );
}

/// A client of a service, which asks something and goes.
fn ask(port: &mut Port, connect: impl FnOnce(&mut Port) -> PeerId) {
    let service = connect(port);
    port.send(service, 1, b"question").unwrap();
    port.flush(service).unwrap();
}

fn accept(port: &mut Port, client: &ScopedJoinHandle<'_, ()>) -> PeerId {
    loop {
        match port.accept() {
            Err(SetupError::TimedOut(_)) if !client.is_finished() => {}
            accepted => return accepted.unwrap(),
        }
    }
}

/// Takes a client's question; without a word to say that it is forgotten.
fn serve(port: &mut Port, number: usize, client: &ScopedJoinHandle<'_, ()>) {
    let peer = accept(port, client);
    assert_eq!(peer.index(), number);
    // That earlier ones have died, a wait says, too.
    let message = loop {
        match port.recv(&mut [0; 8], None) {
            Err(ReceiveError::PeerDied(_)) => {}
            received => break received.unwrap(),
        }
    };
    assert_eq!((message.source, message.len), (peer, 8));
}

// spec: LIFE-14
#[test]
fn a_listener_serves_callers_of_one_number_one_after_the_other() {
    let directory = Directory::new();
    let path = directory.join("socket");
    let mut port = Port::open(Config::new().setup_timeout(SHORT)).unwrap();
    port.listen(&path).unwrap();
    let net = NetOptions::plain().at("127.0.0.1:0".parse().unwrap());
    let at = port.open_net(&net).unwrap();
    for turn in 0..3000 {
        let number = 1 + turn % 3;
        let config = Config::new().number(number as u16).linger(Duration::ZERO);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut client = Port::open(config).unwrap();
                if turn % 50 == 0 {
                    client.open_net(&net).unwrap();
                    ask(&mut client, |port| port.connect_net(&at).unwrap());
                } else {
                    ask(&mut client, |port| port.connect(&path).unwrap());
                }
                client.leave().unwrap();
            });
            serve(&mut port, number, &client);
            client.join().unwrap();
        });
    }
    // Who lives, and who has said what was not received, keeps its number.
    let mut callers = [1, 2].map(|number| Port::open(Config::new().number(number)).unwrap());
    for caller in &mut callers {
        std::thread::scope(|scope| {
            let client = scope.spawn(|| ask(caller, |port| port.connect(&path).unwrap()));
            accept(&mut port, &client);
        });
    }
    let [_lives, gone] = callers;
    drop(gone);
    for number in [1, 2] {
        let mut late = Port::open(Config::new().number(number)).unwrap();
        std::thread::scope(|scope| {
            let connected = scope.spawn(|| late.connect(&path));
            while !connected.is_finished() {
                assert!(matches!(port.accept(), Err(SetupError::TimedOut(_))));
            }
            let connected = connected.join().unwrap();
            let taken = matches!(connected, Err(SetupError::Refused { why: Refusal::Taken, .. }));
            assert!(taken, "{connected:?}");
        });
    }
}

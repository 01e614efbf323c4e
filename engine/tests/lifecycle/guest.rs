//! The library as a guest in a program's process.
use super::common::system::descriptors;
use super::common::{Executor, Line, with_processes};
use ayre::{
    Config, Endpoint, EndpointOptions, NetOptions, Outgoing, PeerId, Port, ReceiveError,
    RegionOptions, Rights, Spans, Spin,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

const NAME: u64 = 1;
/// Signals 1 to 64 but KILL and STOP, which cannot be blocked, and the two that are the C library's
/// own.
const ALL_BLOCKED: &str = "fffffffe7ffbfeff";
/// As `/proc` tells it.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// Everything that makes descriptors and threads, open.
#[derive(Debug)]
struct All {
    _ports: [Port; 2],
    _endpoints: [Endpoint; 2],
    _memory: Vec<Box<dyn std::fmt::Debug>>,
}

impl All {
    fn open(socket: PathBuf) -> Self {
        let [mut one, mut other] =
            [1, 2].map(|number| Port::open(Config::new().number(number)).unwrap());
        one.listen(&socket).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| other.connect(&socket).unwrap());
            one.accept().unwrap();
        });
        let region = one.alloc(4096, RegionOptions::new()).unwrap();
        let mut queue = one.create_queue(4096).unwrap();
        one.share(PeerId(2), &region, 0..4096, Rights::all(), NAME).unwrap();
        one.share_queue(PeerId(2), &mut queue, NAME).unwrap();
        let remote = other.accept_region(PeerId(1), NAME).unwrap();
        let remote_queue = other.accept_queue(PeerId(1), NAME).unwrap();
        one.connect_loopback().unwrap();
        one.start_engine().unwrap();
        one.open_net(&NetOptions::plain().at("127.0.0.1:0".parse().unwrap())).unwrap();
        let memory: Vec<Box<dyn std::fmt::Debug>> =
            vec![Box::new(region), Box::new(queue), Box::new(remote), Box::new(remote_queue)];
        Self { _ports: [one, other], _endpoints: talking_endpoints(), _memory: memory }
    }
}

fn talking_endpoints() -> [Endpoint; 2] {
    let options = EndpointOptions::new().spin(Spin::SHARED).at([127, 0, 0, 1].into());
    let mut both = [(); 2].map(|()| Endpoint::open_with(&options).unwrap());
    let to = both[1].address();
    let to = both[0].remote(&to).unwrap();
    let bytes = Spans::default();
    let message = Outgoing { tag: None, data: None, bytes, context: 0, delivered: false };
    while both[0].send(to, &message).is_err() {
        both.iter_mut().for_each(|endpoint| _ = endpoint.progress(|_| {}));
    }
    both
}

/// Whether a descriptor is closed where the process becomes another program.
fn closes_on_exec(number: u32) -> bool {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    u32::from_str_radix(flags.trim(), 8).unwrap() & CLOSE_ON_EXEC != 0
}

fn open_numbers() -> BTreeSet<u32> {
    descriptors().keys().map(|number| number.parse().unwrap()).collect()
}

/// Name and blocked signals of each thread of Ayre's.
fn threads() -> Vec<(String, String)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let about = tasks.map(|task| fs::read_to_string(task.path().join("status")).unwrap());
    let field = |about: &str, name: &str| {
        let value = about.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap().trim().to_owned()
    };
    let all = about.map(|about| (field(&about, "Name:"), field(&about, "SigBlk:")));
    all.filter(|(name, _)| name.starts_with("ayre-")).collect()
}

/// Has a child that lives on, with all descriptors, until the test hangs up.
fn beget_heir(line: &Line) {
    // SAFETY: the child calls the system only: it makes no other thread's lock its business.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        while line.try_hear().is_some() {}
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(0) };
    }
}

// spec: LIFE-10, LIFE-11
#[test]
fn a_killed_peer_is_dead_though_its_child_holds_its_sockets() {
    let child = |_, line: Line| {
        let mut rank = super::Rank::join();
        if rank.port.rank() == 1 {
            beget_heir(&line);
        }
        line.say(0);
        if rank.port.rank() == 0 {
            line.hear();
            let died = ReceiveError::PeerDied(rank.other);
            assert_eq!(rank.port.recv(&mut [0; 8], None), Err(died));
            return;
        }
        loop {
            rank.port.progress();
            std::thread::yield_now();
        }
    };
    with_processes(child, |family| {
        for executor in Executor::ALL {
            for is_asleep in [false, true] {
                let [mut survivor, mut victim] = super::pair(family, executor, "");
                survivor.line.hear();
                victim.line.hear();
                survivor.line.say(0);
                if is_asleep {
                    survivor.until_asleep();
                }
                victim.kill();
                survivor.succeeds();
            }
        }
    });
}

fn is_open(number: i32) -> bool {
    // SAFETY: the call looks at a number, and touches no memory.
    unsafe { libc::fcntl(number, libc::F_GETFD) != -1 }
}

// spec: LIFE-29
#[test]
fn no_descriptor_takes_the_number_of_a_standard_stream_or_outlives_exec() {
    with_processes(
        |_, line| {
            // SAFETY: the line to the test has a number of its own, and nobody here writes.
            (0..3).for_each(|number| assert_eq!(unsafe { libc::close(number) }, 0));
            let before = open_numbers();
            let all = All::open(std::env::var("SOCKET").unwrap().into());
            line.say((0..3).filter(|number| is_open(*number)).count() as u64);
            let made: Vec<_> = open_numbers().difference(&before).copied().collect();
            line.say(made.len() as u64);
            line.say(made.iter().filter(|number| !closes_on_exec(**number)).count() as u64);
            drop(all);
        },
        |family| {
            let mut guest = family.start_with(|command| {
                command.env("SOCKET", family.directory().join("socket"));
            });
            assert_eq!(guest.line.hear(), 0, "below 3");
            assert!(guest.line.hear() > 30, "everything is open");
            assert_eq!(guest.line.hear(), 0, "not close-on-exec");
            guest.succeeds();
        },
    );
}

// spec: LIFE-28
#[test]
fn the_threads_of_ports_and_endpoints_have_all_signals_blocked() {
    with_processes(
        |_, _| {
            let _all = All::open(std::env::var("SOCKET").unwrap().into());
            let mut all = threads();
            all.sort();
            let [keeper, engine] = ["ayre-keeper", "ayre-engine"];
            let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
            assert!(names.contains(&keeper) && names.contains(&engine), "{names:?}");
            assert!(all.iter().all(|(_, blocked)| blocked == ALL_BLOCKED), "{all:?}");
        },
        |family| {
            let start = |command: &mut std::process::Command| {
                command.env("SOCKET", family.directory().join("socket"));
            };
            family.start_with(start).succeeds();
        },
    );
}

//! The library as a guest in a program's process.
use super::common::system::descriptors;
use super::common::{Executor, Line, with_processes};
use ayre::deposit::{Deposit, InletOptions, OPERAND, Program, Register, Stored, X, Y};
use ayre::endpoint::raw::{OutgoingMessage, PostedReceive, RawEndpoint, Spans};
use ayre::endpoint::{Address, RemoteId};
use ayre::{
    Config, EndpointOptions, NetOptions, PeerId, Port, PostOptions, ReceiveError, RegionOptions,
    Rights, SetupError, Spin,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, pipe};
use std::os::fd::AsRawFd;
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
    _endpoints: [RawEndpoint; 2],
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

fn talking_endpoints() -> [RawEndpoint; 2] {
    let options = EndpointOptions::new().spin(Spin::SHARED).at([127, 0, 0, 1].into());
    let mut both = [(); 2].map(|()| RawEndpoint::open_with(&options).unwrap());
    let to = both[1].address();
    let to = both[0].remote(&to).unwrap();
    let bytes = Spans::default();
    let message = OutgoingMessage { tag: None, data: None, bytes, context: 0, delivered: false };
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

pub(crate) fn open_numbers() -> BTreeSet<u32> {
    descriptors().keys().map(|number| number.parse().unwrap()).collect()
}

/// Name and blocked signals of each thread of Ayre's.
pub(crate) fn threads() -> Vec<(String, String)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    // One may end meanwhile.
    let about = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let field = |about: &str, name: &str| {
        let value = about.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap().trim().to_owned()
    };
    let all = about.map(|about| (field(&about, "Name:"), field(&about, "SigBlk:")));
    all.filter(|(name, _)| name.starts_with("ayre-")).collect()
}

/// Has a child that lives on, with all descriptors, until the test hangs up.
fn beget_heir(line: &Line) {
    let (mut heard, said) = pipe().unwrap();
    // SAFETY: the child calls the system only: it makes no other thread's lock its business.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: the byte is there, and the descriptor is open.
        unsafe { libc::write(said.as_raw_fd(), [1_u8].as_ptr().cast(), 1) };
        while line.try_hear().is_some() {}
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(0) };
    }
    // Until the child has run it has all that its parent has.
    heard.read_exact(&mut [0]).unwrap();
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

/// The child has neither the socket of the path nor, of an endpoint, that of its name.
// spec: LIFE-33
#[test]
fn a_killed_service_listens_at_its_path_again_though_its_child_lives_on() {
    with_processes(
        |_, line| {
            let mut port = Port::open(Config::new()).unwrap();
            port.listen(std::env::var("SOCKET").unwrap()).unwrap();
            beget_heir(&line);
            line.say(0);
            while line.try_hear().is_some() {}
        },
        |family| {
            let socket = family.directory().join("socket");
            let start = || {
                let service = family.start_with(|command| _ = command.env("SOCKET", &socket));
                service.line.hear();
                service
            };
            // Its line holds its child.
            let mut dead = Vec::new();
            for _ in 0..3 {
                let mut service = start();
                let mut other = Port::open(Config::new()).unwrap();
                let taken = other.listen(&socket);
                assert!(
                    matches!(taken, Err(SetupError::InUse { .. })),
                    "while it lives: {taken:?}"
                );
                service.kill();
                dead.push(service);
            }
            let mut port = Port::open(Config::new()).unwrap();
            port.listen(&socket).expect("nobody has the path");
        },
    );
}

/// The result of `f` in a forked child, which then ends as a program does that has forked.
fn in_child(f: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child has what this thread has; that the library has no other one's locks there
    // is what is tried.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
        let is_well = f();
        // SAFETY: it ends the child at once; what it has dropped, it has dropped.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    let mut status = 0;
    // SAFETY: it is our child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

/// A child tries everything with what is its parent's: each call ends, with an error where one can
/// be told.
fn meddle(rank: super::Rank) -> bool {
    let super::Rank { mut port, other, mut queue, remote, mut remote_queue, .. } = rank;
    let refused = port.alloc(64, RegionOptions::new()).is_err();
    let put = port.put(&remote, 0, &[7; 8], PostOptions::new()).is_err();
    let put = put || port.flush(other).is_err();
    let sent = (0..1000).filter(|_| port.send(other, 0, b"of a child").is_ok()).count();
    let enqueued = (0..1000).filter(|_| port.enqueue(&mut remote_queue, b"x").is_ok()).count();
    let mut buffer = [0; 64];
    let is_over = port.recv(&mut buffer, None).is_err();
    let is_over = is_over && port.dequeue_wait(&mut queue, &mut buffer, None).is_err();
    port.progress();
    let alive = port.is_alive(other);
    drop((port, queue, remote, remote_queue));
    refused && put && sent < 1000 && enqueued < 1000 && is_over && !alive
}

// spec: LIFE-35
#[test]
fn a_forked_child_has_its_own_library_state() {
    let child = |_, line: Line| {
        let mut rank = super::Rank::join();
        let (is_parent, other) = (rank.port.rank() == 0, rank.other);
        if is_parent {
            let socket = std::env::temp_dir().join(format!("ayre-fork-{}", std::process::id()));
            // In a thread as well, which has nothing but what is the process's.
            let own = || drop(All::open(socket.with_extension("own")));
            let well = std::thread::scope(|scope| {
                let forks = scope.spawn(|| in_child(|| (own(), true).1));
                forks.join().unwrap()
            });
            assert!(well, "a child of a thread");
            let inherited = rank;
            // The child's copy is what it meddles with; this process keeps its own.
            let kept = std::mem::ManuallyDrop::new(inherited);
            // SAFETY: in the child only, where the other copy is never used.
            assert!(in_child(|| meddle(unsafe { std::ptr::read(&*kept) }) && (own(), true).1));
            rank = std::mem::ManuallyDrop::into_inner(kept);
        }
        for turn in 0..100 {
            if is_parent {
                super::tell(&mut rank.port, other, 3, turn);
                assert_eq!(super::told(&mut rank.port, other, 4), turn);
            } else {
                assert_eq!(super::told(&mut rank.port, other, 3), turn);
                super::tell(&mut rank.port, other, 4, turn);
            }
        }
        line.say(1);
        line.hear();
    };
    with_processes(child, |family| {
        for executor in Executor::ALL {
            let mut ranks = super::pair(family, executor, "");
            ranks.iter().for_each(|rank| assert_eq!(rank.line.hear(), 1));
            ranks.iter().for_each(|rank| rank.line.say(0));
            ranks.iter_mut().for_each(super::Process::succeeds);
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

// spec: LIFE-37
#[test]
fn the_limit_of_descriptors_is_raised_once_unless_the_user_has_it_kept() {
    let child = |_, line: Line| {
        let soft = || getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let whole = getrlimit(Resource::Nofile);
        let lower = |to| setrlimit(Resource::Nofile, Rlimit { current: Some(to), ..whole });
        lower(48).unwrap();
        let mut port = Port::open(Config::new()).unwrap();
        line.say(soft());
        // What the program says later counts.
        lower(52).unwrap();
        let second = Port::open(Config::new()).unwrap();
        line.say(soft());
        drop(second);
        port.progress();
    };
    with_processes(child, |family| {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX).min(1 << 20);
        for (word, raised) in [(None, hard), (Some("raise"), hard), (Some("keep"), 48)] {
            let mut process = family.start_with(|command| {
                word.map(|word| command.env("AYRE_DESCRIPTORS", word));
            });
            assert_eq!((process.line.hear(), process.line.hear()), (raised, 52), "{word:?}");
            process.succeeds();
        }
    });
}

/// Endpoints of a process that call the one of the test.
const CALLERS: usize = 20;

pub(crate) fn message(to: RemoteId, endpoint: &mut RawEndpoint) -> bool {
    let bytes = Spans::default();
    let message = OutgoingMessage { tag: None, data: None, bytes, context: 0, delivered: false };
    endpoint.send(to, &message).is_ok()
}

/// Takes as many messages.
fn take(endpoint: &mut RawEndpoint, count: usize) {
    let mut taken = 0;
    for _ in 0..count {
        let into = Spans::default();
        let any = PostedReceive { source: None, tag: None, into, context: 1, many: None };
        endpoint.receive(any).unwrap();
    }
    while taken < count {
        endpoint.progress(|end| taken += usize::from(end.context == 1));
    }
}

/// Hears an address from the test, or tells it one.
fn hear_address(line: &Line) -> Address {
    let mut address = [0; 64];
    address.as_chunks_mut().0.iter_mut().for_each(|word| *word = line.hear().to_le_bytes());
    Address::from_bytes(&address).unwrap()
}

fn tell_address(line: &Line, address: Address) {
    let bytes = address.to_bytes();
    bytes.as_chunks().0.iter().for_each(|word| line.say(u64::from_le_bytes(*word)));
}

/// The endpoint that all call; in a process of its own, whose descriptors are counted.
fn be_called(mut hub: RawEndpoint, line: &Line) {
    tell_address(line, hub.address());
    let before = open_numbers().len();
    take(&mut hub, CALLERS);
    line.say((open_numbers().len() - before) as u64);
    while !hub.rest(|_| ()) {
        hub.progress(|_| ());
    }
    line.say(0);
    poll(&mut [PollFd::new(&hub.as_fd(), PollFlags::IN)], None).unwrap();
    hub.wake();
    take(&mut hub, CALLERS);
    // Each leaves: the hub has nothing of them any more.
    line.say(0);
    while open_numbers().len() > before {
        hub.progress(|_| ());
    }
}

// spec: LIM-1, ENV-9
#[test]
fn a_peer_costs_an_endpoint_two_descriptors_and_wakes_it() {
    let options = || EndpointOptions::new().spin(Spin::SHARED).local();
    let child = move |number, line: Line| {
        let open = || RawEndpoint::open_with(&options()).unwrap();
        if number == 0 {
            return be_called(open(), &line);
        }
        let hub = hear_address(&line);
        let mut callers = [0; CALLERS].map(|_| open());
        let to_hub = callers.each_mut().map(|caller| caller.remote(&hub).unwrap());
        let before = open_numbers().len();
        for _ in 0..2 {
            for (caller, to) in callers.iter_mut().zip(to_hub) {
                while !message(to, caller) {
                    caller.progress(|_| ());
                }
            }
            line.say((open_numbers().len() - before) as u64);
            line.hear();
        }
    };
    with_processes(child, |family| {
        let mut hub = family.start_with(|_| ());
        let mut callers = family.start_with(|_| ());
        tell_address(&callers.line, hear_address(&hub.line));
        let two = 2 * CALLERS as u64;
        assert_eq!((hub.line.hear(), callers.line.hear()), (two, two), "a channel, and a process");
        hub.line.hear();
        callers.line.say(0);
        assert_eq!(callers.line.hear(), two);
        hub.line.hear();
        callers.line.say(0);
        callers.succeeds();
        hub.succeeds();
    });
}

/// Name of an inlet.
const INLET: u64 = 1;

/// Posts messages that are inside the depot for nearly all of their time, until it is killed.
fn deposit_for_ever(line: &Line) {
    let mut port = Port::open(Config::new().number(1)).unwrap();
    let owner = port.connect(std::env::var("SOCKET").unwrap()).unwrap();
    let inlet = port.accept_inlet(owner, INLET).unwrap();
    beget_heir(line);
    let add = Deposit::enter(0).operand(1);
    loop {
        let _ = port.deposit(&inlet, &add, PostOptions::new());
    }
}

// spec: DEP-26
#[test]
fn a_sender_killed_inside_a_depot_leaves_it_open_though_its_child_lives_on() {
    const KILLS: u64 = 12;
    let add = |x, y| {
        let program = Program::new().then(X.add(OPERAND)).then(Y.add(OPERAND));
        program.store([Register::At(x), Register::At(y), Register::At(255)])
    };
    let add_to_all = Stored::sequence([add(0, 1), add(2, 3)]).unwrap();
    with_processes(
        |_, line| deposit_for_ever(&line),
        |family| {
            let mut port = Port::open(Config::new()).unwrap();
            let socket = family.directory().join("socket");
            port.listen(&socket).unwrap();
            let depot = port.create_depot().unwrap();
            let region = port.alloc(4096, RegionOptions::new()).unwrap();
            depot.store(0, &add_to_all).unwrap();
            let mut dead = Vec::new();
            for kill in 0..KILLS {
                let mut sender = family.start_with(|command| {
                    command.env("SOCKET", &socket);
                });
                let peer = port.accept().unwrap();
                let options = InletOptions::new().entries(0..1);
                let part = (&region, 0..4096);
                let inlet = port.share_inlet(peer, &depot, part, &options, INLET).unwrap();
                let before = depot.register(0);
                while depot.register(0) < before + 200 + 37 * kill {
                    std::thread::yield_now();
                }
                sender.kill();
                let frozen = depot.freeze().expect("who has died is not inside");
                let found = [0, 1, 2, 3].map(|index| frozen.register(index));
                assert_eq!(found, [found[0]; 4], "after {kill} kills");
                drop(frozen);
                while port.is_alive(peer) {
                    port.progress();
                }
                port.revoke_inlet(inlet).unwrap();
                port.disconnect(peer).unwrap();
                // Its line holds its child.
                dead.push(sender);
            }
        },
    );
}

//! Limits that the system sets on a program's process, and changes of the program to its process,
//! where the library is a guest.
use super::SHORT;
use super::common::container::{Container, may_make};
use super::common::{Family, Line, Process, with_processes};
use super::guest::{message, open_numbers, threads};
use ayre::endpoint::raw::{PostedReceive, RawEndpoint, Spans};
use ayre::error::DisconnectReason;
use ayre::guest::descriptor;
use ayre::{Config, EndpointOptions, NetOptions, PeerId, Port, ReceiveError, RegionOptions, Spin};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::thread::Builder;

/// Bytes of a stack as the threads of small C libraries have them.
const STACK: usize = 128 << 10;

type Both = [Box<RawEndpoint>; 2];

fn open(options: &EndpointOptions) -> Both {
    [(); 2].map(|()| Box::new(RawEndpoint::open_with(options).unwrap()))
}

fn local() -> EndpointOptions {
    EndpointOptions::new().spin(Spin::SHARED).local()
}

/// Meets others of this host over the network, too.
fn apart() -> EndpointOptions {
    EndpointOptions::new().spin(Spin::SHARED).at([127, 0, 0, 1].into()).apart()
}

/// A message from one to the other, who are connected then.
fn exchange(both: &mut Both) {
    let to = both[1].address();
    let to = both[0].remote(&to).unwrap();
    let into = Spans::default();
    both[1]
        .receive(PostedReceive { source: None, tag: None, into, context: 1, many: None })
        .unwrap();
    let (mut is_sent, mut has_come) = (false, false);
    while !has_come {
        is_sent = is_sent || message(to, &mut both[0]);
        both[0].progress(|_| ());
        both[1].progress(|end| has_come |= end.context == 1);
    }
}

/// Sets the soft limit.
fn limit(of: Resource, to: u64) -> Rlimit {
    let whole = getrlimit(of);
    setrlimit(of, Rlimit { current: Some(to), ..whole }).unwrap();
    whole
}

/// A process says that it has come to its end.
const DONE: u64 = 1;

/// A thread of the library's that serves links runs.
fn a_keeper_runs() -> bool {
    threads().iter().any(|(name, _)| name == "ayre-keeper")
}

fn comes_to_its_end(mut process: Process) {
    assert_eq!(process.line.hear(), DONE);
    process.succeeds();
}

// spec: LIFE-39
#[test]
fn a_thread_with_a_small_stack_opens_connects_and_closes_endpoints() {
    let child = |_, line: Line| {
        for options in [local(), apart(), apart().plain()] {
            let run = move || exchange(&mut open(&options));
            Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
        }
        line.say(DONE);
    };
    with_processes(child, |family| comes_to_its_end(family.start()));
}

// spec: LIFE-38
#[test]
fn memory_beyond_the_longest_file_of_the_process_is_an_error_that_names_the_limit() {
    let child = |_, line: Line| {
        let mut port = Port::open(Config::new()).unwrap();
        let whole = limit(Resource::Fsize, 8192);
        let refused = port.alloc(1 << 20, RegionOptions::new()).map(drop);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("`ulimit -f`"), "{refused}");
        setrlimit(Resource::Fsize, whole).unwrap();
        port.alloc(1 << 20, RegionOptions::new()).unwrap();
        line.say(DONE);
    };
    with_processes(child, |family| comes_to_its_end(family.start()));
}

// spec: LIFE-40
#[test]
fn open_connections_survive_a_lowered_descriptor_limit() {
    let child = |_, line: Line| {
        let [one, other] = [1, 2].map(|number| Config::new().number(number));
        let (mut one, mut other) = Port::pair(one, other).unwrap();
        one.open_net(&NetOptions::plain().at("127.0.0.1:0".parse().unwrap())).unwrap();
        let mut both = open(&apart());
        exchange(&mut both);
        limit(Resource::Nofile, 0);
        exchange(&mut both);
        let soon = Some(SHORT);
        assert_eq!(
            one.recv(&mut [0; 8], soon),
            Err(ReceiveError::TimedOut),
            "it sleeps, and wakes"
        );
        other.send(PeerId(1), 7, b"a word").unwrap();
        assert_eq!(one.recv(&mut [0; 8], None).unwrap().len, 6);
        // Threads end that sleep.
        drop((one, both));
        line.say(DONE);
    };
    with_processes(child, |family| comes_to_its_end(family.start()));
}

/// Closes all descriptors but those, as programs do that become daemons.
fn close_all_but(before: &BTreeSet<u32>) -> Vec<i32> {
    let made: Vec<_> = open_numbers().difference(before).map(|made| *made as i32).collect();
    for made in &made {
        // SAFETY: they are the library's, which is to bear it.
        assert_eq!(unsafe { libc::close(*made) }, 0);
    }
    made
}

/// Files of the program's, of many kinds, which take numbers that are free.
fn open_others(numbers: &[i32]) -> Vec<OwnedFd> {
    let other = |(at, _)| match at % 5 {
        0 => std::fs::File::open("/dev/zero").unwrap().into(),
        1 => eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
        2 => epoll::create(epoll::CreateFlags::CLOEXEC).unwrap(),
        3 => std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into(),
        _ => std::os::unix::net::UnixDatagram::unbound().unwrap().into(),
    };
    numbers.iter().enumerate().map(other).collect()
}

/// None was closed, written to or put into by somebody else.
fn are_untouched(others: &[OwnedFd]) {
    for other in others {
        rustix::io::fcntl_getfd(other).expect("one was closed");
        let mut fds = [PollFd::new(other, PollFlags::IN)];
        let is_file = fstat(other)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice);
        let seen = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        assert_eq!(
            seen,
            usize::from(is_file),
            "something has come to a descriptor of the program's"
        );
    }
}

// spec: LIFE-40, ENV-34
#[test]
fn closing_our_descriptors_ends_connections_with_a_reason() {
    let child = |_, line: Line| {
        let before = open_numbers();
        let [one, other] = [1, 2].map(|number| Config::new().number(number));
        let (mut one, other) = Port::pair(one, other).unwrap();
        let mut both = open(&local());
        exchange(&mut both);
        close_all_but(&before);
        let died = Err(ReceiveError::PeerDied(PeerId(2)));
        assert_eq!(one.recv(&mut [0; 8], None), died);
        let to = both[1].address();
        let to = both[0].remote(&to).unwrap();
        while both[0].reason(to).is_none() {
            both[0].progress(|_| ());
        }
        let why = both[0].reason(to).unwrap();
        assert_eq!(*why, DisconnectReason::Os { call: "epoll_wait", errno: Errno::BADF });
        assert!(why.advice().contains("closed"), "{}", why.advice());
        assert!(!message(to, &mut both[0]));
        let lost = descriptor::lost();
        drop((one, other, both));
        assert!(descriptor::lost() > lost, "the program can ask");
        line.say(DONE);
    };
    with_processes(child, |family| comes_to_its_end(family.start()));
}

// spec: LIFE-40
#[test]
fn closing_leaves_reused_descriptor_numbers_open() {
    let child = |number: u64, line: Line| {
        let (is_apart, is_connected, is_reopened) =
            (number & 1 != 0, number & 2 != 0, number & 4 != 0);
        let before = open_numbers();
        let mut both = open(&if is_apart { apart() } else { local() });
        let mut port = Port::open(Config::new()).unwrap();
        port.connect_loopback().unwrap();
        port.start_engine().unwrap();
        let region = port.alloc(4096, RegionOptions::new()).unwrap();
        if is_connected {
            exchange(&mut both);
        }
        let made = close_all_but(&before);
        let others = if is_reopened { open_others(&made) } else { Vec::new() };
        drop((region, port, both));
        are_untouched(&others);
        // What is opened afterwards works, and is closed.
        let before = open_numbers();
        exchange(&mut open(&local()));
        assert_eq!(open_numbers(), before);
        are_untouched(&others);
        line.say(DONE);
    };
    with_processes(child, |family| (0..8).for_each(|_| comes_to_its_end(family.start())));
}

// spec: LIFE-40
#[test]
fn threads_leave_reused_descriptor_numbers_open() {
    let child = |_, line: Line| {
        let before = open_numbers();
        let endpoint = RawEndpoint::open_with(&apart()).unwrap();
        // It has its name a moment after its start.
        while !a_keeper_runs() {
            std::thread::yield_now();
        }
        let made = close_all_but(&before);
        // Files of the program's, which can always be read, take their numbers.
        let own: Vec<_> = made.iter().map(|_| std::fs::File::open("/dev/zero").unwrap()).collect();
        while a_keeper_runs() {
            std::thread::yield_now();
        }
        drop(endpoint);
        assert!(own.iter().all(|file| file.metadata().is_ok()), "one was closed");
        line.say(DONE);
    };
    with_processes(child, |family| comes_to_its_end(family.start()));
}

// spec: ENV-32
#[test]
fn endpoints_of_a_host_without_a_network_meet_there() {
    if !may_make() {
        return;
    }
    let child = |_, line: Line| {
        exchange(&mut open(&EndpointOptions::new().spin(Spin::SHARED)));
        line.say(DONE);
    };
    let start = |family: &Family| Container::none().network().start(family, |_| ());
    with_processes(child, |family| comes_to_its_end(start(family)));
}

//! Why bytes of a connection go by the kernel, as a tool sees it, after calls that decide so.

// Tests share more than this one needs.
#[macro_use]
#[path = "common/mod.rs"]
mod common;
// Rows need more of it than these tests do.
#[allow(dead_code)]
#[path = "calls/end.rs"]
mod end;

use common::call::{self, Family};
use common::launch::{Crew, Ending, Folder, Net, ROLE, library};
use common::seen::way_of;
use end::{End, FOLDER, WARM};
use std::ffi::c_int;
use std::net::TcpListener;

/// Seconds after which a test hangs.
const DEADLINE: u64 = 20;

/// The variable that names what the client does.
const ACT: &str = "AYRE_SOCKETS_TEST_ROW";

/// The variable that names the port of a listener without the library.
const PLAIN_PORT: &str = "AYRE_SOCKETS_TEST_PORT";

before_main! {
    let Ok(role) = std::env::var(ROLE) else { return };
    let name = std::env::var(ACT).expect("the act is named");
    let (_, act) = ACTS.iter().find(|(n, _)| *n == name).expect("the act exists");
    let mut end = End::new(role == "server");
    end.connect();
    if role == "client" {
        act(&mut end);
    }
    end.meet();
    end.finish();
}

/// A process that forks shares its connections with the child, as long as it lives.
fn fork(end: &mut End) {
    let gate = call::pipe().expect("a pipe");
    let child = call::fork().expect("a child");
    if child == 0 {
        let _ = call::read(gate[0], &mut [0]);
        call::exit_now(0);
    }
    end.say("with a child", way_of(end.fd));
    call::write(gate[1], &[1]).expect("the child reads");
    call::wait_for(child).expect("it ends");
    end.say("still forked", way_of(end.fd) == "TCP: forked");
}

/// A connection is seen by a name that is left, and not as the file that gets its first number.
fn another_name(end: &mut End) {
    end.say("by its first name", way_of(end.fd));
    let other = call!(dup(end.fd)).expect("a duplicate") as c_int;
    call::close(end.fd).expect("it is open");
    end.say("by another name", way_of(other));
    let unconnected = call::socket(call::family(), 0).expect("a socket");
    assert_eq!(unconnected, end.fd, "the lowest number");
    end.say("the file there", way_of(unconnected));
    let moved = call!(dup2(other, unconnected)).expect("it is put there") as c_int;
    call::close(other).expect("it is open");
    end.say("where it was", way_of(moved));
}

fn two_sets(end: &mut End) {
    for _ in 0..2 {
        let set = call!(epoll_create1(0)).expect("an epoll") as c_int;
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        call!(epoll_ctl(set, libc::EPOLL_CTL_ADD, end.fd, &mut event)).expect("it is added");
    }
    end.say("reason", way_of(end.fd));
}

fn option(end: &mut End) {
    call::set_option(end.fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &2).expect("it is set");
    end.say("reason", way_of(end.fd));
}

fn uring(end: &mut End) {
    // Whether the system has it does not matter.
    let mut parameters = [0u64; 15];
    let _ = call!(syscall(libc::SYS_io_uring_setup, 1usize, parameters.as_mut_ptr(), 0, 0, 0, 0));
    end.say("reason", way_of(end.fd));
}

fn standard_input(end: &mut End) {
    call!(dup2(end.fd, 0)).expect("it is duplicated");
    end.say("reason", way_of(end.fd));
}

fn passed(end: &mut End) {
    let mut ends = [0; 2];
    call!(socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr())).expect("a pair");
    call::pass(ends[0], end.fd).expect("it is passed on");
    end.say("reason", way_of(end.fd));
}

/// Where the memory of a pair cannot be mapped, a connection works by TCP.
fn no_addresses(end: &mut End) {
    let (listener, port) = call::listener(Family::Tcp, 0).expect("a listener");
    let pages = std::fs::read_to_string("/proc/self/statm").expect("the system tells");
    let pages: u64 = pages.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
    let mut limit = zeroed!(libc::rlimit);
    call!(getrlimit(libc::RLIMIT_AS, &mut limit)).expect("there is a limit");
    let few = libc::rlimit { rlim_cur: pages * 4096 + (8 << 20), ..limit };
    call!(setrlimit(libc::RLIMIT_AS, &few)).expect("it is set");
    let fd = call::socket(Family::Tcp, 0).expect("a socket");
    let connected = call::connect_to(fd, port);
    call!(setrlimit(libc::RLIMIT_AS, &limit)).expect("it is set");
    end.told("connect", connected);
    end.say("reason", way_of(fd));
    call::close(listener).expect("it is open");
}

fn program(end: &mut End) {
    let name = c"true".as_ptr();
    let arguments = [name.cast_mut(), std::ptr::null_mut()];
    let (none, mut child) = (std::ptr::null::<()>(), 0);
    let environment = [std::ptr::null_mut()];
    let at = (arguments.as_ptr(), environment.as_ptr());
    let started = call!(posix_spawnp(&mut child, name, none.cast(), none.cast(), at.0, at.1));
    assert_eq!((started, call::wait_for(child)), (Ok(0), Ok(0)));
    end.say("reason", way_of(end.fd));
}

/// A connection without a seat, and a child that has it, too.
fn without_peer(end: &mut End) {
    let port = std::env::var(PLAIN_PORT).expect("it is set").parse().expect("a number");
    let fd = call::socket(Family::Tcp, 0).expect("a socket");
    call::connect_to(fd, port).expect("it connects");
    end.say("reason", way_of(fd));
    let child = call::fork().expect("a child");
    if child == 0 {
        call::exit_now(c_int::from(way_of(fd) != "TCP: no peer"));
    }
    end.say("a child has it", call::wait_for(child) == Ok(0));
}

/// The client's text.
fn seen(act: &str) -> String {
    let folder = Folder::new();
    let plain = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = plain.local_addr().expect("it has an address").port().to_string();
    let mut crew = Crew::new();
    for role in ["server", "client"] {
        let mut command = Crew::command(&folder, role, Net::Library);
        crew.start(
            command.env(FOLDER, &folder.path).env(ACT, act).env(WARM, "50").env(PLAIN_PORT, &port),
        );
    }
    assert_eq!(crew.wait(DEADLINE), Ending::Well, "{act}: {}", folder.text("errors"));
    folder.text("client")
}

macro_rules! acts {
    ($($act:ident $(: $seen:literal)*;)*) => {
        const ACTS: &[(&str, fn(&mut End))] = &[$((stringify!($act), $act)),*];
        /// The acts by name, with what is seen.
        const SEEN: &[(&str, &str)] = &[$((stringify!($act), concat!($($seen, "\n"),*))),*];
    };
}

acts! {
    fork: "with a child: \"TCP: forked\"" : "still forked: false";
    another_name: "by its first name: \"rings\"" : "by another name: \"rings\""
        : "the file there: \"TCP: \"" : "where it was: \"rings\"";
    two_sets: "reason: \"TCP: several waiters\"";
    option: "reason: \"TCP: option\"";
    uring: "reason: \"TCP: io_uring\"";
    standard_input: "reason: \"TCP: stdio\"";
    passed: "reason: \"TCP: passed on\"";
    no_addresses: "connect: Ok(0)" : "reason: \"TCP: no room\"";
    program: "reason: \"TCP: exec\"";
    without_peer: "reason: \"TCP: no peer\"" : "a child has it: true";
}

// spec: SOCK-36
#[test]
fn each_act_that_leaves_the_rings_has_its_reason() {
    if library().is_none() {
        return;
    }
    for (act, expected) in SEEN {
        assert_eq!(seen(act), *expected, "{act}");
    }
}

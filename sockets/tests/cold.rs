//! Instructions of a program that waits for many streams, of which one is active. The program runs
//! under ptrace, which goes on by one instruction at a time.

// Tests share more than this one needs.
#[macro_use]
#[path = "common/mod.rs"]
mod common;

use common::launch::{Crew, Folder, Net, ROLE, library};
use common::{call, tracer};
use std::ffi::c_int;
use std::io::Read;
use std::process::{Child, Stdio};

/// The variables that tell the program how many connections it has, and where its peer listens.
const COUNT: &str = "AYRE_SOCKETS_TEST_COUNT";
const PORT: &str = "AYRE_SOCKETS_TEST_PORT";

/// Streams of the smaller and of the larger set, apart from the active one.
const FEWER: usize = 4;
const MORE: usize = 900;

/// Requests by the active stream, before and while instructions are counted.
const EARLY: usize = 20;
const COUNTED: usize = 20;

/// The signals by which the program says that the counted part begins and ends.
const BEGINS: c_int = libc::SIGUSR1;
const ENDS: c_int = libc::SIGUSR2;

before_main! {
    let Ok(role) = std::env::var(ROLE) else { return };
    let number = |name| std::env::var(name).expect("it is set").parse().expect("a number");
    match role.as_str() {
        "client" => ask(number(COUNT), number(PORT) as u16),
        _ => answer(number(COUNT)),
    }
    call::exit_now(0);
}

/// A byte there and back by each connection, and then by the first one.
fn ask(count: usize, port: u16) {
    let connect = |_| {
        let fd = call::socket(call::family(), 0).expect("a socket");
        call::connect_to(fd, port).expect("it connects");
        fd
    };
    let all: Vec<c_int> = (0..count).map(connect).collect();
    let request = |fd: c_int| {
        assert_eq!(call::write(fd, &[1]), Ok(1));
        assert_eq!(call::read(fd, &mut [0]), Ok(1));
    };
    for _ in 0..3 {
        all.iter().copied().for_each(request);
    }
    (0..EARLY + COUNTED).for_each(|_| request(all[0]));
}

fn answer(count: usize) {
    let (listening, port) = call::listener(call::family(), 0).expect("a listener");
    call!(listen(listening, 4096)).expect("it listens");
    call::write(1, &port.to_ne_bytes()).expect("the peer hears the port");
    let epoll = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
    for _ in 0..count {
        let none = std::ptr::null_mut();
        let fd = call!(accept(listening, none, std::ptr::null_mut())).expect("a connection");
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd as c_int, &mut event)).expect("it is added");
    }
    (0..3 * count + EARLY).for_each(|_| serve(epoll));
    call!(raise(BEGINS)).expect("it may");
    (0..COUNTED).for_each(|_| serve(epoll));
    call!(raise(ENDS)).expect("it may");
}

fn serve(epoll: c_int) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    assert_eq!(call!(epoll_wait(epoll, &mut event, 1, -1)), Ok(1));
    let fd = event.u64 as c_int;
    assert_eq!(call::read(fd, &mut [0]), Ok(1));
    assert_eq!(call::write(fd, &[1]), Ok(1));
}

/// Lets a traced process go on until it ends, and counts the instructions of its counted part.
fn count_instructions(child: &mut Child) -> u64 {
    let (mut count, mut is_counted) = (0, false);
    tracer::follow(child, libc::PTRACE_CONT, |signal| {
        let passed = match signal {
            BEGINS | ENDS | libc::SIGTRAP => 0,
            other => other,
        };
        is_counted = match signal {
            BEGINS => true,
            ENDS => false,
            _ => is_counted,
        };
        count += u64::from(signal == libc::SIGTRAP);
        let request = if is_counted { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT };
        (request, passed)
    });
    count
}

/// The instructions of the server, which has this number of streams and an active one.
fn instructions(cold: usize) -> u64 {
    let folder = Folder::new();
    let mut command = Crew::command(&folder, "server", Net::Library);
    let count = (cold + 1).to_string();
    // A look at rings before a sleep takes as many instructions as there is time for.
    command.env(COUNT, &count).env("AYRE_SOCKETS_SPIN", "0").stdout(Stdio::piped());
    tracer::be_traced(&mut command);
    let mut server = command.spawn().expect("it starts");
    let mut told = server.stdout.take().expect("it is a pipe");
    let run_client = || {
        let mut port = [0; 2];
        told.read_exact(&mut port).expect("the server listens");
        let mut command = Crew::command(&folder, "client", Net::Library);
        let command = command.env(COUNT, &count).env(PORT, u16::from_ne_bytes(port).to_string());
        assert!(command.status().expect("it starts").success(), "the client ends well");
    };
    let counted = std::thread::scope(|scope| {
        scope.spawn(run_client);
        count_instructions(&mut server)
    });
    let report = folder.text("report");
    let by_rings = format!(" rings={} ", cold + 1);
    assert!(report.lines().all(|line| line.contains(&by_rings)), "{report}");
    counted
}

// spec: SOCK-19
#[test]
fn a_wait_costs_no_instruction_for_a_cold_stream() {
    if library().is_none() {
        return;
    }
    let (fewer, more) = (instructions(FEWER), instructions(MORE));
    println!("{fewer} and {more} instructions for {COUNTED} requests");
    let for_each = (more.saturating_sub(fewer)) / (COUNTED * (MORE - FEWER)) as u64;
    assert_eq!(for_each, 0, "{fewer} instructions, and {more}");
}

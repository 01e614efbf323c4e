//! System calls of a program that has the library. If its peer has none, they are no more than
//! without it. The program runs under ptrace, which counts them.

// Tests share more than this one needs.
#[macro_use]
#[path = "common/mod.rs"]
mod common;

use common::call::{self, Family, UNIX};
use common::launch::{Crew, Folder, Net, ROLE, library};
use common::tracer::{self, IS_CALL};
use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

/// The variables that tell the program how many connections it has, and where its peer listens.
const COUNT: &str = "AYRE_SOCKETS_TEST_COUNT";
const PORT: &str = "AYRE_SOCKETS_TEST_PORT";

/// The variable that says whether an epoll has each socket before it connects.
const ADDED: &str = "AYRE_SOCKETS_TEST_ADDED";

const BYTES: usize = 64;

/// Connections of the shorter and of the longer run: the difference leaves the start out.
const FEWER: u64 = 20;
const MORE: u64 = 220;

/// Calls that a difference may have for other reasons, such as memory.
const OTHERS: u64 = 10;

/// The doors of a look for a peer, which counts for 5 ms.
const fn doors_of_look(family: Family) -> u64 {
    match family {
        Family::Tcp => 3,
        Family::Unix => 1,
    }
}

/// The calls of a look. Of each door there is a socket, which connects and is closed, in checked
/// builds with a look at its number. A code takes one more.
const fn calls_of_look(family: Family) -> u64 {
    doors_of_look(family) * 4 + 1
}

before_main! {
    let Ok(role) = std::env::var(ROLE) else { return };
    let number = |name| std::env::var(name).expect("it is set").parse().expect("a number");
    match role.as_str() {
        "client" => ask(number(COUNT), number(PORT) as u16),
        _ => answer(number(COUNT)),
    }
    call::exit_now(0);
}

/// The calls of [`ask`] for each connection. One asks for the family of the socket.
const CALLS_OF_CLIENT: u64 = 6;

fn ask(count: u64, port: u16) {
    let is_added = std::env::var_os(ADDED).is_some();
    let epoll = call!(epoll_create1(0)).expect("an epoll") as c_int;
    for _ in 0..count {
        let fd = call::socket(call::family(), 0).expect("a socket");
        if is_added {
            let wanted = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32;
            let mut event = libc::epoll_event { events: wanted, u64: fd as u64 };
            call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event)).expect("it is added");
        }
        call::connect_to(fd, port).expect("it connects");
        assert_eq!(call::send(fd, &[1; BYTES], 0), Ok(BYTES));
        assert_eq!(call::recv(fd, &mut [0; BYTES], 0), Ok(BYTES));
        call::close(fd).expect("it closes");
    }
}

/// The calls of [`answer`] for each connection.
const CALLS_OF_SERVER: u64 = 4;

fn answer(count: u64) {
    let (listening, port) = call::listener(call::family(), 0).expect("a listener");
    call::write(1, &port.to_ne_bytes()).expect("the peer hears the port");
    for _ in 0..count {
        let none = std::ptr::null_mut();
        let fd = call!(accept(listening, none, std::ptr::null_mut())).expect("a connection");
        let fd = fd as c_int;
        assert_eq!(call::recv(fd, &mut [0; BYTES], 0), Ok(BYTES));
        assert_eq!(call::send(fd, &[1; BYTES], 0), Ok(BYTES));
        call::close(fd).expect("it closes");
    }
}

/// The calls of a program.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    all: u64,
    /// Those that make a socket for a door.
    doors: u64,
    /// Those that look whether a peer lives, each of which counts for 5 ms. They ask for one
    /// descriptor, and a sleep for two.
    looks: u64,
}

/// Lets a traced process go on until it ends, and counts its calls.
fn count_calls(child: &mut Child) -> Calls {
    let process = child.id() as c_int;
    let mut calls = Calls::default();
    tracer::follow(child, libc::PTRACE_SYSCALL, |signal| {
        if signal == IS_CALL {
            calls.count(process);
        }
        (libc::PTRACE_SYSCALL, if signal == IS_CALL { 0 } else { signal })
    });
    calls
}

impl Calls {
    /// Counts the call that a process begins, if it does not end one.
    fn count(&mut self, process: c_int) {
        let mut info = zeroed!(libc::ptrace_syscall_info);
        let len = size_of_val(&info);
        let at = (&raw mut info).addr();
        tracer::trace(libc::PTRACE_GET_SYSCALL_INFO, process, len, at).expect("the kernel tells");
        if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            return;
        }
        // SAFETY: at the entry of a call, this part is written.
        let entry = unsafe { info.u.entry };
        let makes_socket = entry.nr == libc::SYS_socket as u64;
        self.all += 1;
        let has_borders = entry.args[1] as c_int & libc::SOCK_SEQPACKET == libc::SOCK_SEQPACKET;
        self.doors += u64::from(makes_socket && has_borders);
        let polls = [libc::SYS_poll, libc::SYS_ppoll].map(|number| number as u64);
        self.looks += u64::from(polls.contains(&entry.nr) && entry.args[1] == 1);
    }
}

/// A peer without the library: one of this program's threads.
enum Plain {
    Tcp(TcpListener),
    Unix(UnixListener),
}

trait Bytes: Read + Write {}
impl<T: Read + Write> Bytes for T {}

impl Plain {
    /// Listens at a free port.
    fn listen(family: Family) -> (Self, u16) {
        if family == Family::Tcp {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
            let port = listener.local_addr().expect("it has an address").port();
            return (Self::Tcp(listener), port);
        }
        let (fd, port) = call::listener(family, libc::SOCK_CLOEXEC).expect("a listener");
        // SAFETY: the descriptor was made above, and nobody else has it.
        (Self::Unix(unsafe { UnixListener::from_raw_fd(fd) }), port)
    }

    fn accept(&self) -> Box<dyn Bytes> {
        match self {
            Self::Tcp(listener) => Box::new(listener.accept().expect("a connection").0),
            Self::Unix(listener) => Box::new(listener.accept().expect("a connection").0),
        }
    }

    fn connect(family: Family, port: u16) -> Box<dyn Bytes> {
        let fd = call::socket(family, libc::SOCK_CLOEXEC).expect("a socket");
        call::connect_to(fd, port).expect("it connects");
        // SAFETY: the descriptor was made above, and nobody else has it.
        Box::new(unsafe { File::from_raw_fd(fd) })
    }
}

/// The sockets of a client.
#[derive(Clone, Copy)]
struct Sockets {
    family: Family,
    /// An epoll has each before it connects.
    are_added: bool,
}

const TCP: Sockets = Sockets { family: Family::Tcp, are_added: false };
const UNIX_SOCKETS: Sockets = Sockets { family: Family::Unix, are_added: false };

impl Sockets {
    /// The calls of the client itself for a connection.
    fn own_calls(self) -> u64 {
        CALLS_OF_CLIENT + u64::from(self.are_added)
    }

    /// The command of the client.
    fn command(self, folder: &Folder, count: u64) -> Command {
        let mut command = command(folder, "client", (self.family, count));
        if self.are_added {
            command.env(ADDED, "1");
        }
        command
    }
}

/// The command of a role.
fn command(folder: &Folder, role: &str, (family, count): (Family, u64)) -> Command {
    let mut command = Crew::command(folder, role, Net::Library);
    command.env(COUNT, count.to_string());
    if family == Family::Unix {
        command.env(UNIX, "1");
    }
    tracer::be_traced(&mut command);
    command
}

/// The calls of the client with this number of connections.
fn calls_of_client(sockets: Sockets, count: u64) -> Calls {
    let (listener, port) = Plain::listen(sockets.family);
    let peer = std::thread::spawn(move || {
        for _ in 0..count {
            let mut stream = listener.accept();
            let mut bytes = [0; BYTES];
            stream.read_exact(&mut bytes).expect("a request");
            stream.write_all(&bytes).expect("the answer goes");
        }
    });
    let folder = Folder::new();
    let mut command = sockets.command(&folder, count);
    let mut child = command.env(PORT, port.to_string()).spawn().expect("it starts");
    let calls = count_calls(&mut child);
    peer.join().expect("the peer ends well");
    calls
}

/// The calls of the server with this number of connections.
fn calls_of_server(family: Family, count: u64) -> Calls {
    let folder = Folder::new();
    let mut command = command(&folder, "server", (family, count));
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut told = child.stdout.take().expect("it is a pipe");
    let peer = std::thread::spawn(move || {
        let mut port = [0; 2];
        told.read_exact(&mut port).expect("the server listens");
        for _ in 0..count {
            let mut stream = Plain::connect(family, u16::from_ne_bytes(port));
            stream.write_all(&[1; BYTES]).expect("the request goes");
            stream.read_exact(&mut [0; BYTES]).expect("an answer");
        }
    });
    let calls = count_calls(&mut child);
    peer.join().expect("the peer ends well");
    calls
}

/// The calls of a client and of a server that both have the library.
fn calls_of_both(sockets: Sockets, count: u64) -> [Calls; 2] {
    let folder = Folder::new();
    let mut commands =
        [command(&folder, "server", (sockets.family, count)), sockets.command(&folder, count)];
    // A look at rings before a sleep takes no calls, and a sleep does.
    commands.iter_mut().for_each(|command| _ = command.env("AYRE_SOCKETS_SPIN", "0"));
    let [mut server, mut client] = commands;
    let mut server = server.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut told = server.stdout.take().expect("it is a pipe");
    let calls_of_client = || {
        let mut port = [0; 2];
        told.read_exact(&mut port).expect("the server listens");
        let port = u16::from_ne_bytes(port).to_string();
        count_calls(&mut client.env(PORT, port).spawn().expect("it starts"))
    };
    let calls = std::thread::scope(|scope| {
        let client = scope.spawn(calls_of_client);
        let server = count_calls(&mut server);
        [client.join().expect("it ends well"), server]
    });
    let report = folder.text("report");
    let have_met = format!(" connections={count} ");
    assert!(report.lines().all(|line| line.contains(&have_met)), "{report}");
    calls
}

/// The calls of both ends that have the library for a connection, beside their own.
fn check_both(sockets: Sockets, most: [u64; 2]) {
    if library().is_none() {
        return;
    }
    let [fewer, more] = [FEWER, MORE].map(|count| calls_of_both(sockets, count));
    let own = [sockets.own_calls(), CALLS_OF_SERVER];
    for i in 0..2 {
        let without_looks = |calls: Calls| calls.all - calls.looks;
        let made = without_looks(more[i]) - without_looks(fewer[i]);
        // Now and then a thread is woken twice.
        let most = (own[i] + most[i]) * (MORE - FEWER) + (MORE - FEWER) / 10;
        println!("{made} calls of at most {most}");
        assert!(made <= most, "{made} calls: {more:?}, {fewer:?}");
    }
}

/// A client whose peer has no library makes no call for a connection but its own.
fn check_client(sockets: Sockets) {
    if library().is_none() {
        return;
    }
    let fewer = calls_of_client(sockets, FEWER);
    let more = calls_of_client(sockets, MORE);
    assert!(more.doors > 0, "it looks for a peer");
    let family = sockets.family;
    let without_looks =
        |calls: Calls| calls.all - calls.doors / doors_of_look(family) * calls_of_look(family);
    let made = without_looks(more).saturating_sub(without_looks(fewer));
    let most = sockets.own_calls() * (MORE - FEWER) + OTHERS;
    assert!(made <= most, "{made} calls: {more:?}, {fewer:?}");
}

/// A server whose peer has no library makes this number of calls for a connection beside its own.
fn check_server(family: Family, looks: u64) {
    if library().is_none() {
        return;
    }
    let (fewer, more) = (calls_of_server(family, FEWER), calls_of_server(family, MORE));
    let made = more.all - fewer.all;
    let most = (CALLS_OF_SERVER + looks) * (MORE - FEWER) + OTHERS;
    assert!(made <= most, "{made} calls: {more:?}, {fewer:?}");
}

// spec: SOCK-44
#[test]
fn a_client_without_a_peer_makes_no_call_more_for_a_connection() {
    check_client(TCP);
}

// spec: SOCK-44
#[test]
fn a_client_of_a_unix_socket_without_a_peer_makes_no_call_more_for_a_connection() {
    check_client(UNIX_SOCKETS);
}

// spec: SOCK-44
#[test]
fn a_client_without_a_peer_makes_no_call_more_for_a_socket_that_was_added_to_an_epoll() {
    check_client(Sockets { are_added: true, ..TCP });
    check_client(Sockets { are_added: true, ..UNIX_SOCKETS });
}

// spec: SOCK-44
#[test]
fn a_server_looks_at_the_opening_packet_of_a_connection_and_makes_no_other_call() {
    check_server(Family::Tcp, 1);
}

// spec: SOCK-44
#[test]
fn a_server_of_a_unix_socket_makes_no_call_more_for_a_connection() {
    check_server(Family::Unix, 0);
}

/// The calls of a blocking read that finds nothing, sleeps, and reads: two more.
const SLEEP: u64 = 2;

// spec: SOCK-54
#[test]
fn a_connection_that_may_go_by_rings_costs_few_calls() {
    // The client shows a code in its SYN, and no longer; and asks for its own address.
    check_both(TCP, [4 + 1 + SLEEP, 1 + SLEEP]);
}

// spec: SOCK-54
#[test]
fn a_connection_of_unix_sockets_that_may_go_by_rings_costs_few_calls() {
    // Each end asks who the other one is; the client names its socket.
    check_both(UNIX_SOCKETS, [2 + SLEEP, 1 + SLEEP]);
}

// spec: SOCK-54
#[test]
fn a_connection_whose_socket_was_added_to_an_epoll_costs_no_call_more() {
    check_both(Sockets { are_added: true, ..TCP }, [4 + 1 + SLEEP, 1 + SLEEP]);
    check_both(Sockets { are_added: true, ..UNIX_SOCKETS }, [2 + SLEEP, 1 + SLEEP]);
}

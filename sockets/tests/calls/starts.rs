//! Rows that do something before they connect.

use std::ffi::c_int;

use crate::common::call::{self, close, family, forbid, poll, set_nonblocking, set_option};
use crate::end::{End, TIME};
use crate::names::duplicate;
use crate::signals::{be_signalled, hear, read_behind_signal};

/// Requests and answers.
fn talk(end: &mut End) {
    let mut bytes = [0; 100];
    for i in 0..20 {
        if end.server {
            end.read_exactly(&mut bytes);
            let told = call::write(end.fd, &bytes);
            end.told("answer", told);
        } else {
            let told = call::write(end.fd, &[i; 100]);
            end.told("request", told);
            end.read_exactly(&mut bytes);
            end.say("answer", bytes);
        }
    }
}

pub(crate) fn closes_all_at_start(end: &mut End) {
    for fd in 3..1024 {
        let _ = close(fd);
    }
    end.connect();
    for fd in (3..1024).filter(|fd| *fd != end.fd) {
        let _ = close(fd);
    }
    talk(end);
}

// spec: SOCK-5
/// Without what the library needs, it leaves all to TCP.
fn with_forbidden(end: &mut End, is_here: bool) {
    if is_here {
        forbid(&[libc::SYS_eventfd2, libc::SYS_memfd_create], libc::AF_UNIX);
        let told = call!(socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
        end.told("socket", told);
    }
    end.connect();
    talk(end);
}

pub(crate) fn forbidden_calls(end: &mut End) {
    with_forbidden(end, true);
}

pub(crate) fn forbidden_calls_of_the_server(end: &mut End) {
    with_forbidden(end, end.server);
}

pub(crate) fn forbidden_calls_of_the_client(end: &mut End) {
    with_forbidden(end, !end.server);
}

/// The number of a user without rights.
const NOBODY: u32 = 65534;

/// A user who may not trust the server connects to it.
pub(crate) fn connects_as_nobody(end: &mut End) {
    if !end.server {
        end.open_folder();
        let told = call!(setuid(NOBODY));
        end.told("setuid", told);
    }
    end.connect();
    talk(end);
}

// spec: SOCK-37
/// The bytes that a row's sockets may have on the way.
const SMALL: c_int = 4096;

/// Whether few bytes fill the way from one end to the other: less than half a ring. A receiver
/// keeps to the window that it has told, of up to 64 KiB, though its buffer is small since.
fn fill(end: &mut End) {
    if !end.server {
        let _ = set_nonblocking(end.fd, true);
        let told = std::iter::repeat_with(|| call::write(end.fd, &[0; 100]));
        let written: usize = told.map_while(Result::ok).sum();
        let is_few = written < 1 << 17;
        end.say("few bytes", is_few);
        let told = call::write(end.fd, &[0; 100]);
        end.told("write", told);
    }
    end.meet();
}

/// The receiver's buffer at the server, the sender's at the client.
fn make_small(server: bool, fd: c_int) {
    let name = if server { libc::SO_RCVBUF } else { libc::SO_SNDBUF };
    set_option(fd, libc::SOL_SOCKET, name, &SMALL).expect("the size is set");
}

/// Accepted sockets have the sizes of the one that listens.
pub(crate) fn buffers_of_the_listener(end: &mut End) {
    let server = end.server;
    end.connect_with(|fd| make_small(server, fd));
    fill(end);
}

/// The client waits for room while nobody has accepted.
pub(crate) fn room_before_accept(end: &mut End) {
    end.connect_before_accept(|end| {
        let told = poll(end.fd, libc::POLLOUT, TIME);
        end.say("poll", told);
    });
    // Both ends show that they wait: for longer than a busy machine keeps a thread from running.
    let told = poll(end.fd, libc::POLLIN, 50);
    end.say("poll", told);
    end.meet();
    talk(end);
}

/// The word of the shared memory that has how much the client has written.
const WRITTEN: usize = 10;

/// Writes until there is no room, and tells how much that was.
pub(crate) fn write_all_there_is_room_for(end: &mut End) {
    let told = std::iter::repeat_with(|| call::write(end.fd, &[0; 1 << 16]));
    let written: usize = told.map_while(Result::ok).sum();
    end.shared.set(WRITTEN, written as u64);
}

/// Reads as much as the client has told.
pub(crate) fn read_all_written(end: &mut End) {
    let mut bytes = vec![0; 1 << 16];
    let mut left = end.shared.get(WRITTEN) as usize;
    while left > 0 {
        let most = left.min(bytes.len());
        left -= call::read(end.fd, &mut bytes[..most]).expect("bytes come");
    }
}

/// An epoll that has waited while nobody has accepted tells of room when there is some again.
pub(crate) fn edge_of_room_before_accept(end: &mut End) {
    let mut epoll = -1;
    end.connect_before_accept(|end| {
        let _ = set_nonblocking(end.fd, true);
        epoll = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
        let wanted = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events: wanted, u64: 3 };
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, end.fd, &mut event)).expect("it is added");
        for time in [TIME, 1] {
            let told = call!(epoll_wait(epoll, &mut event, 1, time));
            end.told("epoll_wait", told);
        }
    });
    let mut byte = [0];
    if end.server {
        end.read_exactly(&mut byte);
        end.meet();
        end.meet();
        read_all_written(end);
    } else {
        let told = call::write(end.fd, &byte);
        end.told("write", told);
        end.meet();
        write_all_there_is_room_for(end);
        end.meet();
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let told = call!(epoll_wait(epoll, &mut event, 1, TIME));
        end.told("epoll_wait", told);
    }
    end.meet();
}

/// The ring was full when the socket became the kernel's alone.
pub(crate) fn room_of_one_at_stdin(end: &mut End) {
    end.connect();
    if end.server {
        end.meet();
        read_all_written(end);
        return end.meet();
    }
    let _ = set_nonblocking(end.fd, true);
    let epoll = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
    let mut event = libc::epoll_event { events: libc::EPOLLOUT as u32, u64: 3 };
    call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, end.fd, &mut event)).expect("it is added");
    write_all_there_is_room_for(end);
    // TCP may make room by itself.
    let _ = call!(epoll_wait(epoll, &mut event, 1, 3));
    let told = call!(dup2(end.fd, 0));
    end.told("dup2", told);
    end.meet();
    end.meet();
    let told = call!(epoll_wait(epoll, &mut event, 1, TIME));
    end.told("epoll_wait", told);
}

/// An epoll that had the socket before it connected tells of room when there is some again.
pub(crate) fn edge_of_room_of_one_added_before(end: &mut End) {
    let epoll = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
    let inward = (libc::EPOLLIN | libc::EPOLLET) as u32;
    let mut event = libc::epoll_event { events: inward, u64: 3 };
    let server = end.server;
    end.connect_with(|fd| {
        if !server {
            call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event)).expect("it is added");
        }
    });
    if end.server {
        let told = poll(end.fd, libc::POLLIN, TIME);
        end.say("poll", told);
        end.meet();
        read_all_written(end);
    } else {
        let _ = set_nonblocking(end.fd, true);
        event.events = inward | libc::EPOLLOUT as u32;
        call!(epoll_ctl(epoll, libc::EPOLL_CTL_MOD, end.fd, &mut event)).expect("it is changed");
        let told = call!(epoll_wait(epoll, &mut event, 1, TIME));
        end.told("epoll_wait", told);
        write_all_there_is_room_for(end);
        end.meet();
        let told = call!(epoll_wait(epoll, &mut event, 1, TIME));
        end.told("epoll_wait", told);
    }
    end.meet();
}

/// The server accepts, and has a child serve at once. The parent closes its copy.
pub(crate) fn forks_at_once(end: &mut End) {
    const PARENT_CLOSED: usize = 10;
    end.open(|_| {}, |_| {});
    if end.server {
        let child = call::fork().expect("a child");
        if child > 0 {
            close(end.fd).expect("the parent closes its copy");
            end.shared.set(PARENT_CLOSED, 1);
            assert_eq!(call::wait_for(child), Ok(0), "the child ends well");
            call::exit_now(0);
        }
        assert!(end.shared.wait(|shared| shared.get(PARENT_CLOSED) != 0), "the parent closes");
    }
    talk(end);
}

// spec: SOCK-69, SOCK-70
/// The process that has connected ends, and its daemon reads what had come before that.
pub(crate) fn daemon_with_unread_bytes(end: &mut End) {
    const PARENT_ENDED: usize = 10;
    const DAEMON: usize = 11;
    if end.server {
        call!(prctl(libc::PR_SET_CHILD_SUBREAPER, 1)).expect("the daemon becomes its child");
        let parent = call::fork().expect("a child");
        if parent > 0 {
            assert_eq!(call::wait_for(parent), Ok(0), "the parent of the daemon ends well");
            end.shared.set(PARENT_ENDED, 1);
            assert!(end.shared.wait(|shared| shared.get(DAEMON) != 0), "the daemon tells");
            let daemon = end.shared.get(DAEMON) as c_int;
            assert_eq!(call::wait_for(daemon), Ok(0), "the daemon ends well");
            call::exit_now(0);
        }
    }
    end.connect();
    end.bring(10);
    if end.server {
        let told = call!(daemon(1, 1));
        end.told("daemon", told);
        end.shared.set(DAEMON, u64::from(std::process::id()));
        let has_ended = end.shared.wait(|shared| shared.get(PARENT_ENDED) != 0);
        assert!(has_ended, "the parent ends");
    }
    end.meet();
    if end.server {
        let mut bytes = [0; 10];
        end.read_exactly(&mut bytes);
        end.say("bytes", bytes);
    }
    talk(end);
}

pub(crate) fn buffers_of_the_connection(end: &mut End) {
    end.connect();
    make_small(end.server, end.fd);
    end.meet();
    fill(end);
}

/// The client has asked for signals of bytes before it connects.
pub(crate) fn signal_before_connect(end: &mut End) {
    let is_server = end.server;
    end.connect_with(|fd| {
        if !is_server {
            be_signalled(fd);
        }
    });
    // Of what has come before.
    while !is_server && hear(0).is_ok() {}
    end.meet();
    for _ in 0..3 {
        if is_server {
            let told = call::write(end.fd, b"bytes");
            end.told("write", told);
        } else {
            read_behind_signal(end);
        }
        end.meet();
    }
}

/// The word of the shared memory that has the port of a row with several connections.
const PORT: usize = 20;

/// Milliseconds that a read may wait, in a row whose reads find nothing.
const SHORT: i64 = 20;

/// A change that another process makes.
fn by_a_child(change: impl FnOnce()) {
    let child = call::fork().expect("a child");
    if child == 0 {
        change();
        call::exit_now(0);
    }
    assert_eq!(call::wait_for(child), Ok(0));
}

fn be_nonblocking(fd: c_int) {
    set_nonblocking(fd, true).expect("it may");
}

/// Has the reads of a socket wait for a short time.
fn be_impatient(fd: c_int) {
    call::set_receive_timeout(fd, SHORT).expect("it may");
}

fn new() -> c_int {
    call::socket(family(), 0).expect("a socket")
}

fn new_nonblocking() -> c_int {
    call::socket(family(), libc::SOCK_NONBLOCK).expect("a socket")
}

fn prepared(prepare: impl FnOnce(c_int)) -> c_int {
    let fd = new();
    prepare(fd);
    fd
}

/// A name, and how a socket is made.
type Made = (&'static str, fn() -> c_int);

/// A name, and what is done with a listening socket before it listens, and behind that.
type Changed = (&'static str, fn(c_int), fn(c_int));

/// Sockets whose reads wait for a short time or not at all, in all ways to make one that connects.
const IMPATIENT: &[Made] = &[
    ("as made", new_nonblocking),
    ("fcntl", || prepared(be_nonblocking)),
    ("ioctl", || prepared(|fd| _ = call!(ioctl(fd, libc::FIONBIO, &1)).expect("it may"))),
    ("a limit of time", || prepared(be_impatient)),
    ("by a duplicate", || {
        prepared(|fd| {
            let other = duplicate(fd);
            be_nonblocking(other);
            close(other).expect("it closes");
        })
    }),
    ("by a duplicate that is left", || {
        let fd = new();
        let other = duplicate(fd);
        be_nonblocking(fd);
        close(fd).expect("it closes");
        other
    }),
    ("another one, put there", || {
        let (fd, other) = (new(), new_nonblocking());
        call!(dup2(other, fd)).expect("it is put there");
        close(other).expect("it closes");
        fd
    }),
    ("by a child", || prepared(|fd| by_a_child(|| be_nonblocking(fd)))),
    ("a limit by a child", || prepared(|fd| by_a_child(|| be_impatient(fd)))),
];

/// Listening sockets of which the reads of what they accept wait for a short time.
const IMPATIENT_LISTENERS: &[Changed] = &[
    ("a limit before", be_impatient, |_| {}),
    ("a limit behind", |_| {}, be_impatient),
    ("a limit by a child", |_| {}, |fd| by_a_child(|| be_impatient(fd))),
    (
        "a limit by a duplicate",
        |_| {},
        |fd| {
            let other = duplicate(fd);
            be_impatient(other);
            close(other).expect("it closes");
        },
    ),
];

/// Requests and answers go by a new connection; then an end reads in vain.
fn read_in_vain(end: &mut End, (what, reads): (&str, bool), fd: c_int) {
    end.fd = fd;
    let mut byte = [7];
    for turn in 0..20 {
        if (turn % 2 == 1) == end.server {
            assert_eq!(call::write(fd, &byte), Ok(1));
        } else {
            let told = poll(fd, libc::POLLIN, TIME);
            assert_eq!((told, call::read(fd, &mut byte)), (Ok(libc::POLLIN), Ok(1)));
        }
    }
    if reads {
        let told = call::read(fd, &mut byte);
        end.told(what, told);
    }
    end.meet();
    close(fd).expect("it closes");
}

/// Accepts, also where the listening socket would not wait as long.
fn accept(listening: c_int, flags: c_int) -> c_int {
    assert_eq!(poll(listening, libc::POLLIN, TIME), Ok(libc::POLLIN), "a client connects");
    let none = std::ptr::null_mut();
    call!(accept4(listening, none, std::ptr::null_mut(), flags)).expect("a connection") as c_int
}

/// Connects, also where the socket does not wait for that.
fn connect(fd: c_int, port: u16) -> c_int {
    match call::connect_to(fd, port) {
        Ok(_) => {}
        Err(libc::EINPROGRESS) => assert_eq!(poll(fd, libc::POLLOUT, TIME), Ok(libc::POLLOUT)),
        Err(errno) => panic!("{}", call::error_name(errno)),
    }
    fd
}

/// The server's listening socket, or the port for the client.
fn meet_at(end: &End, prepare: fn(c_int)) -> c_int {
    end.meet();
    let listening = if end.server { prepared(prepare) } else { 0 };
    if end.server {
        let port = call::listen_at(listening, 0).expect("it listens");
        end.shared.set(PORT, u64::from(port));
    }
    end.meet();
    if end.server { listening } else { end.shared.get(PORT) as c_int }
}

/// How long reads wait is known of a socket that connects, however it was told.
pub(crate) fn patience_of_the_client(end: &mut End) {
    let at = meet_at(end, |_| {});
    for (what, made) in IMPATIENT {
        let fd = if end.server { accept(at, 0) } else { connect(made(), at as u16) };
        let reads = !end.server;
        read_in_vain(end, (what, reads), fd);
    }
}

/// Likewise of one that was accepted.
pub(crate) fn patience_of_the_server(end: &mut End) {
    for (what, before, behind) in IMPATIENT_LISTENERS {
        let at = meet_at(end, *before);
        if end.server {
            behind(at);
        }
        end.meet();
        let fd = if end.server { accept(at, 0) } else { connect(new(), at as u16) };
        let reads = end.server;
        read_in_vain(end, (what, reads), fd);
    }
    let at = meet_at(end, |_| {});
    let fd = if end.server { accept(at, libc::SOCK_NONBLOCK) } else { connect(new(), at as u16) };
    let reads = end.server;
    read_in_vain(end, ("accept4", reads), fd);
}

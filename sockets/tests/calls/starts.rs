//! Rows that do something before they connect.

use std::ffi::c_int;

use crate::common::call::{self, close, forbid, poll, set_nonblocking, set_option};
use crate::end::{End, TIME};

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

/// Whether few bytes fill the way from one end to the other.
fn fill(end: &mut End) {
    if !end.server {
        let _ = set_nonblocking(end.fd, true);
        let told = std::iter::repeat_with(|| call::write(end.fd, &[0; 100]));
        let written: usize = told.map_while(Result::ok).sum();
        let is_few = written < 1 << 16;
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
    // Both ends show that they wait.
    let told = poll(end.fd, libc::POLLIN, 1);
    end.say("poll", told);
    end.meet();
    talk(end);
}

/// An epoll that has waited while nobody has accepted tells of room when there is some again.
pub(crate) fn edge_of_room_before_accept(end: &mut End) {
    const WRITTEN: usize = 10;
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
    let mut bytes = vec![0; 1 << 16];
    if end.server {
        end.read_exactly(&mut bytes[..1]);
        end.meet();
        end.meet();
        let mut left = end.shared.get(WRITTEN) as usize;
        while left > 0 {
            let most = left.min(bytes.len());
            left -= call::read(end.fd, &mut bytes[..most]).expect("bytes come");
        }
    } else {
        let told = call::write(end.fd, &bytes[..1]);
        end.told("write", told);
        end.meet();
        let told = std::iter::repeat_with(|| call::write(end.fd, &bytes));
        let written: usize = told.map_while(Result::ok).sum();
        end.shared.set(WRITTEN, written as u64);
        end.meet();
        let mut event = libc::epoll_event { events: 0, u64: 0 };
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

pub(crate) fn buffers_of_the_connection(end: &mut End) {
    end.connect();
    make_small(end.server, end.fd);
    end.meet();
    fill(end);
}

//! Rows that do something before they connect.

use std::ffi::c_int;

use crate::common::call::{self, close, forbid, set_nonblocking, set_option};
use crate::end::End;

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

pub(crate) fn buffers_of_the_connection(end: &mut End) {
    end.connect();
    make_small(end.server, end.fd);
    end.meet();
    fill(end);
}

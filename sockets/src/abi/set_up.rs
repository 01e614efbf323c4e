//! Connecting, listening, accepting, and the end of halves.
use super::addresses::{Name, Room, place};
use crate::listener;
use crate::sys::memory::{borrowed, errno, keeping_errno, set_errno};
use crate::sys::real;
use crate::table::{self, Family};
use libc::{c_int, sockaddr, socklen_t};
use rustix::io::Errno;

/// A number of which the C library has closed the last file, without a word, is free.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: the C library's contract.
    let made = unsafe { real::socket(domain, kind, protocol) };
    forget(made);
    let is_stream = kind & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) == libc::SOCK_STREAM;
    let family = match (domain, protocol) {
        (libc::AF_INET | libc::AF_INET6, 0 | libc::IPPROTO_TCP) => Some(Family::Tcp),
        (libc::AF_UNIX, _) => Some(Family::Unix),
        _ => None,
    };
    if let Some(family) = family.filter(|_| is_stream) {
        table::set_new(made, family);
        table::set_waits(made, kind);
    }
    made
}

fn forget(fd: c_int) {
    table::be_used_elsewhere(fd);
    if fd >= 0 && table::is_known(fd) {
        drop(table::set(fd, None));
    }
}

/// connect, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn connect(fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let to = unsafe { place(at, len) };
    let to = to.as_ref().filter(|_| fd >= 0);
    let before = to.map(|to| listener::before_connect(fd, borrowed(fd), to));
    let connecting = match before.unwrap_or(Ok(None)) {
        Ok(connecting) => connecting,
        Err(refused) => {
            set_errno(refused);
            return -1;
        }
    };
    // SAFETY: as above.
    let done = unsafe { real::connect(fd, at, len) };
    if let Some(to) = to
        && done != 0
        && errno() == Errno::CONNREFUSED
    {
        keeping_errno(|| listener::refused(to));
    }
    let goes_on = done != 0 && matches!(errno(), Errno::INPROGRESS | Errno::INTR);
    if let Some(connecting) = connecting {
        let was_sent = done == 0 || (connecting.goes_on_by_itself() && goes_on);
        let after = keeping_errno(|| connecting.after(fd, borrowed(fd), was_sent));
        if let Err(refused) = after {
            set_errno(refused);
            return -1;
        }
    }
    if done == 0 || goes_on {
        table::end_new(fd);
    }
    done
}

/// listen, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let is_kept = fd >= 0 && listener::before_listen(borrowed(fd));
    // SAFETY: the C library's contract.
    let done = unsafe { real::listen(fd, backlog) };
    if is_kept && done == 0 {
        listener::after_listen(fd, borrowed(fd));
    }
    done
}

/// accept4, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept4(
    fd: c_int,
    at: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let room = unsafe { Room::new(at, len) };
    let listener = table::listener(fd);
    let mut name = Name::default();
    // The peer's address is wanted here, too. The name of a Unix socket may show a code, and the
    // program is not to see that.
    let is_own = (at.is_null() || room.is_some()) && listener.is_some();
    let accepted = match is_own {
        // SAFETY: as above.
        true => unsafe { real::accept4(fd, name.at(), name.len(), flags) },
        // SAFETY: as above.
        false => unsafe { real::accept4(fd, at, len, flags) },
    };
    forget(accepted);
    if accepted >= 0 {
        if let Some(room) = room.filter(|_| is_own) {
            // SAFETY: as above.
            unsafe { room.tell(&name) };
        }
        if listener.as_ref().is_some_and(|it| !it.has_times()) {
            table::set_waits(accepted, flags);
        }
        listener::accepted(accepted, listener.as_ref(), name.peer().as_ref());
    }
    accepted
}

/// accept, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept(fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: as accept4.
    unsafe { accept4(fd, at, len, 0) }
}

/// shutdown, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    let stream = table::stream(fd).filter(|stream| !stream.is_unconnected());
    if let Some(stream) = &stream {
        if how != libc::SHUT_RD {
            stream.connection().end_writing(borrowed(fd));
        }
        if how != libc::SHUT_WR {
            stream.shut_reading();
        }
    }
    // SAFETY: the C library's contract.
    let done = unsafe { real::shutdown(fd, how) };
    if let Some(stream) = stream {
        // A thread that waits for room gets an error.
        keeping_errno(|| stream.wake_all());
    }
    done
}

//! Connecting, listening, accepting, and the end of halves.
use super::addresses::{Name, Room};
use crate::listener::{self, Place};
use crate::sys::memory::{self, borrowed, errno, keeping_errno, set_errno};
use crate::sys::real;
use crate::table::{self, Family};
use libc::{c_int, sockaddr, socklen_t};
use rustix::io::Errno;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The place that C points to, if it is one of TCP or of Unix sockets.
///
/// # Safety
/// `at` must point to `len` bytes.
unsafe fn place(at: *const sockaddr, len: socklen_t) -> Option<Place> {
    let len = len as usize;
    if !memory::may_be(at) || len < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: the caller's; long enough for each family, as checked.
    match c_int::from(unsafe { (&raw const (*at).sa_family).read_unaligned() }) {
        libc::AF_UNIX => {
            let head = size_of::<libc::sa_family_t>();
            // SAFETY: as above.
            let name = unsafe {
                let start = at.cast::<u8>().add(head);
                std::slice::from_raw_parts(start, len.min(size_of::<libc::sockaddr_un>()) - head)
            };
            Place::unix(name)
        }
        libc::AF_INET if len >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: as above.
            let at = unsafe { at.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(at.sin_addr.s_addr));
            Some(Place::Tcp((ip, u16::from_be(at.sin_port)).into()))
        }
        libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let at = unsafe { at.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(at.sin6_addr.s6_addr).to_canonical();
            Some(Place::Tcp((ip, u16::from_be(at.sin6_port)).into()))
        }
        _ => None,
    }
}

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
    }
    made
}

fn forget(fd: c_int) {
    table::end_new(fd);
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
    if let (None, Some(to)) = (&connecting, to)
        && done != 0
        && errno() == Errno::CONNREFUSED
    {
        listener::refused(to);
    }
    if let Some(connecting) = connecting {
        let goes_on = || matches!(errno(), Errno::INPROGRESS | Errno::INTR);
        let was_sent = done == 0 || (connecting.goes_on_by_itself() && goes_on());
        let after = keeping_errno(|| connecting.after(fd, borrowed(fd), was_sent));
        if let Err(refused) = after {
            set_errno(refused);
            return -1;
        }
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
    // The name of a Unix socket may show a code, and the program is not to see that.
    let is_own =
        (at.is_null() || room.is_some()) && listener.as_ref().is_some_and(|it| it.is_unix());
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
        listener::accepted(accepted, listener.as_ref(), name.of_abstract());
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
    let stream = table::stream(fd);
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

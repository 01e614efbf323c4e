//! Connecting, listening, accepting, and the end of halves.
use crate::listener;
use crate::sys::memory::{borrowed, errno, keeping_errno, set_errno};
use crate::sys::real;
use crate::table;
use libc::{c_int, sockaddr, socklen_t};
use rustix::io::Errno;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address that C points to, if it is one of TCP.
///
/// # Safety
/// `at` must point to `len` bytes.
unsafe fn address(at: *const sockaddr, len: socklen_t) -> Option<SocketAddr> {
    if at.is_null() || (len as usize) < size_of::<libc::sockaddr_in>() {
        return None;
    }
    // SAFETY: the caller's; long enough for either family, as checked.
    match c_int::from(unsafe { (*at).sa_family }) {
        libc::AF_INET => {
            // SAFETY: as above.
            let at = unsafe { at.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(at.sin_addr.s_addr));
            Some(SocketAddr::from((ip, u16::from_be(at.sin_port))))
        }
        libc::AF_INET6 if len as usize >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let at = unsafe { at.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(at.sin6_addr.s6_addr).to_canonical();
            Some(SocketAddr::from((ip, u16::from_be(at.sin6_port))))
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
    let is_internet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    if is_internet && is_stream && matches!(protocol, 0 | libc::IPPROTO_TCP) {
        table::set_new(made);
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
    let to = unsafe { address(at, len) };
    let before = to.filter(|_| fd >= 0).map(|to| listener::before_connect(fd, borrowed(fd), to));
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
        let was_sent = done == 0 || matches!(errno(), Errno::INPROGRESS | Errno::INTR);
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
    // SAFETY: the C library's contract.
    let accepted = unsafe { real::accept4(fd, at, len, flags) };
    forget(accepted);
    if accepted >= 0 {
        listener::accepted(accepted, borrowed(accepted), table::listener(fd).as_ref());
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
            stream.connection().shut_reading();
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

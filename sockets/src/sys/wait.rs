//! Waits of the C library, which are points of cancellation, and what they are interrupted by.
use super::{memory, real};
use ayre::socket::Bell;
use libc::{c_int, epoll_event, pollfd, sigset_t, timespec};
use rustix::fd::AsRawFd;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::time::Duration;

fn time(timeout: Option<Duration>) -> Option<timespec> {
    timeout.map(|time| timespec {
        tv_sec: time.as_secs().min(1 << 40) as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    })
}

/// A bell, as poll waits for it.
pub(crate) fn for_bell(bell: &Bell) -> pollfd {
    for_bytes(bell.fd().as_raw_fd())
}

/// A descriptor, as poll waits for bytes there.
pub(crate) fn for_bytes(fd: c_int) -> pollfd {
    pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// ppoll(2).
pub(crate) fn poll(
    fds: &mut [pollfd],
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<usize, Errno> {
    let timeout = time(timeout);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), |time| &raw const *time);
    let mask = mask.map_or(std::ptr::null(), |mask| &raw const *mask);
    // SAFETY: the pointers are of live values, or null.
    let ready = unsafe { real::ppoll(fds.as_mut_ptr(), fds.len() as _, timeout, mask) };
    usize::try_from(ready).map_err(|_| memory::errno())
}

/// epoll_pwait(2).
pub(crate) fn epoll(
    epfd: c_int,
    events: &mut [epoll_event],
    timeout: c_int,
    mask: Option<&sigset_t>,
) -> Result<usize, Errno> {
    let mask = mask.map_or(std::ptr::null(), |mask| &raw const *mask);
    let (at, most) = (events.as_mut_ptr(), events.len() as c_int);
    // SAFETY: the events have room for that many.
    let ready = unsafe { real::epoll_pwait(epfd, at, most, timeout, mask) };
    usize::try_from(ready).map_err(|_| memory::errno())
}

/// epoll_ctl(2).
pub(crate) fn control(
    epfd: c_int,
    op: c_int,
    fd: c_int,
    (events, data): (u32, u64),
) -> Result<(), Errno> {
    let mut event = epoll_event { events, u64: data };
    // SAFETY: the event is a live value.
    match unsafe { real::epoll_ctl(epfd, op, fd, &raw mut event) } {
        0 => Ok(()),
        _ => Err(memory::errno()),
    }
}

/// Whether the kernel would go on with a read or write that a signal has interrupted: all handlers
/// of this process say so. Which signal it was, nobody tells.
pub(crate) fn restarts() -> bool {
    (1..=libc::SIGRTMAX()).all(|signal| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: it writes the action; without one it stays zero.
        unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: zeroed or written.
        let action = unsafe { action.assume_init() };
        let is_handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
        !is_handled || action.sa_flags & libc::SA_RESTART != 0
    })
}

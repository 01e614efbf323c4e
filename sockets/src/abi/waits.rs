//! Waiting for many descriptors.
use crate::epoll::Set;
use crate::listener;
use crate::policy;
use crate::poll::{self, Sets};
use crate::sys::memory::{returned, set_errno};
use crate::sys::real;
use crate::table::{self, Entry};
use crate::waiter::Until;
use ayre::socket::Reason;
use libc::{c_int, epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

fn milliseconds(timeout: c_int) -> Until {
    Until::after(u64::try_from(timeout).ok().map(Duration::from_millis))
}

/// # Safety
/// `timeout` must be null or point to a time.
unsafe fn time(timeout: *const timespec) -> Option<Until> {
    // SAFETY: the caller's.
    match unsafe { timeout.as_ref() } {
        None => Some(Until::Never),
        Some(time) => {
            let (seconds, nanos) = (time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?);
            Some(Until::after(Some(Duration::new(seconds, nanos))))
        }
    }
}

/// An epoll is known from its beginning: threads may wait for it before a stream comes.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: the C library's contract.
    let made = unsafe { real::epoll_create1(flags) };
    if made >= 0 && policy::is_on() {
        table::set(made, Some(Arc::new(Entry::Epoll(Arc::new(Set::new(made))))));
    }
    made
}

/// epoll_create, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_create(size: c_int) -> c_int {
    if size <= 0 {
        set_errno(Errno::INVAL);
        return -1;
    }
    // SAFETY: as epoll_create1.
    unsafe { epoll_create1(0) }
}

/// epoll_ctl, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_ctl(
    epfd: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let real = || unsafe { real::epoll_ctl(epfd, op, fd, event) };
    if let Some(set) = table::epoll(fd) {
        set.be_nested();
    }
    let stream = match op {
        libc::EPOLL_CTL_ADD => listener::added(fd),
        _ => table::stream(fd),
    };
    let Some(set) = table::epoll(epfd) else {
        // An epoll of two names, or one that came from elsewhere, is the kernel's alone.
        if let (libc::EPOLL_CTL_ADD, Some(stream)) = (op, stream) {
            stream.be_plain(Reason::SeveralWaiters);
        }
        return real();
    };
    // SAFETY: as above.
    let wanted = unsafe { event.as_ref() }.map(|event| (event.events, event.u64));
    let result = match (op, wanted) {
        (libc::EPOLL_CTL_ADD, Some(wanted)) => stream.map(|stream| set.add(fd, &stream, wanted)),
        (libc::EPOLL_CTL_MOD, Some(wanted)) => set.change(fd, stream.as_ref(), wanted),
        (libc::EPOLL_CTL_DEL, _) => set.delete(fd, stream.as_ref()),
        _ => None,
    };
    let Some(result) = result else {
        wanted.into_iter().for_each(|(_, data)| set.free_data(data));
        return real();
    };
    returned(result.map(|()| 0)) as c_int
}

/// epoll_pwait, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_pwait(
    epfd: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let Some(set) = table::epoll(epfd).filter(|_| most > 0 && !events.is_null()) else {
        // SAFETY: the C library's contract.
        return unsafe { real::epoll_pwait(epfd, events, most, timeout, mask) };
    };
    // SAFETY: as above.
    unsafe { wait(&set, (events, most), milliseconds(timeout), mask) }
}

/// # Safety
/// As epoll_pwait.
unsafe fn wait(
    set: &Set,
    (events, most): (*mut epoll_event, c_int),
    until: Until,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's.
    let (room, mask) =
        unsafe { (std::slice::from_raw_parts_mut(events, most as usize), mask.as_ref()) };
    if let Some(told) = set.wait_idle(room, until, mask) {
        return returned(told) as c_int;
    }
    returned(set.wait(room, until, mask)) as c_int
}

/// epoll_wait, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_wait(
    epfd: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: as epoll_pwait.
    unsafe { epoll_pwait(epfd, events, most, timeout, std::ptr::null()) }
}

/// epoll_pwait2, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_pwait2(
    epfd: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let until = unsafe { time(timeout) };
    match (table::epoll(epfd).filter(|_| most > 0 && !events.is_null()), until) {
        // SAFETY: as above.
        (Some(set), Some(until)) => unsafe { wait(&set, (events, most), until, mask) },
        // SAFETY: as above.
        _ => unsafe { real::epoll_pwait2(epfd, events, most, timeout, mask) },
    }
}

/// # Safety
/// As ppoll.
unsafe fn fds<'a>(fds: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    if count == 0 || fds.is_null() {
        return &mut [];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts_mut(fds, count as usize) }
}

/// poll, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn poll(at: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let fds = unsafe { fds(at, count) };
    if !poll::concerns(fds) {
        // SAFETY: as above.
        return unsafe { real::poll(at, count, timeout) };
    }
    returned(poll::poll(fds, milliseconds(timeout), None)) as c_int
}

/// __poll_chk, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __poll_chk(
    at: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    room: usize,
) -> c_int {
    assert!(count as usize <= room / size_of::<pollfd>(), "buffer overflow");
    // SAFETY: as poll.
    unsafe { poll(at, count, timeout) }
}

/// ppoll, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ppoll(
    at: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let (fds, until) = unsafe { (fds(at, count), time(timeout)) };
    match until {
        Some(until) if poll::concerns(fds) => {
            // SAFETY: as above.
            returned(poll::poll(fds, until, unsafe { mask.as_ref() })) as c_int
        }
        // SAFETY: as above.
        _ => unsafe { real::ppoll(at, count, timeout, mask) },
    }
}

/// __ppoll_chk, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __ppoll_chk(
    at: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: usize,
) -> c_int {
    assert!(count as usize <= room / size_of::<pollfd>(), "buffer overflow");
    // SAFETY: as ppoll.
    unsafe { ppoll(at, count, timeout, mask) }
}

/// select(2), where streams are in the sets. None where none is.
///
/// # Safety
/// As select.
unsafe fn select_streams(
    count: c_int,
    sets: [*mut fd_set; 3],
    until: Until,
    mask: *const sigset_t,
) -> Option<c_int> {
    if !(0..=libc::FD_SETSIZE as c_int).contains(&count) {
        return None;
    }
    // SAFETY: the caller's: the sets are null or valid, and the descriptors are within.
    let is_in = |fd| sets.map(|set| !set.is_null() && unsafe { libc::FD_ISSET(fd, set) });
    let mut waited = Sets::new(count, is_in);
    if !poll::concerns(&waited.fds) {
        return None;
    }
    let mut told = Vec::new();
    // SAFETY: the caller's.
    let mask = unsafe { mask.as_ref() };
    let bits = match waited.wait(until, mask, |fd, set| told.push((fd, set))) {
        Ok(bits) => bits,
        Err(errno) => {
            set_errno(errno);
            return Some(-1);
        }
    };
    for set in sets.into_iter().filter(|set| !set.is_null()) {
        // SAFETY: the caller's.
        (0..count).for_each(|fd| unsafe { libc::FD_CLR(fd, set) });
    }
    for (fd, set) in told {
        // SAFETY: as above; a set that is null has no descriptors.
        unsafe { libc::FD_SET(fd, sets[set]) };
    }
    Some(bits as c_int)
}

/// select, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let until = match unsafe { timeout.as_ref() } {
        None => Until::Never,
        Some(time) if time.tv_sec < 0 || time.tv_usec < 0 => {
            set_errno(Errno::INVAL);
            return -1;
        }
        Some(time) => {
            let seconds = Duration::from_secs(time.tv_sec as u64);
            Until::after(Some(seconds + Duration::from_micros(time.tv_usec as u64)))
        }
    };
    // SAFETY: as above.
    let done = unsafe { select_streams(count, [read, write, except], until, std::ptr::null()) };
    let Some(done) = done else {
        // SAFETY: as above.
        return unsafe { real::select(count, read, write, except, timeout) };
    };
    // As the kernel does, tells the time that is left. SAFETY: as above.
    if let (Some(timeout), Some(left)) = (unsafe { timeout.as_mut() }, until.left()) {
        timeout.tv_sec = left.as_secs() as libc::time_t;
        timeout.tv_usec = left.subsec_micros().into();
    }
    done
}

/// pselect, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the C library's contract, here and below.
    let done = unsafe { time(timeout) }
        // SAFETY: as above.
        .and_then(|until| unsafe { select_streams(count, [read, write, except], until, mask) });
    match done {
        Some(done) => done,
        // SAFETY: as above.
        None => unsafe { real::pselect(count, read, write, except, timeout, mask) },
    }
}

//! Descriptors: duplicates, closing, passing to other processes.
use crate::listener;
use crate::names;
use crate::sys::memory::{borrowed, set_errno};
use crate::sys::real;
use crate::table;
use ayre::guest::hidden;
use ayre::socket::Reason;
use libc::{c_char, c_int, c_uint};
use rustix::io::Errno;

/// close, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(fd: c_int) -> c_int {
    if hidden::is_hidden(fd) {
        set_errno(Errno::BADF);
        return -1;
    }
    table::be_used_elsewhere(fd);
    if table::is_known(fd) {
        names::closing(fd, borrowed(fd));
    }
    // SAFETY: the C library's contract.
    unsafe { real::close(fd) }
}

/// close_range, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let ours = hidden::numbers();
    let is_closed = flags & CLOSE_RANGE_CLOEXEC == 0;
    let in_range = |fd: &c_int| (first..=last).contains(&(*fd as c_uint));
    if is_closed {
        table::be_used_elsewhere_between(first, last);
        for (fd, _) in table::all().into_iter().filter(|(fd, _)| in_range(fd)) {
            names::closing(fd, borrowed(fd));
        }
    }
    let mut start = first;
    for hole in ours.into_iter().filter(in_range).map(|fd| fd as c_uint) {
        if start < hole {
            // SAFETY: the C library's contract.
            let done = unsafe { real::close_range(start, hole - 1, flags) };
            if done != 0 {
                return done;
            }
        }
        start = hole + 1;
    }
    if start > last && first <= last {
        return 0;
    }
    // SAFETY: as above.
    unsafe { real::close_range(start, last, flags) }
}

/// Of close_range(2): descriptors stay open until the process executes another program.
const CLOSE_RANGE_CLOEXEC: c_int = 4;

/// closefrom, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the C library's contract.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

/// Tells of a duplicate that the kernel has made.
fn duplicated(fd: c_int, made: c_int) -> c_int {
    if made >= 0 {
        // Both connect when one does.
        listener::await_connect(fd);
        if table::is_left(fd) {
            table::leave(made);
        }
    }
    table::be_used_elsewhere(fd);
    if made >= 0 && table::is_known(fd) {
        names::duplicated(fd, made);
    }
    made
}

/// dup, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the C library's contract.
    duplicated(fd, unsafe { real::dup(fd) })
}

/// Before a file is put at a number: what is there is closed, or moved where it is ours.
fn make_way(fd: c_int, to: c_int) -> Result<(), Errno> {
    if fd == to || rustix::io::fcntl_getfd(borrowed(fd)).is_err() {
        return Ok(());
    }
    if hidden::is_hidden(to) {
        return hidden::make_way(to);
    }
    table::be_used_elsewhere(to);
    if table::is_known(to) {
        names::closing(to, borrowed(to));
    }
    Ok(())
}

/// dup2, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    if fd < 0 || to < 0 {
        // SAFETY: the C library's contract.
        return unsafe { real::dup2(fd, to) };
    }
    if let Err(errno) = make_way(fd, to) {
        set_errno(errno);
        return -1;
    }
    // SAFETY: as above.
    let made = unsafe { real::dup2(fd, to) };
    if fd == to { made } else { duplicated(fd, made) }
}

/// dup3, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if fd < 0 || to < 0 || fd == to {
        // SAFETY: the C library's contract.
        return unsafe { real::dup3(fd, to, flags) };
    }
    if let Err(errno) = make_way(fd, to) {
        set_errno(errno);
        return -1;
    }
    // SAFETY: as above.
    duplicated(fd, unsafe { real::dup3(fd, to, flags) })
}

/// fcntl, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the C library's contract.
    let done = unsafe { real::fcntl(fd, command, argument) };
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicated(fd, done),
        libc::F_SETFL if done == 0 => {
            table::forget_waits(fd);
            // The kernel signals what comes by the kernel only.
            let is_signalled = argument as c_int & libc::O_ASYNC != 0;
            if is_signalled {
                table::end_new(fd);
            }
            if let Some(stream) = table::stream(fd) {
                stream.forget_patience();
                if is_signalled {
                    stream.be_signalled();
                }
            }
            done
        }
        _ => done,
    }
}

/// fcntl64, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the two are the same function on this system.
    unsafe { fcntl(fd, command, argument) }
}

/// fdopen, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE {
    table::be_used_elsewhere(fd);
    if let Some(stream) = table::stream(fd) {
        names::abandon(&stream, Reason::Stdio);
    }
    // SAFETY: the C library's contract.
    unsafe { real::fdopen(fd, mode) }
}

/// Before a message goes out: streams among its descriptors are used by others from then on.
pub(super) fn before_passing(message: &libc::msghdr) {
    if message.msg_control.is_null() || message.msg_controllen == 0 {
        return;
    }
    // SAFETY: the C library's contract: the message's control data are well formed.
    let mut part = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: as above, in each step.
    while let Some(header) = unsafe { part.as_ref() } {
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: as above.
            let data = unsafe { libc::CMSG_DATA(part) };
            // SAFETY: as above.
            let head = unsafe { data.offset_from(part.cast::<u8>()) } as usize;
            let count = (header.cmsg_len - head) / size_of::<c_int>();
            for i in 0..count {
                // SAFETY: as above.
                let fd = unsafe { data.cast::<c_int>().add(i).read_unaligned() };
                names::passing(fd);
            }
        }
        // SAFETY: as above.
        part = unsafe { libc::CMSG_NXTHDR(message, part) };
    }
}

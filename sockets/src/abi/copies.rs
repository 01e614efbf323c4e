//! Bytes that move between a stream and a file or pipe.
use crate::stream::Stream;
use crate::sys::memory::{borrowed, returned, set_errno};
use crate::sys::real;
use crate::table;
use libc::{c_int, c_uint, size_t, ssize_t};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{RecvFlags, SendFlags};

/// Bytes that are copied between a stream and another descriptor at a time.
const COPIED: usize = 1 << 16;

/// sendfile, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut libc::off_t,
    len: size_t,
) -> ssize_t {
    let Some(stream) = table::stream(out) else {
        // SAFETY: the C library's contract.
        return unsafe { real::sendfile(out, from, offset, len) };
    };
    let file = borrowed(from);
    let begin = match offset.is_null() {
        true => rustix::fs::tell(file),
        // SAFETY: as above.
        false => Ok(unsafe { *offset } as u64),
    };
    let sent = begin.and_then(|begin| Ok((begin, send_part((&stream, out), file, begin, len)?)));
    if let Ok((begin, done)) = sent {
        let end = begin + done as u64;
        match offset.is_null() {
            true => drop(rustix::fs::seek(file, rustix::fs::SeekFrom::Start(end))),
            // SAFETY: as above.
            false => unsafe { *offset = end as libc::off_t },
        }
    }
    returned(sent.map(|(_, done)| done))
}

/// Writes a part of a file into a stream: all of it, unless the file ends, or the stream does not
/// take more.
fn send_part(
    (stream, fd): (&Stream, c_int),
    file: BorrowedFd<'_>,
    begin: u64,
    len: usize,
) -> Result<usize, Errno> {
    let end_of_file = Errno::NODATA;
    let sent = stream.write_by(fd, (len, SendFlags::empty()), |fd, done| {
        let mut end = done;
        while end < len {
            let at = (file, begin + end as u64);
            match stream.connection().write_file(borrowed(fd), at, len - end) {
                Ok(written @ 1..) => end += written,
                _ if end > done => break,
                Ok(_) => return Err(end_of_file),
                Err(errno) => return Err(errno),
            }
        }
        Ok(end - done)
    });
    if sent == Err(end_of_file) { Ok(0) } else { sent }
}

/// sendfile64, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendfile64(
    out: c_int,
    from: c_int,
    offset: *mut libc::off_t,
    len: size_t,
) -> ssize_t {
    // SAFETY: the two are the same function on this system.
    unsafe { sendfile(out, from, offset, len) }
}

/// splice, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn splice(
    from: c_int,
    from_at: *mut libc::loff_t,
    to: c_int,
    to_at: *mut libc::loff_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    let (source, target) = (table::stream(from), table::stream(to));
    if source.is_none() && target.is_none() {
        // SAFETY: the C library's contract.
        return unsafe { real::splice(from, from_at, to, to_at, len, flags) };
    }
    let never_waits = flags & libc::SPLICE_F_NONBLOCK != 0;
    match (source, target) {
        (Some(source), None) => splice_out((&source, from), to, len, never_waits),
        (None, Some(target)) => splice_in(from, (&target, to), len, never_waits),
        _ => {
            // One end of a splice is a pipe.
            set_errno(Errno::INVAL);
            -1
        }
    }
}

/// Moves bytes of a stream into a pipe: as many as it surely takes.
fn splice_out(
    (stream, fd): (&Stream, c_int),
    pipe: c_int,
    len: usize,
    never_waits: bool,
) -> ssize_t {
    let room = match rustix::pipe::fcntl_getpipe_size(borrowed(pipe)) {
        Ok(size) => size - rustix::io::ioctl_fionread(borrowed(pipe)).unwrap_or(0) as usize,
        Err(errno) => return returned(Err(errno)),
    };
    // A page of the pipe may be used in part.
    let most = len.min(COPIED).min(room / 2);
    if most == 0 {
        return returned(Err(Errno::AGAIN));
    }
    let mut buffer = vec![0; most];
    let flags = if never_waits { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
    let into = &mut [IoSliceMut::new(&mut buffer)];
    let received = match stream.read(fd, into, flags) {
        Ok(len) => len,
        Err(errno) => return returned(Err(errno)),
    };
    let mut done = 0;
    while done < received {
        match rustix::io::write(borrowed(pipe), &buffer[done..received]) {
            Ok(len) => done += len,
            Err(Errno::AGAIN | Errno::INTR) => {
                let mut fds = [libc::pollfd { fd: pipe, events: libc::POLLOUT, revents: 0 }];
                let _ = crate::sys::wait::poll(&mut fds, None, None);
            }
            Err(errno) => return returned(Err(errno)),
        }
    }
    done as ssize_t
}

/// Moves bytes of a pipe into a stream: as many as it takes at once.
fn splice_in(
    pipe: c_int,
    (stream, fd): (&Stream, c_int),
    len: usize,
    never_waits: bool,
) -> ssize_t {
    let mut buffer = vec![0; len.min(COPIED)];
    if never_waits && rustix::io::ioctl_fionread(borrowed(pipe)) == Ok(0) {
        let mut fds = [libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 }];
        let ready = crate::sys::wait::poll(&mut fds, Some(std::time::Duration::ZERO), None);
        if ready == Ok(0) {
            return returned(Err(Errno::AGAIN));
        }
    }
    if never_waits && stream.ready(crate::stream::Direction::Out) == (false, false) {
        return returned(Err(Errno::AGAIN));
    }
    let taken = match rustix::io::read(borrowed(pipe), &mut buffer) {
        Ok(taken) => taken,
        Err(errno) => return returned(Err(errno)),
    };
    let mut done = 0;
    while done < taken {
        let piece = [IoSlice::new(&buffer[done..taken])];
        match stream.write(fd, &piece, SendFlags::empty()) {
            Ok(len) => done += len,
            // Bytes that were taken from the pipe are written.
            Err(Errno::AGAIN | Errno::INTR) => {
                let mut fds = [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }];
                let _ = crate::poll::poll(&mut fds, crate::waiter::Until::Never, None);
            }
            Err(errno) if done == 0 => return returned(Err(errno)),
            Err(_) => break,
        }
    }
    done as ssize_t
}

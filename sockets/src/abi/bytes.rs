//! Reading and writing.
use crate::stream::Stream;
use crate::sys::memory::{self, borrowed, returned, set_errno};
use crate::sys::real;
use crate::table;
use libc::{c_int, c_uint, c_void, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvFlags, SendFlags};
use std::sync::Arc;

/// Most pieces of a vector.
const PIECES: usize = 1024;

/// The stream of a descriptor, unless the flags ask for what only the kernel does.
fn seen(fd: c_int, flags: c_int) -> Option<Arc<Stream>> {
    let stream = table::stream(fd)?;
    if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE) != 0 {
        return None;
    }
    Some(stream)
}

/// Reads, until all is there where the program says so.
fn receive(stream: &Stream, fd: c_int, into: &mut [IoSliceMut<'_>], flags: c_int) -> ssize_t {
    let waits_for_all = flags & libc::MSG_WAITALL != 0;
    let known = RecvFlags::from_bits_retain(flags as c_uint & !(libc::MSG_WAITALL as c_uint));
    let first = stream.read(fd, into, known);
    let total: usize = into.iter().map(|piece| piece.len()).sum();
    match first {
        Ok(done) if waits_for_all && done > 0 && done < total => {
            if known.contains(RecvFlags::PEEK) {
                return done as ssize_t;
            }
            receive_rest((stream, fd), into, known, done) as ssize_t
        }
        first => returned(first),
    }
}

fn receive_rest(
    (stream, fd): (&Stream, c_int),
    into: &mut [IoSliceMut<'_>],
    flags: RecvFlags,
    mut done: usize,
) -> usize {
    let total: usize = into.iter().map(|piece| piece.len()).sum();
    while done < total {
        let mut left = done;
        let mut rest = Vec::with_capacity(into.len());
        for piece in into.iter_mut() {
            let skipped = left.min(piece.len());
            left -= skipped;
            rest.push(IoSliceMut::new(&mut piece[skipped..]));
        }
        match stream.read(fd, &mut rest, flags) {
            Ok(len) if len > 0 => done += len,
            _ => break,
        }
    }
    done
}

/// read, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn read(fd: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    match table::stream(fd) {
        // SAFETY: the C library's contract, here and below.
        None => unsafe { real::read(fd, into, len) },
        // SAFETY: as above.
        Some(stream) => receive(&stream, fd, &mut [unsafe { memory::into(into, len) }], 0),
    }
}

/// __read_chk, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __read_chk(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    room: size_t,
) -> ssize_t {
    assert!(len <= room, "buffer overflow");
    // SAFETY: as read.
    unsafe { read(fd, into, len) }
}

/// recv, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recv(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as recvfrom.
    unsafe { recvfrom(fd, into, len, flags, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// __recv_chk, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __recv_chk(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    assert!(len <= room, "buffer overflow");
    // SAFETY: as recv.
    unsafe { recv(fd, into, len, flags) }
}

/// recvfrom, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvfrom(
    fd: c_int,
    into: *mut c_void,
    len: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    let Some(stream) = seen(fd, flags) else {
        // SAFETY: the C library's contract.
        return unsafe { real::recvfrom(fd, into, len, flags, from, from_len) };
    };
    if !from_len.is_null() && !from.is_null() {
        // Streams have no address for each message. SAFETY: the C library's contract.
        unsafe { *from_len = 0 };
    }
    // SAFETY: as above.
    receive(&stream, fd, &mut [unsafe { memory::into(into, len) }], flags)
}

/// readv, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match table::stream(fd) {
        Some(stream) if (0..=PIECES as c_int).contains(&count) => {
            // SAFETY: the C library's contract.
            let mut into = unsafe { memory::pieces_into(pieces, count as usize) };
            receive(&stream, fd, &mut into, 0)
        }
        // SAFETY: as above.
        _ => unsafe { real::readv(fd, pieces, count) },
    }
}

/// recvmsg, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let Some(stream) = seen(fd, flags).filter(|_| !message.is_null()) else {
        // SAFETY: the C library's contract.
        return unsafe { real::recvmsg(fd, message, flags) };
    };
    // SAFETY: as above.
    let message = unsafe { &mut *message };
    // SAFETY: as above.
    let mut into = unsafe { memory::pieces_into(message.msg_iov, message.msg_iovlen) };
    let received = receive(&stream, fd, &mut into, flags);
    if received >= 0 {
        (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
    }
    received
}

/// recvmmsg, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    if seen(fd, flags).is_none() {
        // SAFETY: the C library's contract.
        return unsafe { real::recvmmsg(fd, messages, count, flags, timeout) };
    }
    let mut known = flags & !libc::MSG_WAITFORONE;
    for i in 0..count as usize {
        // SAFETY: as above.
        let message = unsafe { &mut *messages.add(i) };
        // SAFETY: as above.
        let received = unsafe { recvmsg(fd, &raw mut message.msg_hdr, known) };
        match received {
            -1 if i == 0 => return -1,
            ..=0 if i > 0 => return i as c_int,
            len => message.msg_len = len as c_uint,
        }
        if received == 0 {
            return 1;
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            known |= libc::MSG_DONTWAIT;
        }
    }
    count as c_int
}

/// write, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t {
    match table::stream(fd) {
        // SAFETY: the C library's contract.
        None => unsafe { real::write(fd, from, len) },
        Some(stream) => {
            // SAFETY: as above.
            let piece = unsafe { memory::from(from, len) };
            returned(stream.write(fd, &[piece], SendFlags::empty()))
        }
    }
}

/// An urgent byte goes by the kernel, behind all that was written.
fn send_urgent(stream: &Stream) {
    stream.be_plain();
}

/// send, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn send(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    let Some(stream) = table::stream(fd) else {
        // SAFETY: the C library's contract.
        return unsafe { real::send(fd, from, len, flags) };
    };
    if flags & libc::MSG_OOB != 0 {
        send_urgent(&stream);
    }
    // SAFETY: as above.
    let piece = unsafe { memory::from(from, len) };
    let flags = SendFlags::from_bits_retain(flags as c_uint);
    returned(stream.write(fd, &[piece], flags))
}

/// sendto, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendto(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    // The kernel ignores an address for a connected stream, too.
    match table::is_stream(fd) && flags & libc::MSG_FASTOPEN == 0 {
        // SAFETY: the C library's contract.
        true => unsafe { send(fd, from, len, flags) },
        // SAFETY: as above.
        false => unsafe { real::sendto(fd, from, len, flags, to, to_len) },
    }
}

/// writev, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match table::stream(fd) {
        Some(stream) if (0..=PIECES as c_int).contains(&count) => {
            // SAFETY: the C library's contract.
            let from = unsafe { memory::pieces_from(pieces, count as usize) };
            returned(stream.write(fd, &from, SendFlags::empty()))
        }
        // SAFETY: as above.
        _ => unsafe { real::writev(fd, pieces, count) },
    }
}

/// sendmsg, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    let stream = table::stream(fd).filter(|_| !message.is_null());
    let Some(stream) = stream else {
        if !message.is_null() {
            // SAFETY: the C library's contract.
            super::names::before_passing(unsafe { &*message });
        }
        // SAFETY: as above.
        return unsafe { real::sendmsg(fd, message, flags) };
    };
    if flags & libc::MSG_OOB != 0 {
        send_urgent(&stream);
    }
    // SAFETY: as above.
    let message = unsafe { &*message };
    // SAFETY: as above.
    let from = unsafe { memory::pieces_from(message.msg_iov, message.msg_iovlen) };
    let flags = SendFlags::from_bits_retain(flags as c_uint);
    returned(stream.write(fd, &from, flags))
}

/// sendmmsg, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    if !table::is_stream(fd) {
        // SAFETY: the C library's contract.
        return unsafe { real::sendmmsg(fd, messages, count, flags) };
    }
    for i in 0..count as usize {
        // SAFETY: as above.
        let message = unsafe { &mut *messages.add(i) };
        // SAFETY: as above.
        match unsafe { sendmsg(fd, &raw const message.msg_hdr, flags) } {
            -1 if i == 0 => return -1,
            -1 => return i as c_int,
            len => message.msg_len = len as c_uint,
        }
    }
    count as c_int
}

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
    let mut at = match offset.is_null() {
        true => None,
        // SAFETY: as above.
        false => Some(unsafe { *offset }),
    };
    let mut buffer = vec![0; len.min(COPIED)];
    let mut done = 0;
    while done < len {
        let most = (len - done).min(COPIED);
        let start = match at {
            Some(at) => at as u64,
            None => match rustix::fs::tell(file) {
                Ok(at) => at,
                Err(errno) => return returned(Err(errno)),
            },
        };
        let written = match rustix::io::pread(file, &mut buffer[..most], start) {
            Ok(0) => break,
            Ok(len) => {
                let piece = [rustix::io::IoSlice::new(&buffer[..len])];
                stream.write(out, &piece, SendFlags::empty())
            }
            Err(errno) => Err(errno),
        };
        let (len, is_short) = match written {
            Ok(len) => (len, len < most),
            Err(errno) if done == 0 => return returned(Err(errno)),
            Err(_) => break,
        };
        done += len;
        match &mut at {
            Some(at) => *at += len as libc::off_t,
            None => {
                let _ = rustix::fs::seek(file, rustix::fs::SeekFrom::Start(start + len as u64));
            }
        }
        if is_short {
            break;
        }
    }
    if let Some(at) = at {
        // SAFETY: as above.
        unsafe { *offset = at };
    }
    done as ssize_t
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
        let piece = [rustix::io::IoSlice::new(&buffer[done..taken])];
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

//! Reading and writing.
use super::addresses::Room;
use super::messages;
use super::options;
use crate::stream::Stream;
use crate::sys::memory::{self, PIECES, borrowed, keeping_errno, returned};
use crate::sys::real;
use crate::table::{self, Used};
use ayre::socket::{Connection, Reason};
use libc::{
    c_int, c_uint, c_void, iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t,
};
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvFlags, SendFlags};

/// The stream of a descriptor, unless the flags ask for what only the kernel does.
fn seen(fd: c_int, flags: c_int) -> Option<Used> {
    let stream = table::used(fd)?;
    if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE) != 0 {
        return None;
    }
    Some(stream)
}

/// The flags of a read that returns what is there.
pub(super) fn known_flags(flags: c_int) -> RecvFlags {
    RecvFlags::from_bits_retain(flags as c_uint & !(libc::MSG_WAITALL as c_uint))
}

fn receive((stream, fd): (&Stream, c_int), into: &mut [IoSliceMut<'_>], flags: c_int) -> ssize_t {
    receive_by((stream, fd), into, flags, |into, flags| stream.read(fd, into, flags))
}

/// Reads, until all is there where the program says so. Programs that wait for edges take a read
/// that leaves room for the end of what is there, so others go on behind a mark.
// spec: SOCK-56
pub(super) fn receive_by(
    (stream, fd): (&Stream, c_int),
    into: &mut [IoSliceMut<'_>],
    flags: c_int,
    mut read: impl FnMut(&mut [IoSliceMut<'_>], RecvFlags) -> Result<usize, Errno>,
) -> ssize_t {
    let known = known_flags(flags);
    let connection = stream.connection();
    let waits_for_all = flags & libc::MSG_WAITALL != 0;
    match read(into, known) {
        Ok(done @ 1..)
            if flags & libc::MSG_PEEK == 0 && (waits_for_all || connection.has_mark()) =>
        {
            receive_rest(into, done, |rest| match waits_for_all {
                true => read(rest, known),
                false if goes_on(connection, fd) => read(rest, known | RecvFlags::DONTWAIT),
                false => Err(Errno::AGAIN),
            }) as ssize_t
        }
        first => returned(first),
    }
}

/// Whether there is more for a read that has come to a mark.
#[cold]
fn goes_on(connection: &Connection, fd: c_int) -> bool {
    connection.is_readable_behind_mark(borrowed(fd))
        && (connection.is_readable() || !options::is_behind_urgent_byte(fd))
}

fn receive_rest(
    into: &mut [IoSliceMut<'_>],
    mut done: usize,
    mut read: impl FnMut(&mut [IoSliceMut<'_>]) -> Result<usize, Errno>,
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
        match read(&mut rest) {
            Ok(len) if len > 0 => done += len,
            _ => break,
        }
    }
    done
}

/// Reads into one piece of memory.
///
/// # Safety
/// As read.
#[inline]
unsafe fn receive_piece(
    (stream, fd): (&Stream, c_int),
    into: *mut c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's.
    match unsafe { memory::into(into, len) } {
        Ok(piece) => receive((stream, fd), &mut [piece], flags),
        Err(errno) => returned(Err(errno)),
    }
}

/// Reads into the pieces of a vector.
///
/// # Safety
/// As readv.
unsafe fn receive_pieces(
    of: (&Stream, c_int),
    pieces: *const iovec,
    count: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's.
    match unsafe { memory::pieces_into(pieces, count) } {
        Ok(mut into) => receive(of, &mut into, flags),
        Err(errno) => returned(Err(errno)),
    }
}

/// read, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn read(fd: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    // Most reads are of files: they do no more than this.
    match table::is_stream(fd) {
        // SAFETY: the C library's contract, here and below.
        false => unsafe { real::read(fd, into, len) },
        // SAFETY: as above.
        true => unsafe { read_stream(fd, into, len) },
    }
}

/// # Safety
/// As read.
#[inline(never)]
unsafe fn read_stream(fd: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    match table::used(fd) {
        // SAFETY: the caller's, here and below.
        Some(stream) => unsafe { receive_piece((&stream, fd), into, len, 0) },
        // SAFETY: as above.
        None => unsafe { real::read(fd, into, len) },
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
    // SAFETY: the C library's contract, here and below.
    let room = unsafe { Room::new(from, from_len) };
    // SAFETY: as above.
    let received = unsafe { receive_piece((&stream, fd), into, len, flags) };
    match room.filter(|_| received >= 0) {
        // SAFETY: as above.
        Some(room) if stream.is_unix() => keeping_errno(|| unsafe { room.tell_peer(fd) }),
        // TCP has no address for each message. SAFETY: as above.
        Some(_) => unsafe { *from_len = 0 },
        None => {}
    }
    received
}

/// readv, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match table::used(fd) {
        Some(stream) if (0..=PIECES as c_int).contains(&count) => {
            // SAFETY: the C library's contract.
            unsafe { receive_pieces((&stream, fd), pieces, count as usize, 0) }
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
    let Some(stream) = seen(fd, flags).filter(|_| memory::may_be(message)) else {
        // SAFETY: the C library's contract.
        return unsafe { real::recvmsg(fd, message, flags) };
    };
    // SAFETY: as above.
    let message = unsafe { &mut *message };
    if stream.is_unix() {
        // SAFETY: as above.
        return unsafe { messages::receive((&stream, fd), message, flags) };
    }
    let (pieces, count) = (message.msg_iov, message.msg_iovlen);
    // SAFETY: as above.
    let received = unsafe { receive_pieces((&stream, fd), pieces, count, flags) };
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
    if seen(fd, flags).is_none() || !memory::may_be(messages) {
        // SAFETY: the C library's contract.
        return unsafe { real::recvmmsg(fd, messages, count, flags, timeout) };
    }
    let mut known = flags & !libc::MSG_WAITFORONE;
    for i in 0..count as usize {
        // SAFETY: as above.
        let message = unsafe { &mut *messages.add(i) };
        // SAFETY: as above.
        match unsafe { recvmsg(fd, &raw mut message.msg_hdr, known) } {
            -1 if i == 0 => return -1,
            -1 => return i as c_int,
            len => message.msg_len = len as c_uint,
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
    match table::used(fd) {
        // SAFETY: the C library's contract.
        None => unsafe { real::write(fd, from, len) },
        Some(stream) => {
            // SAFETY: as above.
            let piece = unsafe { memory::from(from, len) };
            returned(piece.and_then(|piece| stream.write(fd, &[piece], SendFlags::empty())))
        }
    }
}

/// An urgent byte goes by the kernel, behind all that was written.
fn send_urgent(stream: &Stream) {
    stream.be_plain(Reason::Option);
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
    let Some(stream) = table::used(fd) else {
        // SAFETY: the C library's contract.
        return unsafe { real::send(fd, from, len, flags) };
    };
    if flags & libc::MSG_OOB != 0 {
        send_urgent(&stream);
    }
    let flags = SendFlags::from_bits_retain(flags as c_uint);
    // SAFETY: as above.
    let piece = unsafe { memory::from(from, len) };
    returned(piece.and_then(|piece| stream.write(fd, &[piece], flags)))
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
    // The kernel ignores an address for a connected stream of TCP, too.
    let has_address = !to.is_null() && to_len > 0;
    match table::stream(fd) {
        Some(stream) if flags & libc::MSG_FASTOPEN == 0 && !(has_address && stream.is_unix()) => {
            // SAFETY: the C library's contract.
            unsafe { send(fd, from, len, flags) }
        }
        // SAFETY: as above.
        _ => unsafe { real::sendto(fd, from, len, flags, to, to_len) },
    }
}

/// writev, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    match table::used(fd) {
        Some(stream) if (0..=PIECES as c_int).contains(&count) => {
            // SAFETY: the C library's contract.
            let from = unsafe { memory::pieces_from(pieces, count as usize) };
            returned(from.and_then(|from| stream.write(fd, &from, SendFlags::empty())))
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
    let stream = table::used(fd).filter(|_| memory::may_be(message));
    let Some(stream) = stream else {
        if memory::may_be(message) {
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
    if stream.is_unix() {
        // SAFETY: as above.
        return unsafe { messages::send((&stream, fd), message, flags) };
    }
    // SAFETY: as above.
    let from = unsafe { memory::pieces_from(message.msg_iov, message.msg_iovlen) };
    let flags = SendFlags::from_bits_retain(flags as c_uint);
    returned(from.and_then(|from| stream.write(fd, &from, flags)))
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
    if !table::is_stream(fd) || !memory::may_be(messages) {
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

/// The flags of preadv2(2) and pwritev2(2) that ask nothing of a socket.
const WITHOUT_EFFECT: c_int = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC;

/// The stream on which preadv2(2) or pwritev2(2) is a readv or writev, and whether it waits. An
/// offset or other flags are errors, which the kernel tells.
fn vector_stream((fd, count): (c_int, c_int), offset: off_t, flags: c_int) -> Option<(Used, bool)> {
    let is_known = flags & !(WITHOUT_EFFECT | libc::RWF_NOWAIT) == 0;
    let is_vector = offset == -1 && (0..=PIECES as c_int).contains(&count);
    let waits = flags & libc::RWF_NOWAIT == 0;
    table::used(fd).filter(|_| is_known && is_vector).map(|stream| (stream, waits))
}

/// preadv2, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn preadv2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    let Some((stream, waits)) = vector_stream((fd, count), offset, flags) else {
        // SAFETY: the C library's contract.
        return unsafe { real::preadv2(fd, pieces, count, offset, flags) };
    };
    let flags = if waits { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: as above.
    unsafe { receive_pieces((&stream, fd), pieces, count as usize, flags) }
}

/// preadv64v2, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn preadv64v2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the two are the same function on this system.
    unsafe { preadv2(fd, pieces, count, offset, flags) }
}

/// pwritev2, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pwritev2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    let Some((stream, waits)) = vector_stream((fd, count), offset, flags) else {
        // SAFETY: the C library's contract.
        return unsafe { real::pwritev2(fd, pieces, count, offset, flags) };
    };
    let flags = if waits { SendFlags::empty() } else { SendFlags::DONTWAIT };
    // SAFETY: as above.
    let from = unsafe { memory::pieces_from(pieces, count as usize) };
    returned(from.and_then(|from| stream.write(fd, &from, flags)))
}

/// pwritev64v2, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pwritev64v2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the two are the same function on this system.
    unsafe { pwritev2(fd, pieces, count, offset, flags) }
}

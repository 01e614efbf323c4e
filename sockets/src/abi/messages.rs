//! Messages of Unix sockets: with them go descriptors and credentials, which the kernel passes on.
use super::addresses::Room;
use super::bytes::receive_by;
use super::names;
use crate::stream::{Stream, behind};
use crate::sys::memory::{self, borrowed, keeping_errno, returned};
use crate::sys::real;
use ayre::socket::Reason;
use libc::{c_int, c_uint, msghdr, ssize_t};
use rustix::io::Errno;
use rustix::net::SendFlags;

/// The result of a call of the C library.
fn outcome(returned: ssize_t) -> Result<usize, Errno> {
    usize::try_from(returned).map_err(|_| memory::errno())
}

/// Reads a message. The kernel writes descriptors and credentials where the program wants them.
///
/// # Safety
/// As recvmsg.
pub(super) unsafe fn receive(
    (stream, fd): (&Stream, c_int),
    message: &mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's.
    let into = unsafe { memory::pieces_into(message.msg_iov, message.msg_iovlen) };
    let mut into = match into {
        Ok(into) => into,
        Err(errno) => return returned(Err(errno)),
    };
    // The control data and the flags of the bytes that were read last.
    let mut told = (0, 0);
    let received = receive_by((stream, fd), &mut into, flags, |into, known| {
        // Bytes behind control data are those of another read.
        if told.0 > 0 {
            return Err(Errno::AGAIN);
        }
        stream.read_by(fd, known, |fd| {
            told = (0, 0);
            let never_waits = known.bits() as c_int | libc::MSG_DONTWAIT;
            stream.connection().read_with(borrowed(fd), into, known, |into| {
                let mut asked = *message;
                (asked.msg_name, asked.msg_namelen) = (std::ptr::null_mut(), 0);
                (asked.msg_iov, asked.msg_iovlen) = (into.as_mut_ptr().cast(), into.len());
                // SAFETY: the caller's; a piece of memory looks the same to C.
                let len = outcome(unsafe { real::recvmsg(fd, &raw mut asked, never_waits) })?;
                told = (asked.msg_controllen, asked.msg_flags);
                Ok(len)
            })
        })
    });
    if received >= 0 {
        (message.msg_controllen, message.msg_flags) = told;
        // SAFETY: the caller's.
        let room = unsafe { Room::new(message.msg_name.cast(), &raw mut message.msg_namelen) };
        match room {
            // SAFETY: as above.
            Some(room) => keeping_errno(|| unsafe { room.tell_peer(fd) }),
            None => message.msg_namelen = 0,
        }
    }
    received
}

/// Writes a message. Where it has control data, it goes by the kernel, as all bytes behind it do.
///
/// # Safety
/// As sendmsg.
pub(super) unsafe fn send(
    (stream, fd): (&Stream, c_int),
    message: &msghdr,
    flags: c_int,
) -> ssize_t {
    if message.msg_namelen > 0 {
        // The kernel tells the error. SAFETY: the caller's.
        return unsafe { real::sendmsg(fd, message, flags) };
    }
    // SAFETY: as above.
    let from = unsafe { memory::pieces_from(message.msg_iov, message.msg_iovlen) };
    let from = match from {
        Ok(from) => from,
        Err(errno) => return returned(Err(errno)),
    };
    let known = SendFlags::from_bits_retain(flags as c_uint);
    if message.msg_control.is_null() || message.msg_controllen == 0 {
        return returned(stream.write(fd, &from, known));
    }
    stream.be_plain(Reason::Option);
    names::before_passing(message);
    let total = from.iter().map(|piece| piece.len()).sum();
    returned(stream.write_by(fd, (total, known), |fd, done| {
        if done > 0 {
            return stream.connection().write(borrowed(fd), &behind(&from, done), known);
        }
        stream.connection().write_with(borrowed(fd), &from, || {
            let asked = msghdr {
                msg_iov: from.as_ptr().cast_mut().cast(),
                msg_iovlen: from.len(),
                ..*message
            };
            // SAFETY: the caller's; a piece of memory looks the same to C.
            outcome(unsafe { real::sendmsg(fd, &raw const asked, flags | libc::MSG_DONTWAIT) })
        })
    }))
}

//! Rows about what goes beside the bytes of a message: descriptors, credentials, addresses.

use std::ffi::c_int;

use crate::common::call::{
    self, Outcome, close, ioctl_number, pass, pipe, poll, recv, set_option, take,
};
use crate::end::{End, TIME};

/// Bytes, a descriptor with its byte, and bytes again: they come in this order.
// spec: SOCK-50
pub(crate) fn descriptors(end: &mut End) {
    for round in 0..3u8 {
        let mut bytes = [0; 4];
        if end.server {
            end.read_exactly(&mut bytes);
            end.say("bytes before", bytes);
            match take(end.fd) {
                Ok(fd) => {
                    let told = call::read(fd, &mut bytes);
                    end.told("read of the descriptor", told);
                    let _ = close(fd);
                }
                Err(error) => end.told("recvmsg", Err(error)),
            }
            end.say("bytes of the descriptor", bytes);
            end.read_exactly(&mut bytes);
            end.say("bytes behind", bytes);
            let told = call::write(end.fd, &bytes);
            end.told("answer", told);
        } else {
            let ends = pipe().expect("a pipe");
            let told = call::write(ends[1], &[round; 3]);
            end.told("write to the pipe", told);
            let told = call::write(end.fd, &[1; 4]);
            end.told("write", told);
            let told = pass(end.fd, ends[0]);
            end.told("sendmsg", told);
            let told = call::write(end.fd, &[2; 4]);
            end.told("write", told);
            for fd in ends {
                let _ = close(fd);
            }
            end.read_exactly(&mut bytes);
        }
    }
    end.meet();
}

/// A read without room for descriptors loses them, and not their bytes.
pub(crate) fn descriptors_that_nobody_takes(end: &mut End) {
    if end.server {
        end.meet();
        end.read_exactly(&mut [0; 2]);
        let told = recv(end.fd, &mut [0; 20], libc::MSG_DONTWAIT);
        end.told("recv", told);
    } else {
        for _ in 0..2 {
            let told = pass(end.fd, 0);
            end.told("sendmsg", told);
        }
        end.meet();
    }
    end.meet();
}

/// Reads a message with room for control data and an address. Their lengths, and the flags.
fn receive(fd: c_int) -> Result<(usize, usize, u32, c_int), i32> {
    let mut bytes = [0u8; 4];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let (mut control, mut name) = ([0u64; 16], [0u64; 16]);
    let mut message = zeroed!(libc::msghdr);
    (message.msg_iov, message.msg_iovlen) = (&mut piece, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), 128);
    (message.msg_name, message.msg_namelen) = (name.as_mut_ptr().cast(), 128);
    let count = call!(recvmsg(fd, &mut message, 0))?;
    Ok((count, message.msg_controllen, message.msg_namelen, message.msg_flags))
}

/// A program that asks for them is told who has sent each message.
// spec: SOCK-50
pub(crate) fn credentials(end: &mut End) {
    if end.server {
        let one: c_int = 1;
        let told = set_option(end.fd, libc::SOL_SOCKET, libc::SO_PASSCRED, &one);
        end.told("SO_PASSCRED", told);
    }
    end.meet();
    for _ in 0..3 {
        if end.server {
            let told = receive(end.fd);
            end.say("recvmsg", told);
            let told = call::write(end.fd, b"more");
            end.told("answer", told);
        } else {
            let told = call::write(end.fd, b"some");
            end.told("write", told);
            end.read_exactly(&mut [0; 4]);
        }
    }
    end.meet();
}

type Addressed = fn(c_int, *mut libc::sockaddr, *mut u32) -> Outcome;

const ADDRESSED: [(&str, Addressed); 3] = [
    ("getsockname", |fd, at, len| call!(getsockname(fd, at, len))),
    ("getpeername", |fd, at, len| call!(getpeername(fd, at, len))),
    ("recvfrom", |fd, at, len| {
        let mut bytes = [0u8; 4];
        call!(recvfrom(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0, at, len))
    }),
];

/// The program sees no names but its own, also where it has little room for them.
pub(crate) fn addresses(end: &mut End) {
    for room in [110, 16, 2, 0] {
        let told = call::write(end.fd, b"some");
        end.told("write", told);
        let told = poll(end.fd, libc::POLLIN, TIME);
        end.say("poll", told);
        for (name, call) in ADDRESSED {
            let (mut address, mut length) = ([0u64; 16], room);
            let told = call(end.fd, address.as_mut_ptr().cast(), &mut length);
            end.told(name, told);
            let family = if length > 0 { address[0] as u16 } else { 0 };
            end.say("length and family", (length, family));
        }
    }
    let told = call::write(end.fd, b"some");
    end.told("write", told);
    let told = receive(end.fd);
    end.say("recvmsg", told);
    end.meet();
}

/// An address for bytes of a connection.
pub(crate) fn sends_to_an_address(end: &mut End) {
    let address = call::loopback(9);
    let at = (&raw const address).cast();
    let told = call!(sendto(end.fd, b"some".as_ptr().cast(), 4, 0, at, call::ADDRESS_LENGTH));
    end.told("sendto", told);
    let mut message = zeroed!(libc::msghdr);
    message.msg_name = (&raw const address).cast_mut().cast();
    message.msg_namelen = call::ADDRESS_LENGTH;
    let told = call!(sendmsg(end.fd, &message, 0));
    end.told("sendmsg", told);
    end.meet();
}

/// The queue of a writer is empty once its peer has read all.
pub(crate) fn queue_of_the_writer(end: &mut End) {
    end.bring(1000);
    if end.server {
        let told = call::read(end.fd, &mut [0; 2000]);
        end.told("read", told);
    }
    end.meet();
    // The acknowledgement of TCP is not to be seen at once.
    while ioctl_number(end.fd, libc::TIOCOUTQ) != Ok(0) {
        let _ = call!(poll(std::ptr::null_mut(), 0, 2));
    }
    end.meet();
}

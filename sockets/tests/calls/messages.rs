//! Rows about calls with several pieces or messages, urgent bytes, ends of halves, and addresses.

use std::ffi::{c_int, c_void};

use crate::common::call::{
    self, Family, Outcome, close, family, ioctl_number, poll, recv, send, set_nonblocking,
    set_option, when_asleep,
};
use crate::end::{End, TIME};

fn pieces<const N: usize>(bytes: &mut [[u8; 4]; N]) -> [libc::iovec; N] {
    let mut all = bytes.iter_mut();
    [(); N].map(|()| {
        let piece = all.next().expect("as many pieces as arrays");
        libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() }
    })
}

/// Messages of one piece each.
fn messages<const N: usize>(pieces: &mut [libc::iovec; N]) -> [libc::mmsghdr; N] {
    let mut all = pieces.iter_mut();
    [(); N].map(|()| {
        let mut message = zeroed!(libc::mmsghdr);
        message.msg_hdr.msg_iov = all.next().expect("as many pieces as messages");
        message.msg_hdr.msg_iovlen = 1;
        message
    })
}

pub(crate) fn several_messages(end: &mut End) {
    send_at_once(end);
    let mut bytes = [*b"abcd", *b"efgh", *b"ijkl"];
    let mut pieces = pieces(&mut bytes);
    let mut messages = messages(&mut pieces);
    if !end.server {
        let told = call!(sendmmsg(end.fd, messages.as_mut_ptr(), 3, 0));
        end.told("sendmmsg", told);
        end.say("lengths", messages.map(|message| message.msg_len));
        end.meet();
        let _ = send(end.fd, b"end", 0);
        let _ = close(end.fd);
        end.meet();
        return;
    }
    let told = poll(end.fd, libc::POLLIN, TIME);
    end.say("poll", told);
    end.meet();
    end.meet();
    for (count, flags) in
        [(1, 0), (3, libc::MSG_DONTWAIT), (3, libc::MSG_WAITFORONE), (3, 0), (3, 0)]
    {
        let none = std::ptr::null_mut();
        let told = call!(recvmmsg(end.fd, messages.as_mut_ptr(), count, flags, none));
        end.told("recvmmsg", told);
        let count = told.unwrap_or(0);
        let lengths: Vec<u32> =
            messages.iter().map(|message| message.msg_len).take(count).collect();
        end.say("lengths", lengths);
    }
    end.say("bytes", bytes);
}

/// Each write goes at once, whatever is on the way, as it does by Unix sockets.
fn send_at_once(end: &End) {
    if family() == Family::Unix {
        return;
    }
    let one: c_int = 1;
    set_option(end.fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &one).expect("the option is set");
}

pub(crate) fn vectors_with_flags(end: &mut End) {
    send_at_once(end);
    let mut bytes = [*b"abcd", *b"efgh"];
    let vector = pieces(&mut bytes);
    let at = vector.as_ptr();
    let unknown = 1 << 20;
    if end.server {
        for (offset, flags) in [(-1, libc::RWF_NOWAIT), (0, 0), (-1, unknown)] {
            let told = call!(preadv2(end.fd, at, 2, offset, flags));
            end.told("preadv2", told);
        }
        end.meet();
        let told = poll(end.fd, libc::POLLIN, TIME);
        end.say("poll", told);
        end.meet();
        for flags in [0, libc::RWF_NOWAIT, libc::RWF_NOWAIT] {
            let told = call!(preadv2(end.fd, at, 2, -1, flags));
            end.told("preadv2", told);
        }
        end.say("bytes", bytes);
    } else {
        end.meet();
        for (offset, flags) in [(-1, 0), (-1, libc::RWF_NOWAIT), (0, 0), (-1, unknown)] {
            let told = call!(pwritev2(end.fd, at, 2, offset, flags));
            end.told("pwritev2", told);
        }
        end.meet();
    }
}

pub(crate) fn system_calls_by_number(end: &mut End) {
    send_at_once(end);
    let mut bytes = *b"0123456789";
    let at = bytes.as_mut_ptr();
    if !end.server {
        let none = std::ptr::null_mut::<c_void>();
        let told = call!(syscall(libc::SYS_write, end.fd, at, 5usize));
        end.told("write", told);
        let told = call!(syscall(libc::SYS_sendto, end.fd, at, 5usize, 0, none, 0));
        end.told("sendto", told);
        end.meet();
        return;
    }
    end.meet();
    let mut asked = libc::pollfd { fd: end.fd, events: libc::POLLIN, revents: 0 };
    let time = libc::timespec { tv_sec: 5, tv_nsec: 0 };
    let none = std::ptr::null_mut::<c_void>();
    let told = call!(syscall(libc::SYS_ppoll, &raw mut asked, 1usize, &time, none, 8usize));
    end.told("ppoll", told);
    let epoll = call!(syscall(libc::SYS_epoll_create1, 0)).expect("an epoll descriptor") as c_int;
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 3 };
    let add = libc::EPOLL_CTL_ADD;
    let told = call!(syscall(libc::SYS_epoll_ctl, epoll, add, end.fd, &raw mut event));
    end.told("epoll_ctl", told);
    let told = call!(syscall(libc::SYS_epoll_pwait, epoll, &raw mut event, 1, TIME, none, 8usize));
    end.told("epoll_pwait", told);
    let copy = call!(syscall(libc::SYS_dup, end.fd)).expect("another name");
    let told = call!(syscall(libc::SYS_read, copy, at, 4usize));
    end.told("read", told);
    let told = call!(syscall(libc::SYS_close, copy));
    end.told("close", told);
    let told = call!(syscall(libc::SYS_recvfrom, end.fd, at, 10usize, 0, none, none));
    end.told("recvfrom", told);
    end.say("bytes", bytes);
}

/// The request by which Linux tells that the next byte is the urgent one.
const SIOCATMARK: libc::Ioctl = 0x8905;

pub(crate) fn urgent_byte(end: &mut End) {
    send_at_once(end);
    let mut bytes = [0; 20];
    if end.server {
        end.meet();
        let told = poll(end.fd, libc::POLLPRI, TIME);
        end.say("poll", told);
        for flags in [libc::MSG_OOB, libc::MSG_OOB] {
            let told = recv(end.fd, &mut bytes, flags);
            end.told("recv with MSG_OOB", told);
        }
        for _ in 0..2 {
            let told = ioctl_number(end.fd, SIOCATMARK);
            end.say("SIOCATMARK", told);
            let told = call::read(end.fd, &mut bytes);
            end.told("read", told);
        }
        end.say("bytes", bytes);
    } else {
        for (bytes, flags) in [(&b"ab"[..], 0), (b"u", libc::MSG_OOB), (b"cd", 0)] {
            let told = send(end.fd, bytes, flags);
            end.told("send", told);
        }
        end.meet();
    }
    end.meet();
}

// spec: SOCK-23
/// The end of a half comes behind all bytes.
pub(crate) fn shutdown_of_writing(end: &mut End) {
    end.bring(10);
    if !end.server {
        let told = call!(shutdown(end.fd, libc::SHUT_WR));
        end.told("shutdown", told);
    }
    end.meet();
    if end.server {
        let told = poll(end.fd, libc::POLLIN | libc::POLLRDHUP | libc::POLLOUT, TIME);
        end.say("poll", told);
        for _ in 0..4 {
            let told = call::read(end.fd, &mut [0; 4]);
            end.told("read", told);
        }
        let told = call::write(end.fd, b"other half");
        end.told("write", told);
    } else {
        let told = recv(end.fd, &mut [0; 10], libc::MSG_WAITALL);
        end.told("recv", told);
    }
    end.meet();
}

/// Bytes that had come before are still read.
pub(crate) fn shutdown_of_reading(end: &mut End) {
    end.bring(10);
    if end.server {
        let told = call!(shutdown(end.fd, libc::SHUT_RD));
        end.told("shutdown", told);
        let told = poll(end.fd, libc::POLLIN | libc::POLLRDHUP | libc::POLLOUT, TIME);
        end.say("poll", told);
        for _ in 0..4 {
            let told = call::read(end.fd, &mut [0; 4]);
            end.told("read", told);
        }
        let told = call::write(end.fd, b"other half");
        end.told("write", told);
    } else {
        let told = recv(end.fd, &mut [0; 10], libc::MSG_WAITALL);
        end.told("recv", told);
    }
    end.meet();
}

pub(crate) fn shutdown_of_both(end: &mut End) {
    end.bring(10);
    if !end.server {
        let told = call!(shutdown(end.fd, libc::SHUT_RDWR));
        end.told("shutdown", told);
    }
    end.meet();
    if end.server {
        for _ in 0..4 {
            let told = call::read(end.fd, &mut [0; 4]);
            end.told("read", told);
        }
    } else {
        let told = call::read(end.fd, &mut [0; 4]);
        end.told("read", told);
        let told = send(end.fd, b"vain", libc::MSG_NOSIGNAL);
        end.told("send", told);
    }
    end.meet();
}

/// A thread that reads hears of the end that another one makes.
pub(crate) fn shutdown_while_a_thread_reads(end: &mut End) {
    if end.server {
        let fd = end.fd;
        let told = when_asleep(
            move || call::read(fd, &mut [0; 4]),
            move || call!(shutdown(fd, libc::SHUT_RD)),
        );
        end.say("read and shutdown", told);
    }
    end.meet();
}

// spec: SOCK-67
/// Two threads that read share what comes.
pub(crate) fn two_threads_read(end: &mut End) {
    if end.server {
        let fd = end.fd;
        let read = move || call::read(fd, &mut [0; 4]);
        let mut second = Ok(0);
        let (first, _) = when_asleep(read, || {
            (second, _) = when_asleep(read, || {
                end.meet();
                Ok(0)
            });
            Ok(0)
        });
        end.told("read", first);
        end.told("read", second);
    } else {
        end.meet();
        let told = send(end.fd, b"for both", 0);
        end.told("send", told);
    }
    end.meet();
}

/// A thread that reads has the socket until its call returns.
pub(crate) fn close_while_a_thread_reads(end: &mut End) {
    if end.server {
        let (fd, shared) = (end.fd, end.shared);
        let told = when_asleep(
            move || call::read(fd, &mut [0; 4]),
            move || {
                let told = close(fd);
                shared.set(CLOSED, 1);
                told
            },
        );
        end.say("read and close", told);
        let told = call::read(fd, &mut [0; 4]);
        end.told("read", told);
    } else {
        assert!(end.shared.wait(|shared| shared.get(CLOSED) == 1), "the other end closes");
        let told = send(end.fd, b"last", libc::MSG_NOSIGNAL);
        end.told("send", told);
        let told = call::read(end.fd, &mut [0; 4]);
        end.told("read", told);
    }
    end.meet();
}

const CLOSED: usize = 9;

type AtAddress = fn(c_int, usize) -> Outcome;

const AT_ADDRESS: &[(&str, AtAddress)] = &[
    ("read", |fd, at| call!(read(fd, at as *mut c_void, 4))),
    ("recv", |fd, at| call!(recv(fd, at as *mut c_void, 4, 0))),
    ("write", |fd, at| call!(write(fd, at as *const c_void, 4))),
    ("send", |fd, at| call!(send(fd, at as *const c_void, 4, 0))),
    ("readv", |fd, at| call!(readv(fd, at as *const libc::iovec, 1))),
    ("writev", |fd, at| call!(writev(fd, at as *const libc::iovec, 1))),
    ("recvmsg", |fd, at| call!(recvmsg(fd, at as *mut libc::msghdr, 0))),
    ("writev of a piece", |fd, at| {
        let piece = libc::iovec { iov_base: at as *mut c_void, iov_len: 4 };
        call!(writev(fd, &piece, 1))
    }),
    ("sendmsg of too many pieces", |fd, at| {
        let mut message = zeroed!(libc::msghdr);
        message.msg_iov = at as *mut libc::iovec;
        message.msg_iovlen = 1025;
        call!(sendmsg(fd, &message, 0))
    }),
];

/// Addresses that no program has.
pub(crate) fn wrong_addresses(end: &mut End) {
    end.bring(10);
    if end.server {
        let _ = set_nonblocking(end.fd, true);
        for at in [0, 8, usize::MAX, 1 << 63] {
            for (name, call) in AT_ADDRESS {
                let told = call(end.fd, at);
                end.told(name, told);
            }
        }
        let told = call::read(end.fd, &mut [0; 20]);
        end.told("read", told);
    }
    end.meet();
}

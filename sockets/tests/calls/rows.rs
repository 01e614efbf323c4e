//! The rows: each has one scenario, told from both ends.

use std::ffi::c_int;

use crate::common::call::{
    self, Family, close, exit_now, family, fork, ioctl_number, option, poll, recv, send,
    set_nonblocking, set_option, wait_for,
};
use crate::end::{End, TIME};

pub(crate) fn read_and_write(end: &mut End) {
    end.bring(10);
    if end.server {
        let mut bytes = [0; 4];
        for _ in 0..3 {
            let told = call::read(end.fd, &mut bytes);
            end.told("read of 4", told);
        }
    }
}

pub(crate) fn peek(end: &mut End) {
    end.bring(10);
    if end.server {
        let mut bytes = [0; 20];
        for flags in [libc::MSG_PEEK, libc::MSG_PEEK, 0] {
            let told = recv(end.fd, &mut bytes, flags);
            end.told("recv", told);
        }
    }
}

pub(crate) fn waitall(end: &mut End) {
    if end.server {
        let mut bytes = [0; 20];
        end.meet();
        let told = recv(end.fd, &mut bytes, libc::MSG_WAITALL);
        end.told("recv of 20 with MSG_WAITALL", told);
    } else {
        let _ = send(end.fd, &[1; 10], 0);
        end.meet();
        let _ = send(end.fd, &[1; 10], 0);
    }
}

pub(crate) fn dontwait(end: &mut End) {
    let mut bytes = [0; 20];
    let told = recv(end.fd, &mut bytes, libc::MSG_DONTWAIT);
    end.told("recv", told);
    let was = set_nonblocking(end.fd, true);
    let told = call::read(end.fd, &mut bytes);
    end.say("O_NONBLOCK was", was);
    end.told("read", told);
}

pub(crate) fn receive_timeout(end: &mut End) {
    let mut bytes = [0; 20];
    let told = call::set_receive_timeout(end.fd, 20);
    end.told("SO_RCVTIMEO", told);
    let told = call::read(end.fd, &mut bytes);
    end.told("read", told);
}

pub(crate) fn available(end: &mut End) {
    end.bring(1000);
    let told = ioctl_number(end.fd, libc::FIONREAD);
    end.say("FIONREAD", told);
    // The acknowledgement of TCP is not to be seen at once.
    let mut told = Err(0);
    for _ in 0..1000 {
        told = ioctl_number(end.fd, libc::TIOCOUTQ);
        if told == Ok(0) {
            break;
        }
        let _ = call!(poll(std::ptr::null_mut(), 0, 2));
    }
    // How much it is for unread bytes of a Unix socket depends on the kernel.
    end.say("SIOCOUTQ is 0", told == Ok(0));
}

pub(crate) fn options(end: &mut End) {
    let socket = libc::SOL_SOCKET;
    for name in [libc::SO_ERROR, libc::SO_TYPE, libc::SO_DOMAIN, libc::SO_ACCEPTCONN] {
        let told = option(end.fd, socket, name);
        end.say("getsockopt", told);
    }
    for (level, name) in [
        (libc::IPPROTO_TCP, libc::TCP_NODELAY),
        (socket, libc::SO_KEEPALIVE),
        (socket, libc::SO_RCVLOWAT),
        (socket, libc::SO_LINGER),
    ] {
        let one: c_int = 1;
        let told = set_option(end.fd, level, name, &one);
        end.told("setsockopt", told);
        let told = option(end.fd, level, name);
        end.say("getsockopt", told);
    }
    let mut info = [0u8; 1];
    let mut length = 1;
    let told = call!(getsockopt(
        end.fd,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        info.as_mut_ptr().cast(),
        &mut length
    ));
    end.told("TCP_INFO", told);
    end.say("state", info);
}

pub(crate) fn half_close(end: &mut End) {
    let mut bytes = [0; 20];
    if end.server {
        for _ in 0..2 {
            let told = call::read(end.fd, &mut bytes);
            end.told("read", told);
        }
        let told = poll(end.fd, libc::POLLIN | libc::POLLRDHUP | libc::POLLOUT, TIME);
        end.say("poll", told);
        let told = call::write(end.fd, b"still");
        end.told("write", told);
    } else {
        let told = call!(shutdown(end.fd, libc::SHUT_WR));
        end.told("shutdown", told);
        let told = send(end.fd, b"more", libc::MSG_NOSIGNAL);
        end.told("send", told);
        let told = recv(end.fd, &mut bytes[..5], libc::MSG_WAITALL);
        end.told("recv", told);
    }
    end.meet();
}

// spec: SOCK-26
pub(crate) fn close_with_unread_bytes(end: &mut End) {
    end.bring(10);
    close_server(end);
}

/// The writer has gone over to the kernel meanwhile.
pub(crate) fn close_with_unread_bytes_before_a_mark(end: &mut End) {
    end.bring(10);
    if !end.server {
        for _ in 0..2 {
            let epoll = call!(epoll_create1(libc::EPOLL_CLOEXEC)).expect("an epoll") as c_int;
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 1 };
            let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, end.fd, &mut event));
            end.told("EPOLL_CTL_ADD", told);
        }
        if family() == Family::Unix {
            let unread = ioctl_number(end.fd, libc::TIOCOUTQ);
            end.say("SIOCOUTQ is 0", unread == Ok(0));
        }
    }
    end.meet();
    close_server(end);
}

fn close_server(end: &mut End) {
    if end.server {
        let told = close(end.fd);
        end.told("close", told);
        end.meet();
    } else {
        end.meet();
        let mut bytes = [0; 4];
        for _ in 0..2 {
            let told = call::read(end.fd, &mut bytes);
            end.told("read", told);
        }
    }
}

pub(crate) fn linger_zero(end: &mut End) {
    if end.server {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let told = set_option(end.fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
        end.told("SO_LINGER", told);
        let _ = close(end.fd);
        end.meet();
    } else {
        end.meet();
        let told = poll(end.fd, libc::POLLIN, TIME);
        end.say("poll", told);
        let told = call::read(end.fd, &mut [0; 4]);
        end.told("read", told);
        let told = send(end.fd, b"vain", libc::MSG_NOSIGNAL);
        end.told("send", told);
    }
}

pub(crate) fn broken_pipe(end: &mut End) {
    if end.server {
        let told = call!(shutdown(end.fd, libc::SHUT_WR));
        end.told("shutdown", told);
        // A child dies by SIGPIPE.
        match fork() {
            Ok(0) => {
                let _ = call!(signal(libc::SIGPIPE, libc::SIG_DFL));
                let _ = call::write(end.fd, b"vain");
                exit_now(0)
            }
            child => {
                let told = child.and_then(wait_for);
                end.say("child", told);
            }
        }
        let told = send(end.fd, b"vain", libc::MSG_NOSIGNAL);
        end.told("send with MSG_NOSIGNAL", told);
    }
    end.meet();
}

// spec: SOCK-24
pub(crate) fn kill_of_a_process(end: &mut End) {
    if end.server {
        match fork() {
            Ok(0) => {
                let _ = call::write(end.fd, b"last");
                let _ = call!(kill(std::process::id() as i32, libc::SIGKILL));
                exit_now(0)
            }
            child => {
                let _ = close(end.fd);
                let told = child.and_then(wait_for);
                end.say("child", told);
            }
        }
    } else {
        let mut bytes = [0; 4];
        end.read_exactly(&mut bytes);
        end.say("bytes", bytes);
        let told = call::read(end.fd, &mut bytes);
        end.told("read", told);
    }
    end.meet();
}

pub(crate) fn epoll_kinds(end: &mut End) {
    end.bring(10);
    if !end.server {
        return;
    }
    let input = libc::EPOLLIN as u32;
    for (name, kind) in [
        ("level", 0),
        ("edge", libc::EPOLLET as u32),
        ("one-shot", libc::EPOLLONESHOT as u32),
        ("exclusive", libc::EPOLLEXCLUSIVE as u32),
        ("half-closed", libc::EPOLLRDHUP as u32),
    ] {
        let epoll = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
        let mut event = libc::epoll_event { events: input | kind, u64: 3 };
        let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, end.fd, &mut event));
        end.told(name, told);
        for time in [TIME, 0, 0] {
            let told = call!(epoll_wait(epoll, &mut event, 1, time));
            end.told("epoll_wait", told);
        }
        event.events = input;
        let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_MOD, end.fd, &mut event));
        end.told("EPOLL_CTL_MOD", told);
        let told = call!(epoll_wait(epoll, &mut event, 1, 0));
        end.told("epoll_wait", told);
        let told = poll(epoll, libc::POLLIN, 0);
        end.say("poll of the epoll descriptor", told);
        let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_DEL, end.fd, std::ptr::null_mut()));
        end.told("EPOLL_CTL_DEL", told);
        let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_DEL, end.fd, std::ptr::null_mut()));
        end.told("EPOLL_CTL_DEL again", told);
        let _ = close(epoll);
    }
}

pub(crate) fn nested_epoll(end: &mut End) {
    let [inner, outer] =
        [(); 2].map(|()| call!(epoll_create1(0)).expect("an epoll descriptor") as c_int);
    for (epoll, fd) in [(inner, end.fd), (outer, inner)] {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 3 };
        let told = call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event));
        end.told("EPOLL_CTL_ADD", told);
    }
    end.meet();
    if end.server {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        for epoll in [outer, inner] {
            let told = call!(epoll_wait(epoll, &mut event, 1, TIME));
            end.told("epoll_wait", told);
        }
    } else {
        let told = call::write(end.fd, b"wake");
        end.told("write", told);
    }
    end.meet();
}

/// Both names of an epoll tell the same, also when the first is closed.
pub(crate) fn duplicated_epoll(end: &mut End) {
    let first = call!(epoll_create1(0)).expect("an epoll descriptor") as c_int;
    let second = call!(dup(first)).expect("its duplicate") as c_int;
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 3 };
    let told = call!(epoll_ctl(second, libc::EPOLL_CTL_ADD, end.fd, &mut event));
    end.told("EPOLL_CTL_ADD", told);
    for epoll in [first, second, second] {
        end.meet();
        if end.server {
            let told = call!(epoll_wait(epoll, &mut event, 1, TIME));
            end.told("epoll_wait", told);
            let told = call::read(end.fd, &mut [0; 20]);
            end.told("read", told);
        } else {
            let told = call::write(end.fd, b"wake");
            end.told("write", told);
        }
        end.meet();
        if epoll == second {
            let _ = close(first);
        }
    }
}

pub(crate) fn dup2_onto_it(end: &mut End) {
    if end.server {
        let null = call!(open(c"/dev/null".as_ptr(), libc::O_RDONLY)).expect("a file") as c_int;
        let told = call!(dup2(null, end.fd));
        let same = told == Ok(end.fd as usize);
        end.say("dup2", same);
        let told = call::read(end.fd, &mut [0; 4]);
        end.told("read of the file", told);
        end.meet();
    } else {
        end.meet();
        let told = call::read(end.fd, &mut [0; 4]);
        end.told("read", told);
    }
}

// spec: SOCK-22
pub(crate) fn hundred_children(end: &mut End) {
    let mut bytes = [0; 3];
    for i in 0..100u8 {
        if end.server {
            match fork() {
                Ok(0) => {
                    end.read_exactly(&mut bytes);
                    exit_now(i32::from(call::write(end.fd, &bytes) != Ok(3)))
                }
                child => {
                    let told = child.and_then(wait_for);
                    end.say("child", told);
                }
            }
        } else {
            let _ = call::write(end.fd, &[i; 3]);
            end.read_exactly(&mut bytes);
            end.say("answer", bytes);
        }
    }
}

pub(crate) fn close_range_of_all(end: &mut End) {
    if end.server {
        let told = call!(close_range(3, 1023, 0));
        end.told("close_range", told);
        let told = call::read(end.fd, &mut [0; 4]);
        end.told("read", told);
        end.meet();
    } else {
        end.meet();
        let told = call::read(end.fd, &mut [0; 4]);
        end.told("read", told);
    }
}

/// A program that the library is not in takes over.
pub(crate) fn a_shell_answers(end: &mut End) {
    if end.server {
        match fork() {
            Ok(0) => {
                let _ = call!(dup2(end.fd, 0));
                let _ = call!(dup2(end.fd, 1));
                let shell = c"/bin/sh".as_ptr();
                let script = c"head -c 5".as_ptr();
                let none: *const i8 = std::ptr::null();
                let _ = call!(execl(shell, shell, c"-c".as_ptr(), script, none));
                exit_now(9)
            }
            child => {
                let told = child.and_then(wait_for);
                end.say("child", told);
            }
        }
    } else {
        let mut bytes = [0; 5];
        let told = call::write(end.fd, b"hello");
        end.told("write", told);
        end.read_exactly(&mut bytes);
        end.say("answer", bytes);
    }
    end.meet();
}

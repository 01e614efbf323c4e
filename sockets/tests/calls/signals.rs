//! Rows with signals: calls that they interrupt, masks of waits, and the kernel's own signals.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::common::call::{
    self, Outcome, ioctl_number, recv, select, send, set_nonblocking, set_option, signals,
};
use crate::common::shared::Shared;
use crate::end::{End, TIME};

/// The word that counts signals of a row.
const HEARD: usize = 8;

/// How many signals a call must survive.
const SEVERAL: u64 = 3;

static SHARED: OnceLock<Shared> = OnceLock::new();

/// Has a signal counted.
fn count(end: &End, signal: c_int, flags: c_int) {
    extern "C" fn hear(_: c_int) {
        if let Some(shared) = SHARED.get() {
            shared.add(HEARD, 1);
        }
    }
    SHARED.get_or_init(|| end.shared);
    let mut action = zeroed!(libc::sigaction);
    action.sa_sigaction = hear as *const () as usize;
    action.sa_flags = flags;
    call!(sigaction(signal, &action, std::ptr::null_mut())).expect("the handler is set");
}

/// Has a signal come after each time of this length, so that one comes while a call sleeps. Zero
/// ends that.
fn tick(milliseconds: i64) {
    let time = libc::timeval { tv_sec: 0, tv_usec: milliseconds * 1000 };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    call!(setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut())).expect("the timer is set");
}

type Wait = fn(c_int) -> Outcome;

fn into(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

fn readv(fd: c_int) -> Outcome {
    let mut bytes = [0; 20];
    call!(readv(fd, &into(&mut bytes), 1))
}

fn preadv2(fd: c_int) -> Outcome {
    let mut bytes = [0; 20];
    call!(preadv2(fd, &into(&mut bytes), 1, -1, 0))
}

fn with_message(call: impl FnOnce(&mut libc::mmsghdr) -> Outcome) -> Outcome {
    let mut bytes = [0; 20];
    let mut piece = into(&mut bytes);
    let mut message = zeroed!(libc::mmsghdr);
    (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (&mut piece, 1);
    call(&mut message)
}

fn recvmsg(fd: c_int) -> Outcome {
    with_message(|message| call!(recvmsg(fd, &mut message.msg_hdr, 0)))
}

fn recvmmsg(fd: c_int) -> Outcome {
    with_message(|message| call!(recvmmsg(fd, message, 1, 0, std::ptr::null_mut())))
}

/// Reads that wait.
const READS: &[(&str, Wait)] = &[
    ("read", |fd| call::read(fd, &mut [0; 20])),
    ("recv", |fd| recv(fd, &mut [0; 20], 0)),
    ("recv with MSG_WAITALL", |fd| recv(fd, &mut [0; 5], libc::MSG_WAITALL)),
    ("readv", readv),
    ("preadv2", preadv2),
    ("recvmsg", recvmsg),
    ("recvmmsg", recvmmsg),
];

/// Waits for bytes, with no signal blocked meanwhile.
const POLLS: &[(&str, Wait)] = &[
    ("ppoll", |fd| {
        let mut asked = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let time = libc::timespec { tv_sec: 5, tv_nsec: 0 };
        call!(ppoll(&mut asked, 1, &time, &signals(&[])))
    }),
    ("pselect", |fd| select(fd, 5, Some(&signals(&[])))),
    ("epoll_pwait", |fd| {
        in_epoll(fd, |epoll, event| call!(epoll_pwait(epoll, event, 1, TIME, &signals(&[]))))
    }),
    ("epoll_pwait2", |fd| {
        let time = libc::timespec { tv_sec: 5, tv_nsec: 0 };
        in_epoll(fd, |epoll, event| call!(epoll_pwait2(epoll, event, 1, &time, &signals(&[]))))
    }),
];

/// Waits for bytes.
const PLAIN_POLLS: &[(&str, Wait)] = &[
    ("poll", |fd| call::poll(fd, libc::POLLIN, TIME).map(|told| told as usize)),
    ("select", |fd| select(fd, 5, None)),
    ("epoll_wait", |fd| in_epoll(fd, |epoll, event| call!(epoll_wait(epoll, event, 1, TIME)))),
];

fn in_epoll(fd: c_int, wait: impl Fn(c_int, &mut libc::epoll_event) -> Outcome) -> Outcome {
    let epoll = call!(epoll_create1(0))? as c_int;
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 3 };
    call!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event))?;
    let told = wait(epoll, &mut event);
    call::close(epoll)?;
    told
}

pub(crate) fn interrupted_reads(end: &mut End) {
    if end.server {
        count(end, libc::SIGALRM, 0);
        tick(5);
        for (name, wait) in READS.iter().chain(PLAIN_POLLS).chain(POLLS) {
            let told = wait(end.fd);
            end.told(name, told);
        }
        tick(0);
    }
    end.meet();
}

/// Handlers with `SA_RESTART` do not end reads, but waits for several descriptors.
pub(crate) fn restarted_reads(end: &mut End) {
    if end.server {
        count(end, libc::SIGALRM, libc::SA_RESTART);
    }
    for (name, read) in READS {
        end.shared.set(HEARD, 0);
        end.meet();
        if end.server {
            tick(5);
            let told = read(end.fd);
            tick(0);
            end.told(name, told);
        } else {
            assert!(end.shared.wait(|shared| shared.get(HEARD) >= SEVERAL), "signals come");
            let _ = send(end.fd, b"bytes", 0);
        }
        end.meet();
    }
    if end.server {
        tick(5);
        for (name, wait) in PLAIN_POLLS.iter().chain(POLLS) {
            let told = wait(end.fd);
            end.told(name, told);
        }
        tick(0);
    }
    end.meet();
}

/// Writes until a call tells of an error.
fn write_until_error(end: &mut End) {
    let bytes = vec![0; 1 << 16];
    let told = std::iter::repeat_with(|| send(end.fd, &bytes, libc::MSG_NOSIGNAL));
    let error = told.filter_map(Result::err).next();
    end.told("write", Err(error.expect("one write fails")));
}

pub(crate) fn interrupted_writes(end: &mut End) {
    if !end.server {
        count(end, libc::SIGALRM, 0);
        tick(5);
        write_until_error(end);
        tick(0);
    }
    end.meet();
}

pub(crate) fn restarted_write(end: &mut End) {
    if end.server {
        assert!(end.shared.wait(|shared| shared.get(HEARD) >= SEVERAL), "signals come");
        let mut bytes = vec![0; 1 << 16];
        while call::read(end.fd, &mut bytes).is_ok_and(|count| count > 0) {}
    } else {
        let bytes = vec![0; 1 << 16];
        let _ = set_nonblocking(end.fd, true);
        while send(end.fd, &bytes, libc::MSG_NOSIGNAL).is_ok() {}
        let _ = set_nonblocking(end.fd, false);
        count(end, libc::SIGALRM, libc::SA_RESTART);
        tick(5);
        // A signal behind the first of its bytes ends a write early.
        let told = send(end.fd, &vec![0; 1 << 22], libc::MSG_NOSIGNAL);
        tick(0);
        end.told("write", told.map(|_| 0));
        let _ = call!(shutdown(end.fd, libc::SHUT_WR));
    }
    end.meet();
}

/// A call on a socket with a timeout does not go on after a signal, whatever its handler says.
pub(crate) fn timeouts_and_signals(end: &mut End) {
    if !end.server {
        let time = libc::timeval { tv_sec: 10, tv_usec: 0 };
        for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let told = set_option(end.fd, libc::SOL_SOCKET, name, &time);
            end.told("a timeout", told);
        }
        for flags in [0, libc::SA_RESTART] {
            count(end, libc::SIGALRM, flags);
            tick(5);
            for (name, read) in READS {
                let told = read(end.fd);
                end.told(name, told);
            }
            write_until_error(end);
            tick(0);
        }
    }
    end.meet();
}

pub(crate) fn send_timeout(end: &mut End) {
    if !end.server {
        let time = libc::timeval { tv_sec: 0, tv_usec: 20_000 };
        let told = set_option(end.fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time);
        end.told("SO_SNDTIMEO", told);
        write_until_error(end);
    }
    end.meet();
}

/// Changes whether a signal is blocked.
fn mask(how: c_int, signal: c_int) {
    call!(sigprocmask(how, &signals(&[signal]), std::ptr::null_mut())).expect("the mask is set");
}

/// Waits for bytes with a signal that only the mask of the wait lets through.
fn wait_with_masks(end: &mut End) {
    count(end, libc::SIGUSR1, libc::SA_RESTART);
    mask(libc::SIG_BLOCK, libc::SIGUSR1);
    for (name, wait) in POLLS {
        end.shared.set(HEARD, 0);
        call!(raise(libc::SIGUSR1)).expect("a signal");
        let told = wait(end.fd);
        end.told(name, told);
        let heard = end.shared.get(HEARD);
        end.say("signals", heard);
        mask(libc::SIG_UNBLOCK, libc::SIGUSR1);
        mask(libc::SIG_BLOCK, libc::SIGUSR1);
    }
}

pub(crate) fn masks_of_waits(end: &mut End) {
    if end.server {
        wait_with_masks(end);
    }
    end.meet();
}

/// Bytes that are there are told, and the signal stays for later.
pub(crate) fn masks_and_bytes(end: &mut End) {
    end.bring(10);
    if end.server {
        wait_with_masks(end);
    }
    end.meet();
}

/// Has the kernel signal what comes to a socket.
pub(crate) fn be_signalled(fd: c_int) {
    mask(libc::SIG_BLOCK, libc::SIGIO);
    call!(fcntl(fd, libc::F_SETOWN, std::process::id() as c_int)).expect("an owner");
    call!(fcntl(fd, libc::F_SETFL, libc::O_ASYNC)).expect("signals are asked for");
}

/// Waits for a signal of what has come.
pub(crate) fn hear(seconds: i64) -> Outcome {
    let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    call!(sigtimedwait(&signals(&[libc::SIGIO]), std::ptr::null_mut(), &time))
}

/// Waits for a signal, and reads what is there.
pub(crate) fn read_behind_signal(end: &mut End) {
    let told = hear(5);
    end.told("signal", told);
    let told = ioctl_number(end.fd, libc::FIONREAD);
    end.say("FIONREAD", told);
    let told = recv(end.fd, &mut [0; 20], libc::MSG_DONTWAIT);
    end.told("recv", told);
}

// spec: SOCK-67
/// The kernel signals bytes that come, and the end.
pub(crate) fn signal_of_bytes(end: &mut End) {
    if end.server {
        be_signalled(end.fd);
    }
    end.meet();
    for turn in 0..4 {
        if end.server {
            read_behind_signal(end);
        } else if turn < 3 {
            let told = call::write(end.fd, b"bytes");
            end.told("write", told);
        } else {
            let told = call!(shutdown(end.fd, libc::SHUT_WR));
            end.told("shutdown", told);
        }
        end.meet();
    }
}

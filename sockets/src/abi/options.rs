//! Options and controls of sockets.
use crate::stream::Stream;
use crate::sys::memory::{self, keeping_errno};
use crate::sys::real;
use crate::table;
use ayre::socket::Reason;
use libc::{c_int, c_ulong, c_void, socklen_t};

/// Options of a socket with which bytes must come by the kernel.
const PLAIN: &[(c_int, c_int)] = &[
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::SOL_SOCKET, libc::SO_PEEK_OFF),
    (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER),
    (libc::SOL_SOCKET, libc::SO_ZEROCOPY),
    (libc::SOL_SOCKET, libc::SO_TIMESTAMPING),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_PASSCRED),
    (libc::SOL_SOCKET, libc::SO_PASSSEC),
    (libc::SOL_SOCKET, SO_PASSPIDFD),
    (libc::SOL_SOCKET, SO_INQ),
    (libc::IPPROTO_TCP, libc::TCP_ULP),
    (libc::IPPROTO_TCP, libc::TCP_REPAIR),
    (libc::IPPROTO_TCP, libc::TCP_INQ),
];

/// Options of a Unix socket: each message brings the process that has sent it, or the number of
/// bytes behind it. libc has no names for them.
const SO_PASSPIDFD: c_int = 76;
const SO_INQ: c_int = 84;

/// Options of a socket's buffers.
const BUFFERS: &[c_int] = &[
    libc::SO_SNDBUF,
    libc::SO_SNDBUFFORCE,
    libc::SO_RCVBUF,
    libc::SO_RCVBUFFORCE,
    memory::SO_BUF_LOCK,
];

/// Options of a socket's times. The last two are those whose times have 64 bits on all machines.
const TIMES: &[c_int] = &[libc::SO_RCVTIMEO, libc::SO_SNDTIMEO, 66, 67];

/// setsockopt, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let is_plain = PLAIN.contains(&(level, name));
    if is_plain && let Some(stream) = table::stream(fd) {
        stream.be_plain(Reason::Option);
    }
    let is_time = level == libc::SOL_SOCKET && TIMES.contains(&name);
    let is_buffer = level == libc::SOL_SOCKET && BUFFERS.contains(&name);
    if is_plain || is_buffer || matches!(level, libc::IPPROTO_IP | libc::IPPROTO_IPV6) {
        table::end_new(fd);
    }
    // SAFETY: the C library's contract.
    let done = unsafe { real::setsockopt(fd, level, name, value, len) };
    if is_buffer && let Some(stream) = table::stream(fd) {
        keeping_errno(|| stream.keep_to_buffers(memory::borrowed(fd)));
    }
    if is_time {
        table::forget_waits(fd);
        if let Some(stream) = table::stream(fd) {
            stream.forget_patience();
        }
    }
    if (is_plain || is_buffer || is_time)
        && let Some(listener) = table::listener(fd)
    {
        if is_time {
            listener.may_have_times();
        } else {
            listener.has_set_options();
        }
    }
    done
}

/// Asks whether the next byte is behind the urgent one. libc has no name for it.
const SIOCATMARK: c_ulong = 0x8905;

/// Whether the next byte with the kernel is behind the urgent one. A read stops there.
pub(super) fn is_behind_urgent_byte(fd: c_int) -> bool {
    let mut answer: c_int = 0;
    // SAFETY: the kernel writes a number there.
    let asked = || unsafe { real::ioctl(fd, SIOCATMARK, (&raw mut answer).expose_provenance()) };
    keeping_errno(asked) == 0 && answer != 0
}

/// ioctl, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int {
    // SAFETY: the C library's contract.
    let done = unsafe { real::ioctl(fd, request, argument) };
    match request {
        libc::FIONBIO => table::forget_waits(fd),
        libc::FIOASYNC => table::end_new(fd),
        _ => {}
    }
    let Some(stream) = table::stream(fd).filter(|_| done == 0) else { return done };
    let answer = argument as *mut c_int;
    match request {
        libc::FIONREAD => {
            stream.follow_signal(fd);
            let (in_ring, may_be_kernel) = stream.connection().unread();
            // SAFETY: as above: the kernel has written there.
            unsafe { *answer = in_ring as c_int + if may_be_kernel { *answer } else { 0 } };
        }
        // A Unix socket's are with the kernel until the peer reads them; TCP's are with the peer.
        libc::TIOCOUTQ if stream.is_unix() => {
            // SAFETY: as above.
            unsafe { *answer += stream.connection().unread_by_peer() as c_int };
        }
        // SAFETY: as above.
        SIOCATMARK => unsafe {
            *answer = c_int::from(*answer != 0 && is_behind_ring(&stream));
        },
        libc::FIONBIO => stream.forget_patience(),
        libc::FIOASYNC => stream.be_signalled(),
        _ => {}
    }
    done
}

/// Whether all bytes of the ring that precede those with the kernel were read.
fn is_behind_ring(stream: &Stream) -> bool {
    stream.follow_urgent_byte();
    stream.connection().is_kernel_next()
}

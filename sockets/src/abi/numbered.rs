//! System calls by their numbers: those that this library has functions for are these functions.
use super::{addresses, bytes, copies, names as fds, options, set_up, waits};
use crate::names;
use crate::sys::real;
use libc::c_long;

/// Calls a function for a number that is in the table, with as many arguments as stand there.
macro_rules! by_number {
    ($number:expr; $($(#[$only:meta])? $known:ident $call:path: $($argument:ident)*;)*) => {
        match $number {
            $($(#[$only])? libc::$known => {
                // SAFETY: the program's; the kernel's call takes the same arguments as this one.
                return unsafe { $call($($argument as _),*) } as c_long;
            })*
            _ => {}
        }
    };
}

/// syscall, as the C library has it.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
#[rustfmt::skip]
pub(crate) unsafe extern "C" fn syscall(
    number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize,
) -> c_long {
    by_number! { number;
        SYS_accept4 set_up::accept4: a b c d;
        SYS_close fds::close: a;
        SYS_close_range fds::close_range: a b c;
        SYS_connect set_up::connect: a b c;
        SYS_dup fds::dup: a;
        SYS_dup3 fds::dup3: a b c;
        SYS_epoll_create1 waits::epoll_create1: a;
        SYS_epoll_ctl waits::epoll_ctl: a b c d;
        SYS_epoll_pwait waits::epoll_pwait: a b c d e;
        SYS_epoll_pwait2 waits::epoll_pwait2: a b c d e;
        SYS_fcntl fds::fcntl: a b c;
        SYS_getpeername addresses::getpeername: a b c;
        SYS_getsockname addresses::getsockname: a b c;
        SYS_ioctl options::ioctl: a b c;
        SYS_listen set_up::listen: a b;
        SYS_ppoll waits::ppoll: a b c d;
        SYS_preadv2 bytes::preadv2: a b c d f;
        SYS_pwritev2 bytes::pwritev2: a b c d f;
        SYS_read bytes::read: a b c;
        SYS_readv bytes::readv: a b c;
        SYS_recvfrom bytes::recvfrom: a b c d e f;
        SYS_recvmmsg bytes::recvmmsg: a b c d e;
        SYS_recvmsg bytes::recvmsg: a b c;
        SYS_sendfile copies::sendfile: a b c d;
        SYS_sendmmsg bytes::sendmmsg: a b c d;
        SYS_sendmsg bytes::sendmsg: a b c;
        SYS_sendto bytes::sendto: a b c d e f;
        SYS_setsockopt options::setsockopt: a b c d e;
        SYS_shutdown set_up::shutdown: a b;
        SYS_socket set_up::socket: a b c;
        SYS_splice copies::splice: a b c d e f;
        SYS_write bytes::write: a b c;
        SYS_writev bytes::writev: a b c;
        #[cfg(target_arch = "x86_64")] SYS_accept set_up::accept: a b c;
        #[cfg(target_arch = "x86_64")] SYS_dup2 fds::dup2: a b;
        #[cfg(target_arch = "x86_64")] SYS_epoll_create waits::epoll_create: a;
        #[cfg(target_arch = "x86_64")] SYS_epoll_wait waits::epoll_wait: a b c d;
        #[cfg(target_arch = "x86_64")] SYS_poll waits::poll: a b c;
        #[cfg(target_arch = "x86_64")] SYS_select waits::select: a b c d e;
    }
    match number {
        libc::SYS_execve | libc::SYS_execveat => names::before_exec(),
        libc::SYS_exit_group => names::ending(),
        libc::SYS_io_uring_setup => names::be_plain(),
        _ => {}
    }
    // SAFETY: the C library's contract.
    unsafe { real::syscall(number, a, b, c, d, e, f) }
}

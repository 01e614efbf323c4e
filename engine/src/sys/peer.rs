//! The process at the other end of a Unix socket, and its end.
use super::descriptor::Descriptor;
use super::{credentials, descriptor};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::c_int;

/// Since Linux 6.5; works also for a process whose number has no meaning here.
const SO_PEERPIDFD: c_int = 77;

/// A descriptor that is readable once the process has ended, even if another one, such as a child,
/// still holds its sockets. None for this process itself, and where the kernel hides the process or
/// refuses the call.
///
/// # Errors
/// `ESRCH` if the process has ended already.
// spec: LIFE-10
pub(crate) fn life(socket: BorrowedFd<'_>) -> Result<Option<Descriptor>, Errno> {
    let Ok(process) = credentials::of_peer(socket) else { return Ok(None) };
    if process.pid == std::process::id() {
        return Ok(None);
    }
    if let Some(life) = pidfd(socket) {
        return descriptor::placed(life).map(Some);
    }
    let number = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    match number.map(descriptor::process) {
        Some(Ok(life)) => Ok(Some(life)),
        Some(Err(Errno::SRCH)) => Err(Errno::SRCH),
        // Too many descriptors, a kernel before 5.3, or a filter of system calls.
        Some(Err(_)) | None => Ok(None),
    }
}

fn pidfd(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let (mut life, mut len): (RawFd, _) = (-1, size_of::<RawFd>() as libc::socklen_t);
    let (socket, level) = (socket.as_raw_fd(), libc::SOL_SOCKET);
    // SAFETY: the kernel writes no more than `len` bytes, which `life` has.
    let got = unsafe {
        let into = (&raw mut life).cast();
        libc::getsockopt(socket, level, SO_PEERPIDFD, into, &raw mut len)
    };
    if got != 0 || life < 0 {
        return None;
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else owns its number.
    Some(unsafe { OwnedFd::from_raw_fd(life) })
}

/// Whether the other end of a socket has data that it has not read. False where the system does not
/// report it.
pub(crate) fn has_unread(socket: BorrowedFd<'_>) -> bool {
    let mut unread: c_int = 0;
    // SAFETY: the kernel writes one number, of this type.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) };
    asked == 0 && unread > 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::os::unix::net::UnixStream;

    // spec: LIFE-10
    #[test]
    fn the_own_process_is_not_watched() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert!(life(one.as_fd()).unwrap().is_none());
    }
}

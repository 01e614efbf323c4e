//! What takes unsafe code, besides memory: descriptors that a process was started with, who is at
//! the other end of a socket, how often a thread has left its processor, claims on numbers of a
//! file, a library that is there only where the launcher's is, instructions that not every
//! processor has, trains of datagrams, and what a library owes to the program whose process it is
//! in: threads without signals, descriptors that are none of the standard streams, children that
//! have a library of their own, and limits that are errors and do not end the process.
pub mod bell;
pub(crate) mod claim;
mod crc;
pub(crate) mod credentials;
pub mod descriptor;
pub mod fork;
pub(crate) mod longest_file;
pub(crate) mod peer;
pub(crate) mod pmix;
pub(crate) mod switches;
pub mod thread;
pub(crate) mod train;

pub(crate) use self::crc::crc32c;
use self::descriptor::Descriptor;
use rustix::fd::{FromRawFd, OwnedFd, RawFd};
use rustix::fs::{FileType, fstat};

/// A copy of a socket that this process was started with; none if the number is not one's.
pub(crate) fn inherited_socket(number: RawFd) -> Option<Descriptor> {
    // SAFETY: fcntl takes any number, and F_DUPFD_CLOEXEC touches no memory.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, descriptor::FIRST) };
    if copy < 0 {
        return None;
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has its number.
    let copy = Descriptor::from(unsafe { OwnedFd::from_raw_fd(copy) });
    let stat = fstat(&copy).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::Socket).then_some(copy)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_sockets_are_copied() {
        let (socket, _other) = UnixStream::pair().unwrap();
        assert!(inherited_socket(socket.as_raw_fd()).is_some());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(inherited_socket(file.as_raw_fd()).is_none());
        assert!(inherited_socket(-1).is_none() && inherited_socket(RawFd::MAX).is_none());
    }
}

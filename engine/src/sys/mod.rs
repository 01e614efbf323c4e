//! Unsafe code apart from shared memory.
//!
//! | for | |
//! |---|---|
//! | connections | credentials and ends of peers, claims on a file, trains of datagrams |
//! | launchers | sockets that a process was started with, the PMIx library |
//! | speed | special instructions, counts of cycles and of context switches |
//! | the program whose process it is | descriptors, threads, forks and limits without surprises |
pub mod bell;
pub(crate) mod claim;
#[cfg(feature = "net")]
mod crc;
pub(crate) mod credentials;
pub(crate) mod cycles;
pub mod descriptor;
pub(crate) mod errno;
pub mod fork;
pub mod hidden;
pub(crate) mod longest_file;
pub(crate) mod peer;
#[cfg(feature = "job")]
pub(crate) mod pmix;
pub(crate) mod switches;
pub mod thread;
#[cfg(feature = "net")]
pub(crate) mod train;
pub(crate) mod unshared;

#[cfg(feature = "net")]
pub(crate) use self::crc::crc32c;
use self::descriptor::Descriptor;
use rustix::fd::{FromRawFd, OwnedFd, RawFd};
use rustix::fs::{FileType, fstat};

/// A copy of a socket that this process was started with; None if the number is not a socket's.
pub(crate) fn inherited_socket(number: RawFd) -> Option<Descriptor> {
    // SAFETY: fcntl takes any number, and F_DUPFD_CLOEXEC accesses no memory.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, descriptor::FIRST) };
    if copy < 0 {
        return None;
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else owns its number.
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

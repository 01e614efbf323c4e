//! Errors of system calls that are made without rustix.
use rustix::io::Errno;

/// The error of this thread's last call.
#[cold]
pub(crate) fn last() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

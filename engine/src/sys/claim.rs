//! Claims on numbers of a file, which end with the process that made them, however it ends: open
//! file description locks, one byte a number.
use super::descriptor;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::c_int;

/// The same file once more: claims belong to what is opened here.
pub(crate) fn reopen(file: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    descriptor::open(path, OFlags::RDWR, Mode::empty())
}

/// Claims a number. An error where another one has it.
pub(crate) fn claim(file: &OwnedFd, number: u64) -> Result<(), Errno> {
    byte_lock(file, libc::F_OFD_SETLK, number).map(|_| ())
}

/// Whether somebody else claims a number.
pub(crate) fn is_claimed(file: &OwnedFd, number: u64) -> Result<bool, Errno> {
    let kind = byte_lock(file, libc::F_OFD_GETLK, number)?;
    Ok(kind != libc::F_UNLCK as i16)
}

fn byte_lock(file: &OwnedFd, command: c_int, number: u64) -> Result<i16, Errno> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: i64::try_from(number).map_err(|_| Errno::INVAL)?,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the command reads and writes one flock.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) };
    if done == -1 { Err(errno()) } else { Ok(lock.l_type) }
}

fn errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::mem::map::{Pages, memory_file};

    #[test]
    fn a_claim_ends_with_what_it_was_made_through() {
        let file = memory_file(4096, Pages::Ordinary).unwrap();
        let [first, second] = [(); 2].map(|()| reopen(file.as_fd()).unwrap());
        claim(&first, 7).unwrap();
        assert_eq!(is_claimed(&second, 7), Ok(true));
        assert_eq!(is_claimed(&second, 8), Ok(false));
        assert_eq!(claim(&second, 7), Err(Errno::AGAIN));
        drop(first);
        assert_eq!(is_claimed(&second, 7), Ok(false));
    }
}

//! Claims on numbers of a file. A claim ends with the process that made it, even if a forked child
//! lives on. Claims are open file description locks, one byte for each number, of a file that no
//! child has.
use super::descriptor;
use super::unshared::Unshared;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::c_int;

/// The claims of this process at one file.
#[derive(Debug)]
pub(crate) struct Claims(Unshared);

impl Claims {
    /// Opens the file; there are no claims yet.
    pub(crate) fn at(file: BorrowedFd<'_>) -> Result<Self, Errno> {
        // Claims belong to the open file that is made here.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Unshared::open(|| descriptor::open(path, OFlags::RDWR, Mode::empty())).map(Self)
    }

    /// Claims a number. An error where another process has it.
    pub(crate) fn claim(&self, number: u64) -> Result<(), Errno> {
        self.lock(libc::F_OFD_SETLK, number).map(|_| ())
    }

    /// Whether another process claims a number. An error in a forked child, which does not have the
    /// claims.
    pub(crate) fn are_beside(&self, number: u64) -> Result<bool, Errno> {
        let kind = self.lock(libc::F_OFD_GETLK, number)?;
        Ok(kind != libc::F_UNLCK as i16)
    }

    fn lock(&self, command: c_int, number: u64) -> Result<i16, Errno> {
        byte_lock(self.0.get().ok_or(Errno::BADF)?, command, number)
    }
}

fn byte_lock(file: BorrowedFd<'_>, command: c_int, number: u64) -> Result<i16, Errno> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: i64::try_from(number).map_err(|_| Errno::INVAL)?,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the command reads and writes one flock.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if done == -1 { Err(errno()) } else { Ok(lock.l_type) }
}

fn errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::mem::file::{Pages, memory_file};
    use rustix::fd::AsFd;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_claim_ends_with_its_file_descriptor() {
        let file = memory_file(4096, Pages::Ordinary).unwrap();
        let [first, second] = [(); 2].map(|()| Claims::at(file.as_fd()).unwrap());
        first.claim(7).unwrap();
        assert_eq!(second.are_beside(7), Ok(true));
        assert_eq!(second.are_beside(8), Ok(false));
        assert_eq!(second.claim(7), Err(Errno::AGAIN));
        drop(first);
        assert_eq!(second.are_beside(7), Ok(false));
    }

    /// Runs `f` in a forked child, which ends when `f` returns; returns the child's number.
    fn fork(f: impl FnOnce()) -> libc::pid_t {
        // SAFETY: what the child does takes no lock but this module's, and the allocator's.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            f();
            // SAFETY: it ends the child at once.
            unsafe { libc::_exit(0) };
        }
        child
    }

    fn reap(child: libc::pid_t) {
        // SAFETY: it is our child, of which no status is wanted.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    }

    // spec: DEP-26
    #[test]
    fn a_claim_ends_with_its_process_though_a_child_of_that_lives_on() {
        let file = memory_file(4096, Pages::Ordinary).unwrap();
        let asks = Claims::at(file.as_fd()).unwrap();
        // The claimer and its heir report here, and its end ends the heir.
        let (test, theirs) = UnixStream::pair().unwrap();
        let claimer = fork(|| {
            let claims = Claims::at(file.as_fd()).unwrap();
            claims.claim(7).unwrap();
            let until_the_test_hangs_up = || {
                // SAFETY: the number is this process's own, and nobody here uses it again.
                unsafe { libc::close(test.as_raw_fd()) };
                _ = (&theirs).read(&mut [0; 1]);
            };
            fork(|| {
                assert!(claims.are_beside(7).is_err(), "they are the parent's");
                (&theirs).write_all(&[2]).unwrap();
                until_the_test_hangs_up();
            });
            (&theirs).write_all(&[1]).unwrap();
            until_the_test_hangs_up();
        });
        drop(theirs);
        let mut both = [0; 2];
        (&test).read_exact(&mut both).unwrap();
        assert_eq!(both[0] + both[1], 3, "claimed, and inherited");
        assert_eq!(asks.are_beside(7), Ok(true), "its process is there");
        // SAFETY: it is our child, which nobody has reaped.
        assert_eq!(unsafe { libc::kill(claimer, libc::SIGKILL) }, 0);
        reap(claimer);
        assert_eq!(asks.are_beside(7), Ok(false), "the child has none");
    }
}

//! How long calls wait at a socket. The kernel is asked once, until the program changes the answer,
//! and not at all of a socket that is as this process has made or accepted it.
use crate::stream::Direction;
use crate::table::{self, Waits};
use crate::waiter::Until;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The answers of the kernel for each direction, as words.
#[derive(Debug, Default)]
pub(crate) struct Patience([AtomicU32; 2]);

/// In a word: the answer, 0 where there is none; then how often answers were forgotten, so that no
/// thread keeps one that it has got before.
const ANSWER: u32 = 3;
const BLOCKS: u32 = 1;
const NEVER_WAITS: u32 = 2;
const FORGOTTEN: u32 = ANSWER + 1;
/// Others may change the answer unseen.
const IS_SHARED: u32 = 1 << 31;

impl Patience {
    /// When a wait that begins now ends at the latest.
    ///
    /// # Errors
    /// `EAGAIN` where the socket does not block.
    pub(crate) fn until(
        &self,
        socket: BorrowedFd<'_>,
        direction: Direction,
    ) -> Result<Until, Errno> {
        let word = &self.0[direction as usize];
        let found = word.load(Ordering::Acquire);
        match found & (ANSWER | IS_SHARED) {
            BLOCKS => return Ok(Until::Never),
            NEVER_WAITS => return Err(Errno::AGAIN),
            _ => {}
        }
        let known =
            if found & IS_SHARED == 0 { table::waits(socket.as_raw_fd()) } else { Waits::Unknown };
        let told = match known {
            Waits::Forever => Ok(Until::Never),
            Waits::Never => Err(Errno::AGAIN),
            Waits::Unknown => ask(socket, direction),
        };
        let answer = match told {
            Ok(Until::Never) => BLOCKS,
            Err(Errno::AGAIN) => NEVER_WAITS,
            _ => 0,
        };
        if found & IS_SHARED == 0 {
            let known = found & !ANSWER | answer;
            let _ = word.compare_exchange(found, known, Ordering::Relaxed, Ordering::Relaxed);
        }
        told
    }

    /// The program has changed how calls wait.
    pub(crate) fn forget(&self) {
        let forgotten = |word| Some(((word & !ANSWER) + FORGOTTEN) & !IS_SHARED | word & IS_SHARED);
        for word in &self.0 {
            let _ = word.fetch_update(Ordering::Release, Ordering::Relaxed, forgotten);
        }
    }

    /// Another process, or the kernel for one, may have the socket: it is asked each time.
    pub(crate) fn share(&self) {
        for word in &self.0 {
            word.fetch_or(IS_SHARED, Ordering::Release);
        }
    }
}

fn ask(socket: BorrowedFd<'_>, direction: Direction) -> Result<Until, Errno> {
    if fcntl_getfl(socket).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)) {
        return Err(Errno::AGAIN);
    }
    let timeout = sockopt::Timeout::Recv;
    let timeout = if direction == Direction::In { timeout } else { sockopt::Timeout::Send };
    Ok(Until::after(sockopt::socket_timeout(socket, timeout).ok().flatten()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_answer_holds_until_it_is_forgotten() {
        let (near, _far) = UnixStream::pair().unwrap();
        let patience = Patience::default();
        let told = || patience.until(near.as_fd(), Direction::In);
        assert_eq!(told(), Ok(Until::Never));
        near.set_nonblocking(true).unwrap();
        assert_eq!(told(), Ok(Until::Never), "the kernel is not asked");
        patience.forget();
        assert_eq!(told(), Err(Errno::AGAIN));
        near.set_nonblocking(false).unwrap();
        assert_eq!(told(), Err(Errno::AGAIN), "nor now");
        patience.share();
        assert_eq!(told(), Ok(Until::Never), "each time from now on");
        near.set_nonblocking(true).unwrap();
        assert_eq!(told(), Err(Errno::AGAIN));
        patience.forget();
        near.set_nonblocking(false).unwrap();
        assert_eq!(told(), Ok(Until::Never), "still");
    }

    #[test]
    fn a_limit_of_time_is_asked_for_each_time() {
        let (near, _far) = UnixStream::pair().unwrap();
        let patience = Patience::default();
        let second = std::time::Duration::from_secs(1);
        near.set_write_timeout(Some(second)).unwrap();
        assert!(matches!(patience.until(near.as_fd(), Direction::Out), Ok(Until::At(_))));
        near.set_write_timeout(None).unwrap();
        assert_eq!(patience.until(near.as_fd(), Direction::Out), Ok(Until::Never));
    }
}

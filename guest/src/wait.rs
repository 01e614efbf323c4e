//! Waiting by a file descriptor, for threads of the program and for our own.
//!
//! A waiter first looks, then arms the object, which looks once more under its lock, and only then
//! sleeps. A thread that adds something to an armed object rings. So nothing is missed, and nobody
//! rings without a sleeper.
//!
//! Of several threads that sleep at one bell, one sleeps on its descriptor, and the others until
//! that one has woken. It calms the bell for all, and all look again.

use ayre::guest::bell::Bell;
use ayre::guest::descriptor::{self, Descriptor};
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::io::Errno;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A wait object: a bell, and what gathers it with the descriptors of the engine. The program gets
/// the latter.
#[derive(Debug)]
pub struct Wait {
    gatherer: Descriptor,
    bell: Bell,
    sleepers: Mutex<Sleepers>,
    is_over: Condvar,
}

#[derive(Debug, Default)]
struct Sleepers {
    /// A thread sleeps on the descriptor.
    has_watch: bool,
    /// Watches that are over.
    over: u64,
}

impl Wait {
    /// # Errors
    /// The system's where it refuses descriptors.
    pub fn new() -> Result<Self, Errno> {
        let gatherer = descriptor::epoll()?;
        let (sleepers, is_over) = (Mutex::default(), Condvar::new());
        let wait = Self { gatherer, bell: Bell::new()?, sleepers, is_over };
        wait.watch(wait.bell.as_fd())?;
        Ok(wait)
    }

    /// The descriptor to poll.
    pub fn descriptor(&self) -> RawFd {
        self.gatherer.as_raw_fd()
    }

    /// Wakes those who sleep.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// Whether those who sleep can be woken: not where the program has closed what wakes them.
    // spec: LIFE-40
    pub fn can_ring(&self) -> bool {
        self.bell.is_own()
    }

    /// Forgets that it was rung, unless a thread is about to wake by it.
    pub fn calm(&self) {
        let sleepers = self.sleepers();
        self.bell.hush();
        if sleepers.has_watch {
            self.ring();
        }
    }

    /// The value for [`Self::sleep`], taken before the object is armed.
    pub fn watches_over(&self) -> u64 {
        self.sleepers().over
    }

    /// Wakes sleepers for a descriptor of the engine's as well.
    ///
    /// # Errors
    /// The system's where it refuses to watch it.
    pub fn watch(&self, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
        let data = epoll::EventData::new_u64(0);
        match epoll::add(&self.gatherer, descriptor, data, epoll::EventFlags::IN) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts the descriptor into an epoll of the program's, with data for its events.
    ///
    /// # Errors
    /// The system's where it refuses that.
    pub fn join(&self, epoll: BorrowedFd<'_>, data: u64) -> Result<(), Errno> {
        let data = epoll::EventData::new_u64(data);
        epoll::add(epoll, &self.gatherer, data, epoll::EventFlags::IN)
    }

    /// No longer wakes them for it.
    pub fn unwatch(&self, descriptor: BorrowedFd<'_>) {
        // It is not there where `watch` was refused.
        let _ = epoll::delete(&self.gatherer, descriptor);
    }

    /// Sleeps, unless a watch has ended since `over` was taken; false when a signal has come.
    pub fn sleep(&self, over: u64, deadline: Option<Instant>) -> bool {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut sleepers = self.sleepers();
        if sleepers.over != over {
            return true;
        }
        if sleepers.has_watch {
            let left = left.unwrap_or(Duration::MAX);
            drop(self.is_over.wait_timeout(sleepers, left));
            return true;
        }
        sleepers.has_watch = true;
        drop(sleepers);
        let outcome = self.sleep_on_descriptor(left);
        let mut sleepers = self.sleepers();
        self.bell.hush();
        sleepers.has_watch = false;
        sleepers.over += 1;
        self.is_over.notify_all();
        outcome != Err(Errno::INTR)
    }

    fn sleep_on_descriptor(&self, left: Option<Duration>) -> Result<(), Errno> {
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        descriptor::wait_at(&mut [PollFd::new(&self.gatherer, PollFlags::IN)], timeout.as_ref())
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(wait: &Wait) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&wait.gatherer, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&at_once)).unwrap() > 0
    }

    #[test]
    fn a_ring_before_the_sleep_ends_it_and_is_forgotten_then() {
        let wait = Wait::new().unwrap();
        let over = wait.watches_over();
        wait.ring();
        assert!(is_readable(&wait));
        assert!(wait.sleep(over, None));
        assert!(!is_readable(&wait));
        // A thread that has looked before that watch ended looks again.
        assert!(wait.sleep(over, None));
        assert_eq!(wait.watches_over(), over + 1);
    }

    #[test]
    fn a_ring_is_calmed_where_nobody_sleeps() {
        let wait = Wait::new().unwrap();
        wait.ring();
        wait.calm();
        assert!(!is_readable(&wait));
    }

    #[test]
    fn descriptors_of_others_wake_while_they_are_watched() {
        let (wait, other) = (Wait::new().unwrap(), Bell::new().unwrap());
        wait.watch(other.as_fd()).unwrap();
        wait.watch(other.as_fd()).unwrap();
        other.ring();
        assert!(is_readable(&wait));
        wait.unwatch(other.as_fd());
        assert!(!is_readable(&wait));
    }
}

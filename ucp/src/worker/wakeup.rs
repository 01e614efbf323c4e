//! Sleeping until something comes.

use super::Worker;
use super::state::State;
use ayre::endpoint::raw::RawEndpoint;
use ayre::error::SetupError;
use ayre_guest::wait::Wait;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The way by which a worker's sleepers are woken.
#[derive(Debug)]
pub(super) struct Wakeup {
    wait: Wait,
    /// Somebody has rung since a sleeper announced itself last.
    is_rung: AtomicBool,
    /// The program watches it by an epoll of its own.
    is_gathered: bool,
}

impl Wakeup {
    /// # Errors
    /// The system's where it refuses descriptors.
    pub(super) fn new(endpoint: &RawEndpoint) -> Result<Self, Errno> {
        let wait = Wait::new()?;
        wait.watch(endpoint.as_fd())?;
        Ok(Self { wait, is_rung: AtomicBool::new(false), is_gathered: false })
    }
}

impl Worker {
    /// The descriptor that can be read when something has come for a sleeper; none without
    /// wake-up, and where an epoll of the program's has it.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        let wakeup = self.wakeup.as_ref().filter(|wakeup| !wakeup.is_gathered)?;
        Some(wakeup.wait.descriptor())
    }

    /// Puts the descriptor into an epoll of the program's, with data for its events.
    ///
    /// # Errors
    /// The system's where it refuses that.
    pub(crate) fn gather(&mut self, epoll: BorrowedFd<'_>, user: u64) -> Result<(), SetupError> {
        let Some(wakeup) = &mut self.wakeup else { return Ok(()) };
        wakeup
            .wait
            .join(epoll, user)
            .map_err(|errno| SetupError::Os { call: "epoll_ctl", errno })?;
        wakeup.is_gathered = true;
        Ok(())
    }

    /// Whether the program has asked for it.
    pub(crate) fn has_wakeup(&self) -> bool {
        self.wakeup.is_some()
    }

    /// Announces a sleeper. False where it must not sleep, and where there is no wake-up.
    pub(crate) fn arm(&self) -> bool {
        let Some(wakeup) = &self.wakeup else { return false };
        if wakeup.is_rung.swap(false, Ordering::AcqRel) {
            wakeup.wait.calm();
            return false;
        }
        self.with(State::arm)
    }

    /// Wakes a sleeper, or has the next one stay awake. Any thread may do that.
    pub(crate) fn signal(&self) {
        if let Some(wakeup) = &self.wakeup {
            wakeup.is_rung.store(true, Ordering::Release);
            wakeup.wait.ring();
        }
    }

    /// Sleeps until something comes, unless something has.
    pub(crate) fn sleep(&self) {
        let Some(wakeup) = &self.wakeup else { return };
        let over = wakeup.wait.watches_over();
        if self.arm() {
            wakeup.wait.sleep(over, None);
        }
    }
}

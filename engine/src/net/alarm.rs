//! Wakes a port whose links have something to do by the clock, where it is the program that sleeps:
//! it waits for the port's descriptor, and knows of no deadline.
use crate::clock;
use crate::error::SetupError;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use std::time::Instant;

/// A descriptor that can be read once a time has come.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: Descriptor,
    is_set: bool,
}

impl Alarm {
    pub(crate) fn new() -> Result<Self, SetupError> {
        let timer = descriptor::timer().map_err(SetupError::os("timerfd_create"))?;
        Ok(Self { timer, is_set: false })
    }

    /// The descriptor to sleep on.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Another descriptor of it.
    pub(crate) fn copy(&self) -> Result<Descriptor, SetupError> {
        descriptor::copy(&self.timer).map_err(SetupError::os("fcntl"))
    }

    /// Whether its time has come since it was set, or this was asked.
    pub(crate) fn has_come(&self) -> bool {
        rustix::io::read(&self.timer, &mut [0; 8]).is_ok()
    }

    /// Sets it to this time, or to none.
    pub(crate) fn set(&mut self, at: Option<Instant>) {
        if at.is_none() && !self.is_set {
            return;
        }
        const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = match at.map(clock::left_until) {
            // It is over: 0 would be no time at all.
            Some(NONE) => Timespec { tv_nsec: 1, ..NONE },
            left => left.unwrap_or(NONE),
        };
        let it_interval = NONE;
        let timer = Itimerspec { it_interval, it_value };
        let set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
        debug_assert!(set.is_ok(), "a timer of ours");
        self.is_set = at.is_some();
    }
}

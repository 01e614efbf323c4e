//! Wakes a port whose links have something to do by the clock, where it is the program that sleeps:
//! it waits for the port's descriptor, and knows of no deadline.
use crate::clock;
use crate::error::SetupError;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use std::time::Instant;

/// No time.
const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A descriptor that can be read once a time has come.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: Descriptor,
    set_to: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> Result<Self, SetupError> {
        let timer = descriptor::timer().map_err(SetupError::os("timerfd_create"))?;
        Ok(Self { timer, set_to: None })
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
        if at.is_none() && self.set_to.is_none() {
            return;
        }
        let it_value = match at.map(clock::left_until) {
            // It is over: 0 would be no time at all.
            Some(NONE) => Timespec { tv_nsec: 1, ..NONE },
            left => left.unwrap_or(NONE),
        };
        let it_interval = NONE;
        let timer = Itimerspec { it_interval, it_value };
        // A program that has closed the descriptor hears of that by its own calls.
        // spec: LIFE-40
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
        self.set_to = at;
    }

    /// Has it come by this time at the latest, if there is one. It stays set to a time before that:
    /// to set it is slow, and those that sleep for each message would do so twice for each.
    pub(crate) fn come_by(&mut self, at: Option<Instant>) {
        let is_ahead = |set: &Instant| clock::left_until(*set) != NONE;
        let comes_before = |set: Instant| at.is_none_or(|at| set <= at);
        if !self.set_to.filter(is_ahead).is_some_and(comes_before) {
            self.set(at);
        }
    }
}

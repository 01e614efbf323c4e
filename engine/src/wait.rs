//! Blocking waits: poll, then yield, then sleep until a sender kicks.
//!
//! A sleeper says so in its page, fences, looks once more, and sleeps in epoll on its bells and
//! control channels; senders look at the page after publishing. Awake ports are never kicked.
use crate::error::SetupError;
use crate::mem::fence;
use crate::mem::page::Sleeper;
use crate::port::Port;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Polls between two looks at the clock, which cost as much as several polls.
const ROUNDS_PER_CLOCK: u32 = 256;
const BELL: u64 = 0;
const CONTROL: u64 = 1;

/// What a port sleeps on.
#[derive(Debug)]
pub(crate) struct Sleep {
    epoll: OwnedFd,
}

/// Makes a bell: an eventfd that a peer rings.
pub(crate) fn bell() -> Result<OwnedFd, SetupError> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(SetupError::os("eventfd"))
}

impl Sleep {
    pub(crate) fn new() -> Result<Self, SetupError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(SetupError::os("epoll_create"))?;
        Ok(Self { epoll })
    }

    /// A control channel: stays readable while a packet, or the peer's end, is to be seen.
    pub(crate) fn watch(&self, fd: BorrowedFd<'_>) -> Result<(), SetupError> {
        self.add(fd, CONTROL, EventFlags::IN)
    }

    /// A bell: each ring counts once, so that nobody needs to take it back.
    pub(crate) fn watch_bell(&self, fd: BorrowedFd<'_>) -> Result<(), SetupError> {
        self.add(fd, BELL, EventFlags::IN | EventFlags::ET)
    }

    fn add(&self, fd: BorrowedFd<'_>, what: u64, flags: EventFlags) -> Result<(), SetupError> {
        epoll::add(&self.epoll, fd, EventData::new_u64(what), flags)
            .map_err(SetupError::os("epoll_ctl"))
    }

    pub(crate) fn forget(&self, fd: BorrowedFd<'_>) {
        let removed = epoll::delete(&self.epoll, fd);
        debug_assert!(removed.is_ok(), "what was watched can be forgotten");
    }

    /// Sleeps until something happens or the deadline has come. Returns whether a control channel
    /// is among what happened.
    // spec: WAIT-4
    pub(crate) fn sleep(&self, deadline: Option<Instant>) -> bool {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().min(1 << 40) as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        let mut events = [MaybeUninit::uninit(); 16];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => events.iter().any(|event| event.data.u64() == CONTROL),
            Err(Errno::INTR) => false,
            Err(errno) => unreachable!("epoll_wait on our own epoll: {errno}"),
        }
    }
}

impl Port {
    /// Polls `attempt` until it gives something or the deadline has come, sleeping where that takes
    /// long. Makes progress for peers all the while.
    // spec: WAIT-1
    pub(crate) fn wait_for<T>(
        &mut self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let found = self.wait_awake(deadline, &mut attempt);
        found.or_else(|| self.wait_asleep(deadline, attempt))
    }

    /// The first part of a wait: polls, then polls and yields, then gives up.
    pub(crate) fn wait_awake<T>(
        &mut self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let spin = self.config.spin;
        for round in 0..spin.polls.saturating_add(spin.yields) {
            if let Some(value) = attempt(self) {
                return Some(value);
            }
            self.progress_lanes();
            if round.is_multiple_of(ROUNDS_PER_CLOCK) && is_over(deadline) {
                return None;
            }
            if round < spin.polls {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        None
    }

    /// Waits for something that comes by a control channel, where polling lanes would be in vain.
    pub(crate) fn wait_for_control<T>(
        &mut self,
        deadline: Instant,
        attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.wait_asleep(Some(deadline), attempt)
    }

    /// The second part of a wait: sleeps between attempts. What comes wakes it, so an attempt must
    /// look at everything that it waits for.
    pub(crate) fn wait_asleep<T>(
        &mut self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        loop {
            self.service_control();
            if let Some(value) = attempt(self) {
                return Some(value);
            }
            if is_over(deadline) {
                return None;
            }
            if let Some(value) = self.sleep_unless(deadline, &mut attempt) {
                return Some(value);
            }
        }
    }

    /// Sleeps, unless `attempt` gives something once everybody can see that we are about to.
    // spec: WAIT-3, LANE-12
    fn sleep_unless<T>(
        &mut self,
        deadline: Option<Instant>,
        attempt: &mut impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.announce_sleep(true);
        fence::heavy();
        let progressed = self.progress_lanes();
        let found = attempt(self);
        if found.is_none() && !progressed {
            self.sleep.sleep(deadline);
        }
        self.announce_sleep(false);
        found
    }

    /// The port's thread serves mediated commands too, unless an engine thread does.
    fn announce_sleep(&self, asleep: bool) {
        self.page.set_asleep(Sleeper::Port, asleep);
        if self.engine.is_none() {
            self.page.set_asleep(Sleeper::Engine, asleep);
        }
    }
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|at| Instant::now() >= at)
}

/// A timeout as a deadline; one too far to express is none.
pub(crate) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

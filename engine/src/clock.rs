//! The system's clock, and waiting by it. Within the engine only [`crate::net::clock`] and the
//! parts outside of ports (jobs, the log) call it: a port has a clock of its own, which a simulated
//! network can replace.
use crate::error::SetupError;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant, SystemTime};

/// The time now.
#[inline]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time now in nanoseconds, on the clock of [`Instant`]. Arithmetic on an [`Instant`] takes
/// longer.
#[inline]
pub(crate) fn nanos() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

/// The time since the beginning of 1970 (UTC).
pub(crate) fn since_1970() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The time left until a deadline, in the form that system calls take.
pub(crate) fn left_until(deadline: Instant) -> Timespec {
    let left = deadline.saturating_duration_since(now());
    Timespec { tv_sec: left.as_secs().min(1 << 40) as i64, tv_nsec: i64::from(left.subsec_nanos()) }
}

/// A deadline that has passed already, for a poll that does not wait.
pub(crate) fn at_once() -> Option<Instant> {
    Some(now())
}

/// Waits until one of the descriptors is ready, or until the deadline, if there is one.
pub(crate) fn poll_until(
    fds: &mut [PollFd<'_>],
    deadline: Option<Instant>,
) -> Result<(), SetupError> {
    loop {
        match poll(fds, deadline.map(left_until).as_ref()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SetupError::Os { call: "poll", errno }),
        }
    }
}

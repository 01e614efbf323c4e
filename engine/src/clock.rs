//! Waiting until a time.
use crate::error::SetupError;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use std::time::Instant;

/// Waits until something happens to one of the descriptors, or until `deadline`.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], deadline: Instant) -> Result<(), SetupError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().min(1 << 40) as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(fds, Some(&timeout)) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SetupError::Os { call: "poll", errno }),
        }
    }
}

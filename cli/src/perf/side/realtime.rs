//! Puts the process in a realtime scheduling class, which nothing else that runs can interrupt.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Microseconds that a realtime process may compute without sleeping before the kernel kills it:
/// without this limit, a rank that waits for a dead one holds its core for ever.
const LONGEST: u64 = 12_000_000;

/// Moves the calling thread to `SCHED_FIFO` at a low priority. Needs root or CAP_SYS_NICE.
pub(crate) fn enter() -> io::Result<()> {
    setrlimit(Resource::Rttime, Rlimit { current: Some(LONGEST), maximum: Some(LONGEST) })?;
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: pid 0 is the calling thread, and the parameters live through the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

//! Waiting for completions, counters and events: by a file descriptor, or by yielding.
//!
//! [`ayre_guest::wait`] says how a waiter goes to sleep. Here are libfabric's kinds.

use crate::abi::errno;
use crate::abi::{WAIT_FD, WAIT_NONE, WAIT_POLLFD, WAIT_UNSPEC, WAIT_YIELD};
use crate::error::{Code, Outcome};
use crate::sys::object::Object;
use rustix::fd::{BorrowedFd, RawFd};
use std::ffi::c_int;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// An object that threads can wait for.
pub(crate) trait Waitable: Send + Sync {
    /// Its wait object, if it has one.
    fn wait(&self) -> Option<&Wait>;

    /// Makes progress; whether there is something to take.
    fn look(&self) -> bool;

    /// Has the bell rung for the next thing that comes; false if there is something already.
    fn arm(&self) -> bool;
}

impl<H, T: Waitable> Waitable for Object<H, T> {
    fn wait(&self) -> Option<&Wait> {
        (**self).wait()
    }

    fn look(&self) -> bool {
        (**self).look()
    }

    fn arm(&self) -> bool {
        (**self).arm()
    }
}

/// A wait object, as libfabric has them.
#[derive(Debug)]
pub(crate) struct Wait {
    /// The kind that the program has asked for, in libfabric's numbers.
    kind: u32,
    /// None where waiters yield.
    sleep: Option<ayre_guest::wait::Wait>,
}

/// The wait object of objects that were opened without one.
pub(crate) static POLLED: Wait = Wait { kind: WAIT_NONE, sleep: None };

impl Wait {
    /// A wait object of a kind; none for "none".
    ///
    /// # Errors
    /// `ENOSYS` for kinds that are not there, the system's code where it refuses descriptors.
    pub(crate) fn open(kind: u32) -> Outcome<Option<Arc<Self>>> {
        let sleep = match kind {
            WAIT_NONE => return Ok(None),
            WAIT_UNSPEC | WAIT_FD | WAIT_POLLFD => Some(ayre_guest::wait::Wait::new()?),
            WAIT_YIELD => None,
            _ => return Err(Code::NOT_SUPPORTED),
        };
        Ok(Some(Arc::new(Self { kind, sleep })))
    }

    pub(crate) fn kind(&self) -> u32 {
        self.kind
    }

    /// The descriptor to poll.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.sleep.as_ref().map(ayre_guest::wait::Wait::descriptor)
    }

    /// Wakes those who sleep.
    pub(crate) fn ring(&self) {
        if let Some(sleep) = &self.sleep {
            sleep.ring();
        }
    }

    /// Forgets that it was rung, unless a thread is about to wake by it.
    fn calm(&self) {
        if let Some(sleep) = &self.sleep {
            sleep.calm();
        }
    }

    /// Wakes sleepers for a descriptor of the engine's as well.
    pub(crate) fn watch(&self, descriptor: BorrowedFd<'_>) -> Outcome {
        match &self.sleep {
            Some(sleep) => Ok(sleep.watch(descriptor)?),
            None => Ok(()),
        }
    }
}

/// When a timeout of a call is over; none if never.
pub(crate) fn deadline(milliseconds: c_int) -> Option<Instant> {
    let length = u64::try_from(milliseconds).ok()?;
    Some(Instant::now() + Duration::from_millis(length))
}

/// Tries until something is found, sleeping between. `arm` says whether there is still nothing, and
/// if so, has the bell rung for the next thing.
///
/// # Errors
/// `late` when time is up; `EINTR` when a signal has come.
pub(crate) fn block<T>(
    wait: &Wait,
    (deadline, late): (Option<Instant>, Code),
    mut attempt: impl FnMut() -> Option<T>,
    arm: impl Fn() -> bool,
) -> Outcome<T> {
    loop {
        let sleep = wait.sleep.as_ref().map(|sleep| (sleep, sleep.watches_over()));
        if let Some(found) = attempt() {
            return Ok(found);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(late);
        }
        match sleep {
            // A thread that only yields needs no bell.
            None => thread::yield_now(),
            Some((sleep, over)) => {
                if arm() && !sleep.sleep(over, deadline) {
                    return attempt().ok_or(Code(errno::EINTR));
                }
            }
        }
    }
}

/// Whether a program may sleep on the object's descriptor: what `fi_trywait` tells.
///
/// # Errors
/// `EAGAIN` if there is something to read first; `EINVAL` if it has nothing to wait with.
pub(crate) fn try_wait(object: &dyn Waitable) -> Outcome {
    let wait = object.wait().ok_or(Code::INVALID)?;
    if object.look() {
        return Err(Code::AGAIN);
    }
    wait.calm();
    if object.arm() { Ok(()) } else { Err(Code::AGAIN) }
}

//! Waiting for completions, counters and events: by a file descriptor, or by yielding.
//!
//! A waiter first looks, then arms the object, which looks once more under its lock, and only then
//! sleeps. A thread that adds something to an armed object rings. So nothing is missed, and nobody
//! rings without a sleeper.
//!
//! Of several threads that sleep at one bell, one sleeps on its descriptor, and the others until
//! that one has woken. It calms the bell for all, and all look again.

use crate::abi::errno;
use crate::abi::{WAIT_FD, WAIT_NONE, WAIT_POLLFD, WAIT_UNSPEC, WAIT_YIELD};
use crate::error::{Code, Outcome};
use crate::sys::object::Object;
use ayre::guest::descriptor::Descriptor;
use ayre::guest::{bell::Bell, descriptor};
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ffi::c_int;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// A wait object.
#[derive(Debug)]
pub(crate) struct Wait {
    /// The kind that the program has asked for, in libfabric's numbers.
    kind: u32,
    descriptors: Option<Descriptors>,
}

/// The wait object of objects that were opened without one.
pub(crate) static POLLED: Wait = Wait { kind: WAIT_NONE, descriptors: None };

/// The bell, and what gathers it with the descriptors of the engine; the program gets the latter.
#[derive(Debug)]
struct Descriptors {
    gatherer: Descriptor,
    bell: Bell,
    watch: Mutex<Watch>,
    is_over: Condvar,
}

/// The sleepers.
#[derive(Debug, Default)]
struct Watch {
    /// A thread sleeps on the descriptor.
    is_kept: bool,
    /// Watches that are over.
    over: u64,
}

impl Wait {
    /// A wait object of a kind; none for "none".
    ///
    /// # Errors
    /// `ENOSYS` for kinds that are not there, the system's code where it refuses descriptors.
    pub(crate) fn open(kind: u32) -> Outcome<Option<Arc<Self>>> {
        let descriptors = match kind {
            WAIT_NONE => return Ok(None),
            WAIT_UNSPEC | WAIT_FD | WAIT_POLLFD => Some(Descriptors::open()?),
            WAIT_YIELD => None,
            _ => return Err(Code::NOT_SUPPORTED),
        };
        Ok(Some(Arc::new(Self { kind, descriptors })))
    }

    /// One of our own to sleep with.
    ///
    /// # Errors
    /// The system's code where it refuses descriptors.
    pub(crate) fn with_descriptor() -> Outcome<Arc<Self>> {
        Ok(Arc::new(Self { kind: WAIT_UNSPEC, descriptors: Some(Descriptors::open()?) }))
    }

    pub(crate) fn kind(&self) -> u32 {
        self.kind
    }

    /// The descriptor to poll.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.descriptors.as_ref().map(|descriptors| descriptors.gatherer.as_raw_fd())
    }

    /// Wakes those who sleep.
    pub(crate) fn ring(&self) {
        if let Some(descriptors) = &self.descriptors {
            descriptors.bell.ring();
        }
    }

    /// Whether those who sleep can be woken: not where the program has closed what wakes them.
    // spec: LIFE-40
    pub(crate) fn can_ring(&self) -> bool {
        self.descriptors.as_ref().is_some_and(|descriptors| descriptors.bell.is_own())
    }

    /// Forgets that it was rung, unless a thread is about to wake by it.
    pub(crate) fn calm(&self) {
        if let Some(descriptors) = &self.descriptors {
            let watch = descriptors.watch();
            descriptors.bell.hush();
            if watch.is_kept {
                self.ring();
            }
        }
    }

    /// The value for `sleep`, taken before the object is armed.
    pub(crate) fn watches_over(&self) -> u64 {
        self.descriptors.as_ref().map_or(0, |descriptors| descriptors.watch().over)
    }

    /// Wakes sleepers for a descriptor of the engine's as well.
    pub(crate) fn watch(&self, descriptor: BorrowedFd<'_>) -> Outcome {
        match &self.descriptors {
            Some(descriptors) => descriptors.gather(descriptor),
            None => Ok(()),
        }
    }

    /// No longer wakes them for it.
    pub(crate) fn unwatch(&self, descriptor: BorrowedFd<'_>) {
        if let Some(descriptors) = &self.descriptors {
            // It is not there where `watch` was refused.
            let _ = epoll::delete(&descriptors.gatherer, descriptor);
        }
    }

    /// Sleeps, or yields where there is no descriptor, unless a watch has ended since `over` was
    /// taken; false when a signal has come.
    pub(crate) fn sleep(&self, over: u64, deadline: Option<Instant>) -> bool {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match &self.descriptors {
            Some(descriptors) => descriptors.sleep(over, left),
            None => {
                std::thread::yield_now();
                true
            }
        }
    }
}

impl Descriptors {
    fn open() -> Outcome<Self> {
        let gatherer = descriptor::epoll()?;
        let bell = Bell::new()?;
        let (watch, is_over) = (Mutex::default(), Condvar::new());
        let descriptors = Self { gatherer, bell, watch, is_over };
        descriptors.gather(descriptors.bell.as_fd())?;
        Ok(descriptors)
    }

    fn gather(&self, descriptor: BorrowedFd<'_>) -> Outcome {
        let data = epoll::EventData::new_u64(0);
        match epoll::add(&self.gatherer, descriptor, data, epoll::EventFlags::IN) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, over: u64, left: Option<Duration>) -> bool {
        let mut watch = self.watch();
        if watch.over != over {
            return true;
        }
        if watch.is_kept {
            let left = left.unwrap_or(Duration::MAX);
            drop(self.is_over.wait_timeout(watch, left));
            return true;
        }
        watch.is_kept = true;
        drop(watch);
        let outcome = self.sleep_on_descriptor(left);
        let mut watch = self.watch();
        self.bell.hush();
        watch.is_kept = false;
        watch.over += 1;
        self.is_over.notify_all();
        outcome != Err(rustix::io::Errno::INTR)
    }

    fn sleep_on_descriptor(&self, left: Option<Duration>) -> rustix::io::Result<()> {
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        descriptor::wait_at(&mut [PollFd::new(&self.gatherer, PollFlags::IN)], timeout.as_ref())
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
        let over = wait.watches_over();
        if let Some(found) = attempt() {
            return Ok(found);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(late);
        }
        // Nobody rings for who only yields.
        let is_idle = wait.descriptors.is_none() || arm();
        if is_idle && !wait.sleep(over, deadline) {
            return attempt().ok_or(Code(errno::EINTR));
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

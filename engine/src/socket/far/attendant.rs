//! The thread that serves the proxies while no thread of the program does. Bytes of a program that
//! computes leave, and sleepers are woken.
//!
//! A thread that looks for bytes borrows the endpoint, and has it while it sleeps. The attendant
//! would be woken by each datagram otherwise, on a processor that others need. It looks after a
//! while whether the endpoint is still in use. It lends the endpoint only in a process of which one
//! thread uses it: another one might sleep.
use super::Far;
use crate::error::SetupError;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::sys::hidden::Hidden;
use crate::sys::thread;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::io::{read, write};
use std::io;
use std::sync::{Arc, Weak};

/// For how long the endpoint is lent without a look, in nanoseconds.
const LENT_NS: i64 = 5_000_000;

/// For how long it sleeps where the endpoint has something to do soon, in nanoseconds.
const RESTLESS_NS: i64 = 500_000;

#[derive(Debug)]
pub(super) struct Attendant {
    bell: Hidden,
    /// The descriptors of the port for invitations, and of the endpoint.
    watched: [Hidden; 2],
    is_stopped: AtomicBool,
    is_lent: AtomicBool,
    /// The thread that uses the endpoint; 0: none yet.
    user: AtomicU64,
}

/// In place of a thread: there are several.
const SEVERAL: u64 = u64::MAX;

impl Attendant {
    pub(super) fn new([letterbox, endpoint]: [BorrowedFd<'_>; 2]) -> Result<Self, SetupError> {
        let told = |errno| SetupError::Os { call: "a thread for other hosts", errno };
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(told)?;
        let copy = |fd| Hidden::copy_of(fd).map_err(told);
        Ok(Self {
            bell: Hidden::new(bell).map_err(told)?,
            watched: [copy(letterbox)?, copy(endpoint)?],
            is_stopped: AtomicBool::new(false),
            is_lent: AtomicBool::new(false),
            user: AtomicU64::new(0),
        })
    }

    pub(super) fn start(far: &Arc<Far>) -> Result<(), SetupError> {
        let (attendant, far) = (far.attendant.clone(), Arc::downgrade(far));
        let started = thread::start("ayre-sockets", move || attendant.attend(&far));
        started.map(drop).map_err(no_thread)
    }

    /// Wakes it: something has changed.
    pub(super) fn call(&self) {
        let _ = write(self.bell.fd(), &1u64.to_ne_bytes());
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.call();
    }

    /// The number of the endpoint's descriptor.
    pub(super) fn endpoint(&self) -> RawFd {
        self.watched[1].fd().as_raw_fd()
    }

    pub(super) fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::Relaxed)
    }

    /// Lends the endpoint to its only user. Whether it was not lent before.
    pub(super) fn lend(&self) -> bool {
        !self.is_lent() && !self.is_lent.swap(true, Ordering::SeqCst)
    }

    /// The endpoint is lent no longer. Whether it was.
    pub(super) fn take_back(&self) -> bool {
        self.is_lent() && self.is_lent.swap(false, Ordering::SeqCst)
    }

    /// Whether no other thread than this one has used the endpoint.
    pub(super) fn is_only_user(&self) -> bool {
        thread_local! {
            static HERE: u8 = const { 0 };
        }
        let Ok(here) = HERE.try_with(|here| std::ptr::from_ref(here) as u64) else {
            return false;
        };
        match self.user.load(Ordering::Relaxed) {
            0 => self.user.store(here, Ordering::Relaxed),
            user if user == here => {}
            _ => self.user.store(SEVERAL, Ordering::Relaxed),
        }
        self.user.load(Ordering::Relaxed) == here
    }

    /// Serves the proxies until their owner has gone.
    fn attend(&self, far: &Weak<Far>) {
        let mut looked = 0;
        while !self.is_stopped.load(Ordering::SeqCst) {
            let is_lent = self.is_lent();
            let Some(served) = far.upgrade() else { return };
            let rests = is_lent || served.with(|office| office.rest());
            served.follow_readers();
            served.tell_unlinked();
            if served.take_callers() {
                continue;
            }
            drop(served);
            let has_come = self.sleep(is_lent, rests);
            let Some(served) = far.upgrade() else { return };
            if is_lent && !has_come {
                let last = std::mem::replace(&mut looked, served.looked.load(Ordering::Relaxed));
                if last == looked {
                    self.is_lent.store(false, Ordering::SeqCst);
                }
                continue;
            }
            let _ = read(self.bell.fd(), &mut [0; 8]);
            if !self.is_lent() {
                served.with(|office| office.wake());
            }
            served.pump();
            served.take_invitations();
        }
    }

    /// Sleeps until something has come, or until it is time to look. Whether something has.
    fn sleep(&self, is_lent: bool, rests: bool) -> bool {
        let [letterbox, endpoint] = &self.watched;
        let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = vec![on(self.bell.fd()), on(letterbox.fd())];
        if !is_lent {
            fds.push(on(endpoint.fd()));
        }
        let time = match (is_lent, rests) {
            (true, _) => Some(LENT_NS),
            (false, true) => None,
            (false, false) => Some(RESTLESS_NS),
        };
        let time = time.map(|tv_nsec| Timespec { tv_sec: 0, tv_nsec });
        poll(&mut fds, time.as_ref()) != Ok(0)
    }
}

pub(super) fn no_thread(_: io::Error) -> SetupError {
    SetupError::exhausted("thread; the system starts no more (`ulimit -u`, pids.max)")
}

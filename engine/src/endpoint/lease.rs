//! Serving remotes in the program's stead, by another thread of its process, while that is away.
//!
//! The program holds its endpoint by a lease, which its polls renew. The lease is a timer of the
//! system, set anew before it expires. So a program that polls wakes no other thread, and pays one
//! system call in a millisecond. When the lease expires, the waiting thread locks the endpoint by
//! its own means (the program may come back at any instruction), serves it, and rests.
use super::{Completion, RawEndpoint, RemoteId};
use crate::clock;
use crate::error::SetupError;
use crate::net::alarm::Alarm;
use crate::sys::descriptor::Descriptor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Renewals in a lease's length, for one that polls all the time.
const RENEWALS: u32 = 3;

/// For how long a program may stay away from its endpoint. Clones are the same lease.
#[derive(Clone, Debug)]
pub struct Lease {
    length: Duration,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug)]
struct Held {
    alarm: Alarm,
    /// When it was set last; none while nobody holds it.
    renewed: Option<Instant>,
}

impl Lease {
    /// One that nobody holds yet.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses a timer.
    pub fn new(length: Duration) -> Result<Self, SetupError> {
        let held = Held { alarm: Alarm::new()?, renewed: None };
        Ok(Self { length, held: Arc::new(Mutex::new(held)) })
    }

    /// Another descriptor of the timer, which can be read from when the lease has run out until it
    /// is renewed, ended, or looked at by [`Lease::has_run_out`].
    ///
    /// # Errors
    /// [`SetupError::Os`] where there is none left.
    pub fn descriptor(&self) -> Result<Descriptor, SetupError> {
        self.held().alarm.copy()
    }

    /// It is held from now on, for its length.
    pub fn renew(&self) {
        self.held().renew(self.length);
    }

    /// Ends it before its time: from now on it is not held, and no alarm goes off.
    pub fn end(&self) {
        let mut held = self.held();
        held.renewed = None;
        held.alarm.set(None);
    }

    /// Whether it has run out since this was asked last.
    pub fn has_run_out(&self) -> bool {
        self.held().alarm.has_come()
    }

    /// Its holder polls.
    pub(super) fn renew_in_time(&self) {
        let mut held = self.held();
        if held.renewed.is_some_and(|at| clock::now() - at >= self.length / RENEWALS) {
            held.renew(self.length);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn renew(&mut self, length: Duration) {
        let now = clock::now();
        debug_assert!(self.renewed.is_none_or(|before| before <= now), "time goes on");
        self.renewed = Some(now);
        self.alarm.set(Some(now + length));
    }
}

impl RawEndpoint {
    /// The program's polls renew this lease from here on, while somebody holds it.
    // spec: ENV-41
    pub fn hold(&mut self, lease: &Lease) {
        self.lease = Some(lease.clone());
    }

    /// As [`RawEndpoint::progress`], for a thread that does it in the program's stead: looks at all
    /// remotes at once, and neither yields nor sleeps. Whether there was anything, or is more.
    // spec: ENV-41
    pub fn serve(&mut self, mut tell: impl FnMut(Completion)) -> bool {
        self.port.service_control();
        let has_died = self.port.peers.has_dead();
        if has_died {
            self.end_dead();
        }
        let any = self.look_everywhere(&mut tell) || has_died;
        any | (self.protocol.has_completions() && self.tell_completions(&mut tell))
    }

    /// As [`RawEndpoint::serve`], but looks at the links once, and only at the remote where that
    /// has brought something. An answer that is sent at once acknowledges what has come.
    pub(crate) fn glance(&mut self, mut tell: impl FnMut(Completion)) -> bool {
        debug_assert!(!self.is_asleep, "one that rests is woken first");
        let mut any = false;
        if let Some(peer) = self.port.pump() {
            self.set_hot(peer.index());
            any = self.poll(&mut tell);
        }
        any | (self.protocol.has_completions() && self.tell_completions(&mut tell))
    }

    /// Sends to a remote what was posted, whatever is under way.
    pub(crate) fn push_out(&mut self, to: RemoteId) {
        if let Some(peer) = self.remotes.way(to) {
            self.port.send_out(peer);
        }
    }

    /// Changes with each poll, and with nothing else: those that have found nothing, and something.
    pub fn polls(&self) -> (u32, u32) {
        (self.polls.idle(), self.sharing.finds())
    }

    /// From [`RawEndpoint::rest`] to [`RawEndpoint::wake`].
    pub const fn is_resting(&self) -> bool {
        self.is_asleep
    }

    /// Whether so much is kept of some remote that waits for the program's receives, that no more
    /// should be taken before it posts some.
    // spec: ENV-41
    pub fn keeps_much(&self) -> bool {
        self.protocol.throttled() > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::port::config::Spin;
    use rustix::event::{PollFd, PollFlags, poll};

    /// Longer than any test takes.
    const EVER: Duration = Duration::from_secs(3600);

    fn wait(fd: &Descriptor) {
        assert_eq!(poll(&mut [PollFd::new(fd, PollFlags::IN)], None), Ok(1));
    }

    // spec: ENV-41
    #[test]
    fn a_lease_that_is_not_renewed_expires_once() {
        let lease = Lease::new(Duration::from_micros(1)).unwrap();
        assert!(!lease.has_run_out(), "nobody has held it");
        lease.renew();
        wait(&lease.descriptor().unwrap());
        assert!(lease.has_run_out() && !lease.has_run_out());
        lease.renew();
        wait(&lease.descriptor().unwrap());
        lease.end();
        assert!(!lease.has_run_out());
    }

    // spec: ENV-41
    #[test]
    fn polls_renew_a_lease_that_is_held_and_no_other() {
        let lease = Lease::new(EVER).unwrap();
        let mut endpoint = RawEndpoint::open(Spin::SHARED).unwrap();
        endpoint.hold(&lease);
        let set_long_ago = |lease: &Lease| {
            lease.renew();
            let ago = Instant::now().checked_sub(EVER / RENEWALS);
            lease.held().renewed = ago;
            ago
        };
        let Some(ago) = set_long_ago(&lease) else { return };
        while lease.held().renewed == Some(ago) {
            endpoint.progress(|_| {});
        }
        let renewed = lease.held().renewed;
        let mut poll_on = || (0..4096).for_each(|_| _ = endpoint.progress(|_| {}));
        poll_on();
        assert_eq!(lease.held().renewed, renewed, "it has just been");
        lease.end();
        poll_on();
        assert_eq!(lease.held().renewed, None, "nobody holds it");
    }
}

//! The progress thread of a library. It serves peers while the program does not call: their access
//! to the program's memory, and all other data where the program has asked for that.
//!
//! The program holds each endpoint by a lease, which its calls renew before it expires. So the
//! thread sleeps while the program polls. When a lease has expired, the thread looks. If the
//! program has called since, only too seldom, the lease begins anew. If not, the thread serves the
//! endpoint, and sleeps in its bell when nothing is pending. The program's next call takes the
//! endpoint back, which wakes nobody.
//!
//! A program that sleeps in the bell itself is woken by it, and is given the time of a lease to
//! come: it may have gone to sleep elsewhere.

use super::served::{Served, Tended, Visitor};
use crate::wait::Wait;
use ayre::endpoint::raw::Lease;
use ayre::guest::descriptor::Descriptor;
use ayre::{SetupError, guest};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// For how long a program may stay away from an endpoint until it is served.
// spec: ENV-41
const LEASE: Duration = Duration::from_millis(2);

/// How long the end of the process waits for the thread.
const FAREWELL: Duration = Duration::from_millis(100);

/// The thread, from its first endpoint on.
#[derive(Default)]
pub struct Mover {
    running: Mutex<Option<Running>>,
}

struct Running {
    charge: Arc<Charge>,
    thread: JoinHandle<()>,
}

/// The endpoints that the thread serves.
struct Charge {
    wards: Mutex<Vec<Ward>>,
    wait: Arc<Wait>,
    is_over: OnceLock<()>,
}

/// One of those.
struct Ward {
    served: Arc<dyn Served>,
    visitor: Visitor,
    /// Of the lease: ends the thread's sleep.
    timer: Descriptor,
    stage: Stage,
}

/// The next step at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    /// The lease runs out.
    Leased,
    /// The bell rings, or the program has come back and its lease has run out.
    Watched,
}

impl Mover {
    /// Has the thread look after an endpoint.
    ///
    /// # Errors
    /// The system refuses a thread, or what one sleeps with.
    pub fn add(&self, served: &Arc<dyn Served>) -> Result<(), SetupError> {
        let mut running = self.running();
        let running = match &mut *running {
            Some(running) => running,
            none => none.insert(Running::start()?),
        };
        let charge = &running.charge;
        let ward = Ward::new(served, &charge.wait)?;
        charge.wait.watch(ward.timer.as_fd()).map_err(refused)?;
        ward.visitor.lease.renew();
        charge.wards().push(ward);
        Ok(())
    }

    /// When this returns, the thread does not use the endpoint any more.
    pub fn remove(&self, served: &Arc<dyn Served>) {
        if let Some(running) = &*self.running() {
            running.charge.wards().retain(|ward| {
                let stays = !Arc::ptr_eq(&ward.served, served);
                if !stays {
                    ward.visitor.wait.unwatch(ward.timer.as_fd());
                    ward.unwatch();
                }
                stays
            });
        }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        if let Some(Running { charge, thread }) = self.running().take() {
            charge.end();
            if charge.wait.can_ring() {
                // It does not panic: that would have ended the process.
                let _ = thread.join();
            }
        }
    }

    /// Ends the thread if it can be ended now. A program that exits in a signal handler may have
    /// been in the midst of a call: a lock that it has there will never be free.
    pub fn try_stop(&self) {
        let Ok(running) = self.running.try_lock() else { return };
        let Some(Running { charge, thread }) = &*running else { return };
        charge.end();
        let deadline = Instant::now() + FAREWELL;
        while !thread.is_finished() && Instant::now() < deadline {
            thread::yield_now();
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The system has refused what a thread sleeps with.
fn refused(errno: Errno) -> SetupError {
    SetupError::Os { call: "epoll", errno }
}

impl Running {
    fn start() -> Result<Self, SetupError> {
        let wait = Arc::new(Wait::new().map_err(refused)?);
        let charge = Arc::new(Charge { wards: Mutex::default(), wait, is_over: OnceLock::new() });
        let its = Arc::clone(&charge);
        let thread = guest::thread::start("ayre-mover", move || its.look_after());
        let thread = thread.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
            SetupError::Os { call: "pthread_create", errno }
        })?;
        Ok(Self { charge, thread })
    }
}

impl Charge {
    fn wards(&self) -> MutexGuard<'_, Vec<Ward>> {
        self.wards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.is_over.get_or_init(|| ());
        self.wait.ring();
    }

    fn look_after(&self) {
        guest::thread::be_prompt();
        while self.is_over.get().is_none() {
            let over = self.wait.watches_over();
            if self.round() {
                // Peers may share the processor.
                thread::yield_now();
            } else {
                self.wait.sleep(over, None);
            }
        }
    }

    /// Whether there is more to do. Wards are taken out only between rounds, so that none is used
    /// when it has been.
    fn round(&self) -> bool {
        self.wards().iter_mut().fold(false, |any, ward| any | ward.look_after())
    }
}

impl Ward {
    fn new(served: &Arc<dyn Served>, wait: &Arc<Wait>) -> Result<Self, SetupError> {
        let lease = Lease::new(LEASE)?;
        let timer = lease.descriptor()?;
        let visitor = Visitor { wait: Arc::clone(wait), lease };
        served.admit(visitor.clone());
        Ok(Self { served: Arc::clone(served), visitor, timer, stage: Stage::Leased })
    }

    /// Whether there is more to do.
    fn look_after(&mut self) -> bool {
        let has_run_out = self.visitor.lease.has_run_out();
        let has_rung = self.stage == Stage::Watched && self.served.has_rung();
        if !has_run_out && !has_rung && self.stage != Stage::Nothing {
            return false;
        }
        let tended = self.served.tend();
        self.stage = match tended {
            Tended::Moved => Stage::Nothing,
            Tended::Waits => Stage::Watched,
            Tended::Left | Tended::Full => Stage::Leased,
        };
        if matches!(tended, Tended::Left | Tended::Full) {
            self.unwatch();
        }
        if tended == Tended::Left {
            self.visitor.lease.renew();
        }
        tended == Tended::Moved
    }

    /// Stops watching: the bell does not concern the thread any more.
    fn unwatch(&self) {
        self.visitor.wait.unwatch(self.served.bell());
    }
}

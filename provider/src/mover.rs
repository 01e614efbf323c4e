//! Automatic progress: a thread that moves a domain's data while its program does not call.
//!
//! It sleeps in the endpoints' bells when nothing is under way. To a program that makes progress
//! itself it leaves an endpoint: the first call wakes it, and then it only looks now and then
//! whether the calls go on. So those who poll hardly notice it, and who rings them need not ring.
//! In the bells of the other endpoints it sleeps meanwhile.

use crate::code::{Code, Outcome};
use crate::source::{Source, Tended};
use crate::wait::Wait;
use ayre::guest;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Between two looks whether the program goes on making progress itself.
const NAP: Duration = Duration::from_millis(1);

/// How long the end of the process waits for the thread.
const FAREWELL: Duration = Duration::from_millis(100);

/// The thread of a domain, from its first endpoint on.
#[derive(Default)]
pub(crate) struct Mover {
    running: Mutex<Option<Running>>,
}

struct Running {
    charge: Arc<Charge>,
    thread: JoinHandle<()>,
}

/// What the thread looks after.
struct Charge {
    wards: Mutex<Vec<Ward>>,
    wait: Arc<Wait>,
    is_over: OnceLock<()>,
}

/// One of those.
struct Ward {
    source: Arc<dyn Source>,
    /// Its bell ends the thread's sleep.
    is_watched: bool,
}

/// What has become of a look at everything.
enum Round {
    /// There may be more to do.
    Busy,
    /// The program does it.
    Left,
    /// Whatever comes rings.
    Quiet,
}

impl Mover {
    /// Has the thread look after a source.
    ///
    /// # Errors
    /// The system's code where it refuses a thread, or what one sleeps with.
    pub(crate) fn add(&self, source: &Arc<dyn Source>) -> Outcome {
        let mut running = self.running();
        let running = match &mut *running {
            Some(running) => running,
            none => none.insert(Running::start()?),
        };
        let charge = &running.charge;
        let mut ward = Ward { source: Arc::clone(source), is_watched: false };
        ward.watch(&charge.wait)?;
        charge.wards().push(ward);
        charge.wait.ring();
        Ok(())
    }

    /// When this returns, the thread does not use the source any more.
    pub(crate) fn remove(&self, source: &Arc<dyn Source>) {
        if let Some(running) = &*self.running() {
            running.charge.wards().retain(|ward| !Arc::ptr_eq(&ward.source, source));
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        if let Some(Running { charge, thread }) = self.running().take() {
            charge.end();
            // It does not panic: that would have ended the process.
            let _ = thread.join();
        }
    }

    /// Ends the thread if it can be ended now. A program that exits in a signal handler may have
    /// been in the midst of a call: a lock that it has there will never be free.
    pub(crate) fn try_stop(&self) {
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

impl Running {
    fn start() -> Outcome<Self> {
        let wait = Wait::with_descriptor()?;
        let charge = Arc::new(Charge { wards: Mutex::default(), wait, is_over: OnceLock::new() });
        let its = Arc::clone(&charge);
        let thread = guest::thread::start("ayre-mover", move || its.look_after());
        let thread = thread.map_err(|error| Code(error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
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
        while self.is_over.get().is_none() {
            let over = self.wait.watches_over();
            match self.round() {
                // Peers may share the processor.
                Round::Busy => thread::yield_now(),
                Round::Left => {
                    self.wait.sleep(over, Some(Instant::now() + NAP));
                }
                Round::Quiet => {
                    self.wait.sleep(over, None);
                }
            }
        }
    }

    /// Wards are taken out only between rounds, so that none is used when it has been.
    fn round(&self) -> Round {
        let mut wards = self.wards();
        let (mut any_busy, mut any_left) = (false, false);
        for ward in &mut *wards {
            match ward.look_after(&self.wait) {
                Round::Busy => any_busy = true,
                Round::Left => any_left = true,
                Round::Quiet => {}
            }
        }
        match (any_busy, any_left) {
            (true, _) => Round::Busy,
            (_, true) => Round::Left,
            _ => Round::Quiet,
        }
    }
}

impl Ward {
    fn look_after(&mut self, wait: &Arc<Wait>) -> Round {
        match self.source.tend() {
            Tended::Moved => Round::Busy,
            Tended::Left => {
                // What rings it concerns the program alone.
                self.unwatch(wait);
                Round::Left
            }
            // One that cannot be slept for is looked at as often as those that are left.
            Tended::Idle if self.watch(wait).is_err() => Round::Left,
            Tended::Idle if self.source.leave(wait) => Round::Quiet,
            Tended::Idle => Round::Busy,
        }
    }

    fn watch(&mut self, wait: &Wait) -> Outcome {
        if let Some(descriptor) = self.source.descriptor()
            && !self.is_watched
        {
            wait.watch(descriptor)?;
        }
        self.is_watched = true;
        Ok(())
    }

    fn unwatch(&mut self, wait: &Wait) {
        if let Some(descriptor) = self.source.descriptor()
            && self.is_watched
        {
            wait.unwatch(descriptor);
        }
        self.is_watched = false;
    }
}

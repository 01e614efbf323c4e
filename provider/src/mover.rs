//! Automatic progress: a thread that moves a domain's data while its program does not call.
//!
//! It sleeps in the endpoints' bells when nothing is under way. To a program that makes progress
//! itself it leaves the endpoints: the first call wakes it, and then it only looks now and then
//! whether the calls go on. So those who poll hardly notice it, and who rings them need not ring.

use crate::code::{Code, Outcome};
use crate::source::{Source, Tended};
use crate::sys::signals;
use crate::wait::Wait;
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
    sources: Mutex<Vec<Arc<dyn Source>>>,
    wait: Arc<Wait>,
    is_over: OnceLock<()>,
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
        if let Some(descriptor) = source.descriptor() {
            charge.wait.watch(descriptor)?;
        }
        charge.sources().push(Arc::clone(source));
        charge.wait.ring();
        Ok(())
    }

    /// When this returns, the thread does not use the source any more.
    pub(crate) fn remove(&self, source: &Arc<dyn Source>) {
        if let Some(running) = &*self.running() {
            running.charge.sources().retain(|known| !Arc::ptr_eq(known, source));
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        if let Some(Running { charge, thread }) = self.running().take() {
            charge.end(&thread);
            // It does not panic: that would have ended the process.
            let _ = thread.join();
        }
    }

    /// Ends the thread if it can be ended now. A program that exits in a signal handler may have
    /// been in the midst of a call: a lock that it has there will never be free.
    pub(crate) fn try_stop(&self) {
        let Ok(running) = self.running.try_lock() else { return };
        let Some(Running { charge, thread }) = &*running else { return };
        charge.end(thread);
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
        let charge = Arc::new(Charge { sources: Mutex::default(), wait, is_over: OnceLock::new() });
        let its = Arc::clone(&charge);
        let thread = thread::Builder::new().name("ayre-mover".into());
        // The program's handlers are for its own threads.
        let thread = signals::without(|| thread.spawn(move || its.look_after()));
        let thread = thread.map_err(|error| Code(error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
        Ok(Self { charge, thread })
    }
}

impl Charge {
    fn sources(&self) -> MutexGuard<'_, Vec<Arc<dyn Source>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, thread: &JoinHandle<()>) {
        self.is_over.get_or_init(|| ());
        self.wait.ring();
        thread.thread().unpark();
    }

    fn look_after(&self) {
        while self.is_over.get().is_none() {
            let over = self.wait.watches_over();
            match self.round() {
                // Peers may share the processor.
                Round::Busy => thread::yield_now(),
                Round::Left => thread::park_timeout(NAP),
                Round::Quiet => {
                    self.wait.sleep(over, None);
                }
            }
        }
    }

    /// Sources are taken out only between rounds, so that none is used when it has been.
    fn round(&self) -> Round {
        let sources = self.sources();
        let (mut any_moved, mut any_left) = (false, false);
        for source in &*sources {
            match source.tend() {
                Tended::Moved => any_moved = true,
                Tended::Left => any_left = true,
                Tended::Idle => {}
            }
        }
        if any_moved {
            Round::Busy
        } else if any_left {
            Round::Left
        } else if sources.iter().all(|source| source.leave(&self.wait)) {
            Round::Quiet
        } else {
            Round::Busy
        }
    }
}

//! Keeps links alive while their port's program computes and polls nothing: peers would take it for
//! dead, and what they send would be lost.
use super::report::Owner;
use super::stats_socket::StatsSocket;
use super::{Pumped, Wire, lock};
use crate::error::SetupError;
use crate::mem::page::{OwnPage, Sleeper};
use crate::net::simulation::{Seat, Serve};
use crate::sync::{AtomicBool, Ordering};
use crate::sys::bell::Bell;
use crate::sys::descriptor::wait_at;
use crate::sys::thread;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread that pumps a wire when nobody else has for a while.
#[derive(Debug)]
pub(crate) enum ProgressThread {
    /// A thread of the port's own.
    Thread { stop: Arc<Stop>, thread: JoinHandle<()> },
    /// Any thread that polls the same simulation.
    Simulation(Arc<Seat>),
}

/// Ends the thread.
#[derive(Debug)]
pub(crate) struct Stop {
    is_asked: AtomicBool,
    bell: Bell,
}

/// The reason why the thread woke.
enum Woken {
    /// Its time, or somebody who looks.
    ByTime,
    Stopped,
    /// The program has closed what it waits at, and may have something else there.
    Lost,
}

/// A wire that is pumped for a port whose program does not.
#[derive(Debug)]
pub(crate) struct Serviced {
    pub(crate) wire: Arc<OnceLock<Mutex<Wire>>>,
    pub(crate) page: Arc<OwnPage>,
    pub(crate) own_bell: Arc<Bell>,
}

impl Serve for Serviced {
    fn serve(&self) {
        let pumped = match self.wire.get().map(Mutex::try_lock) {
            Some(Ok(mut wire)) => wire.serve(),
            Some(Err(TryLockError::Poisoned(wire))) => wire.into_inner().serve(),
            Some(Err(TryLockError::WouldBlock)) | None => return,
        };
        self.tell(pumped);
    }

    fn is_asleep(&self) -> bool {
        self.page.is_asleep(Sleeper::Port)
    }
}

impl Serviced {
    /// The port may have been about to wake for what is taken already.
    fn tell(&self, pumped: Pumped) {
        if pumped.any() && self.is_asleep() {
            self.own_bell.ring();
        }
    }
}

/// The parts of a port that its progress thread needs.
pub(crate) struct Kept {
    pub(crate) served: Serviced,
    pub(crate) owner: Owner,
    /// Where others look at the links, if there is a place for it.
    pub(crate) window: Option<StatsSocket>,
}

impl ProgressThread {
    /// Looks at these intervals.
    // spec: WIRE-7
    pub(crate) fn start(kept: Kept, interval: Duration) -> Result<Self, SetupError> {
        assert!(!interval.is_zero(), "a progress thread waits between two looks");
        let bell = Bell::new().map_err(SetupError::os("eventfd"))?;
        let stop = Arc::new(Stop { is_asked: AtomicBool::new(false), bell });
        let seen = stop.clone();
        let thread =
            thread::start("ayre-keeper", move || kept.run(&seen, interval)).map_err(|_| {
                SetupError::exhausted("thread; the system starts no more (`ulimit -u`, pids.max)")
            })?;
        Ok(Self::Thread { stop, thread })
    }

    /// Any thread that polls the simulation of this seat.
    // spec: NET-10
    pub(crate) fn of_seat(seat: &Arc<Seat>, served: Serviced) -> Self {
        seat.serve(Arc::new(served));
        Self::Simulation(seat.clone())
    }

    // spec: LIFE-40
    pub(crate) fn stop(self) {
        match self {
            Self::Thread { stop, thread } => {
                // Relaxed: the bell's system call follows; nothing else hangs on the flag.
                stop.is_asked.store(true, Ordering::Relaxed);
                if stop.bell.is_own() {
                    stop.bell.ring();
                }
                if thread.join().is_err() {
                    debug_assert!(false, "the progress thread panicked");
                }
            }
            Self::Simulation(seat) => seat.serve_no_more(),
        }
    }
}

impl Kept {
    fn run(mut self, stop: &Stop, interval: Duration) {
        loop {
            match self.wait(stop, interval) {
                Woken::ByTime => {}
                Woken::Stopped | Woken::Lost => return,
            }
            let Some(wire) = self.served.wire.get() else { continue };
            let pumped = lock(wire).pump_if_idle(interval);
            self.served.tell(pumped);
            if let Some(window) = &mut self.window {
                window.serve(|| self.owner.report(wire));
            }
        }
    }

    /// Waits for so long at most, or until somebody looks.
    // spec: LIFE-40
    fn wait(&mut self, stop: &Stop, interval: Duration) -> Woken {
        let timeout = Timespec {
            tv_sec: interval.as_secs().min(1 << 40) as i64,
            tv_nsec: i64::from(interval.subsec_nanos()),
        };
        let stopped = PollFd::new(&stop.bell, PollFlags::IN);
        let is_quiet = match self.window.as_mut().and_then(StatsSocket::watched) {
            None => is_quiet(&mut [stopped], &timeout),
            Some(watched) => is_quiet(&mut [stopped, watched], &timeout),
        };
        // Relaxed: see `ProgressThread::stop`.
        match (stop.is_asked.load(Ordering::Relaxed), is_quiet) {
            (true, _) => Woken::Stopped,
            (false, true) => Woken::ByTime,
            (false, false) => Woken::Lost,
        }
    }
}

/// Waits. False when there is something at the first.
fn is_quiet(fds: &mut [PollFd<'_>], timeout: &Timespec) -> bool {
    // A wait that a signal has cut short is a short wait.
    let _ = wait_at(fds, Some(timeout));
    fds[0].revents().is_empty()
}

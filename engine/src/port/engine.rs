//! The engine thread, which serves mediated peers while the program computes.
use super::remote::SharedWire;
use super::wait::Sleep;
use crate::error::SetupError;
use crate::link;
use crate::mem::fence;
use crate::mem::page::{OwnPage, Sleeper};
use crate::peer::contact::Link;
use crate::port::Port;
use crate::sync::{AtomicBool, Ordering};
use crate::sys::bell::Bell;
use crate::sys::thread;
use crate::target::{Responder, lock};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Rounds without work before the thread sleeps.
const SPINS: u32 = 2000;
const WIRED_SPINS: u32 = 8;

/// A port's engine thread, if it was started.
#[derive(Debug)]
pub(crate) struct Engine {
    running: Option<Running>,
    /// Whether the thread runs; devices, which do not have the port, read this.
    runs: Arc<AtomicBool>,
    /// The descriptors on which the thread sleeps.
    sleep: Arc<Sleep>,
}

#[derive(Debug)]
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The state that the thread and the port share.
struct Shared {
    responder: Arc<Mutex<Responder>>,
    page: Arc<OwnPage>,
    sleep: Arc<Sleep>,
    port_bell: Arc<Bell>,
    any_mail: Arc<AtomicBool>,
    wire: SharedWire,
}

impl Engine {
    pub(super) fn new() -> Result<Self, SetupError> {
        Ok(Self { running: None, runs: Arc::default(), sleep: Arc::new(Sleep::new()?) })
    }

    /// Whether an engine thread serves the peers. If not, the port's own thread does.
    #[inline(always)]
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn runs(&self) -> &Arc<AtomicBool> {
        &self.runs
    }

    pub(super) fn sleep(&self) -> &Sleep {
        &self.sleep
    }

    /// The bell that wakes the thread.
    pub(super) fn bell(&self) -> &Arc<Bell> {
        self.sleep.bell()
    }

    /// Has the thread, if there is one, sleep on this peer's channel, too.
    pub(super) fn watch(&self, link: &Arc<Link>) -> Result<(), SetupError> {
        let is_told = self.runs.load(Ordering::Relaxed);
        debug_assert_eq!(self.is_running(), is_told, "links hear whether a thread tends them");
        if self.is_running() { self.sleep.watch_channel(link) } else { Ok(()) }
    }

    fn start(&mut self, shared: Shared) -> Result<(), SetupError> {
        debug_assert!(!self.is_running(), "one thread serves");
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = thread::start("ayre-engine", move || shared.run(&seen)).map_err(|_| {
            SetupError::exhausted("thread; the system starts no more (`ulimit -u`, pids.max)")
        })?;
        self.running = Some(Running { stop, thread });
        // Relaxed: only this thread reads it.
        self.runs.store(true, Ordering::Relaxed);
        Ok(())
    }

    // spec: LIFE-40
    pub(super) fn stop(&mut self) {
        let Some(Running { stop, thread }) = self.running.take() else { return };
        // Relaxed: the bell's system call follows; nothing else depends on the flag.
        stop.store(true, Ordering::Relaxed);
        if !self.sleep.bell().is_own() {
            // The program has closed the descriptor that would wake the thread.
            return;
        }
        self.sleep.ring();
        if thread.join().is_err() {
            debug_assert!(false, "the engine's thread panicked");
        }
    }
}

impl Port {
    /// Starts a thread that serves mediated peers while the program computes. The thread sleeps
    /// while there is nothing to do; it ends with the port.
    ///
    /// # Errors
    /// [`SetupError::Os`] where the system refuses the thread.
    // spec: PROG-2
    pub fn start_engine(&mut self) -> Result<(), SetupError> {
        self.check_process()?;
        if self.engine.is_running() {
            return Ok(());
        }
        let shared = Shared {
            responder: self.exposed.shared().clone(),
            page: self.page.clone(),
            sleep: self.engine.sleep.clone(),
            port_bell: self.sleep.bell().clone(),
            any_mail: self.remote.any_mail().clone(),
            wire: self.remote.shared().clone(),
        };
        let links = self.peers.living().map(|connection| &connection.link);
        let watched = links.clone().try_for_each(|link| self.engine.sleep.watch_channel(link));
        let started = watched.and_then(|()| self.engine.start(shared));
        if started.is_err() {
            links.for_each(|link| self.engine.sleep.forget_channel(link));
        }
        started?;
        self.sleep_without_nets();
        Ok(())
    }
}

impl Shared {
    fn run(self, stop: &AtomicBool) {
        let mut idle = 0;
        // Relaxed: see Engine::stop.
        while !stop.load(Ordering::Relaxed) {
            if self.serve() {
                idle = 0;
            } else if idle < self.spins() {
                idle += 1;
                std::hint::spin_loop();
            } else {
                self.sleep_unless_work();
            }
        }
    }

    /// With a wire, each round is a system call under a lock that the port needs, too.
    fn spins(&self) -> u32 {
        if self.wire.get().is_some() { WIRED_SPINS } else { SPINS }
    }

    fn serve(&self) -> bool {
        let pumped = self.wire.get().is_some_and(|wire| link::lock(wire).pump_all().any());
        let served = lock(&self.responder).serve_all() || pumped;
        if served && self.page.is_asleep(Sleeper::Port) {
            self.port_bell.ring();
        }
        served
    }

    fn sleep_unless_work(&self) {
        self.announce_sleep(true);
        fence::heavy();
        if !self.serve() {
            let due = self.wire.get().and_then(|wire| {
                let mut wire = link::lock(wire);
                wire.settle();
                wire.wake_by(None)
            });
            // The ring may be meant for the port, which looks for mail, too, when it is rung.
            if self.sleep.sleep(due, &self.any_mail).rung {
                self.port_bell.ring();
            }
        }
        self.announce_sleep(false);
    }

    fn announce_sleep(&self, asleep: bool) {
        self.page.set_asleep(Sleeper::Engine, asleep);
        if let Some(wire) = self.wire.get() {
            link::lock(wire).announce_sleep(asleep);
        }
    }
}

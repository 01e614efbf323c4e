//! A lock in a word of a node's memory.
use super::handles::TimedRemote;
use super::program::TimedPort;
use crate::port::{Lock, Options, Port};
use ayre::memory::{Atomic, Fetched, LockMode};
use ayre::{Fault, PostError};

/// A lock, at one of its users.
#[derive(Debug)]
pub struct TimedLock<'a> {
    pub(super) word: &'a TimedRemote,
    pub(super) offset: u64,
    pub(super) processes: u32,
    pub(super) held: Option<LockMode>,
}

impl TimedLock<'_> {
    fn step(&self, port: &mut TimedPort, step: Atomic) -> Result<Fetched, PostError> {
        port.fetch(self.word, self.offset, step, Options::new())
    }
}

impl Lock<TimedPort> for TimedLock<'_> {
    fn held(&self) -> Option<LockMode> {
        self.held
    }

    // spec: LOCK-2, LOCK-3
    fn try_lock(&mut self, port: &mut TimedPort, hold: LockMode) -> Result<bool, PostError> {
        if self.held.is_some() {
            return Ok(false);
        }
        let is_taken = self.step(port, hold.lock(self.processes))?.success;
        self.held = is_taken.then_some(hold);
        Ok(is_taken)
    }

    fn lock(&mut self, port: &mut TimedPort, hold: LockMode) -> Result<(), Fault> {
        if self.held.is_some() {
            return Err(Fault::Malformed);
        }
        loop {
            match self.try_lock(port, hold) {
                Ok(true) => return Ok(()),
                Ok(false) | Err(PostError::Busy(_)) => port.progress(),
                Err(PostError::Fault(fault)) => return Err(fault),
            }
        }
    }

    // spec: LOCK-3, LOCK-4
    fn unlock(&mut self, port: &mut TimedPort) -> Result<(), PostError> {
        let hold = self.held.ok_or(Fault::Malformed)?;
        port.flush(self.word.peer)?;
        self.step(port, hold.unlock(self.processes))?;
        self.held = None;
        Ok(())
    }
}

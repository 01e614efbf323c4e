//! Locks and epochs on words of shared memory.
use super::options::PostOptions;
use crate::error::{Fault, PostError};
use crate::mem::region::RemoteRegion;
use crate::port::Port;
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::lock::{EpochStep, LockMode};

/// A shared/exclusive lock in eight bytes of a peer's memory, which are 0 at first.
///
/// One handle holds the lock at most once; it refuses a second time. A process that dies while it
/// holds the lock leaves it held: the owner of the word may store zero when it has learned of the
/// death.
// spec: LOCK-5
#[derive(Debug)]
pub struct Lock<'a> {
    word: &'a RemoteRegion,
    offset: u64,
    processes: u32,
    held: Option<LockMode>,
}

impl<'a> Lock<'a> {
    /// A lock in the word at `offset`, a multiple of eight, for at most `processes` processes.
    ///
    /// All of them must name the same number of processes.
    pub const fn new(word: &'a RemoteRegion, offset: u64, processes: u32) -> Self {
        Self { word, offset, processes, held: None }
    }

    /// A handle that holds the lock already, as one that was dropped has left it.
    pub const fn held_already(mut self, hold: LockMode) -> Self {
        self.held = Some(hold);
        self
    }

    /// The mode in which this handle holds the lock, if it does.
    pub const fn held(&self) -> Option<LockMode> {
        self.held
    }

    /// Tries to take the lock once. Returns whether it did; also false where this handle holds it
    /// already.
    ///
    /// # Errors
    /// As [`Port::fetch`].
    // spec: LOCK-2, LOCK-3
    pub fn try_lock(&mut self, port: &mut Port, hold: LockMode) -> Result<bool, PostError> {
        if self.held.is_some() {
            return Ok(false);
        }
        let taken = self.step(port, hold.lock(self.processes))?.success;
        if taken {
            self.held = Some(hold);
        }
        Ok(taken)
    }

    /// Takes the lock. Blocks until it is free: makes progress, and yields the processor after some
    /// attempts.
    ///
    /// # Errors
    /// Faults of [`Port::fetch`]. [`Fault::Malformed`] where this handle holds the lock already:
    /// the wait would never end.
    pub fn lock(&mut self, port: &mut Port, hold: LockMode) -> Result<(), Fault> {
        if self.held.is_some() {
            return Err(Fault::Malformed);
        }
        let mut rounds = 0;
        loop {
            match self.try_lock(port, hold) {
                Ok(true) => {
                    debug_assert_eq!(self.held, Some(hold), "what was taken is held");
                    return Ok(());
                }
                Err(PostError::Fault(fault)) => return Err(fault),
                Ok(false) | Err(PostError::Busy(_)) => port.pause(&mut rounds),
            }
            if port.is_interrupted() {
                return Err(Fault::Interrupted);
            }
        }
    }

    /// Releases the lock, after everything that was posted to the word's owner has completed there.
    ///
    /// # Errors
    /// [`Fault::Malformed`] where this handle does not hold the lock; else as [`Port::flush`] and
    /// [`Port::fetch`].
    // spec: LOCK-3, LOCK-4
    pub fn unlock(&mut self, port: &mut Port) -> Result<(), PostError> {
        let hold = self.held.ok_or(Fault::Malformed)?;
        port.flush(self.word.peer())?;
        self.step(port, hold.unlock(self.processes))?;
        self.held = None;
        Ok(())
    }

    fn step(&self, port: &mut Port, step: Atomic) -> Result<Fetched, PostError> {
        port.fetch(self.word, self.offset, step, PostOptions::new())
    }
}

/// Tries one step of an access epoch on the word at `offset`. The owner of the word posts and
/// waits, through its loopback. The origin starts and completes. A completing step first flushes
/// the operations to the owner. Returns the state of the word, and whether this step was possible;
/// an impossible step changes nothing.
///
/// # Errors
/// As [`Port::fetch`]; a completing step also as [`Port::flush`].
// spec: EPOCH-1, EPOCH-2, EPOCH-3
pub fn try_epoch_step(
    port: &mut Port,
    word: &RemoteRegion,
    offset: u64,
    step: EpochStep,
) -> Result<Fetched, PostError> {
    if step == EpochStep::Complete {
        port.flush(word.peer())?;
    }
    port.fetch(word, offset, step.atomic(), PostOptions::new())
}

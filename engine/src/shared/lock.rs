//! Locks in shared memory, for processes and their threads.
use crate::clock;
use crate::error::SetupError;
use crate::mem::region::Region;
use crate::mem::robust::{MUTEX_BYTES, Mutex, Taken};
use rustix::io::Errno;
use std::time::Duration;

/// The reason why a lock was neither taken nor released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockMisuse {
    /// This thread holds the lock already.
    #[error("this thread holds the lock already: release it first")]
    Held,
    /// This thread does not hold the lock.
    #[error("this thread does not hold the lock: the thread that has taken it releases it")]
    NotHeld,
    /// The bytes of the lock are not those of a lock.
    #[error("the lock was overwritten: keep its bytes apart from the data")]
    Overwritten,
}

/// A lock in a region that processes share ([`Region::shared`]). One thread of all processes holds
/// it.
///
/// The system releases the lock of a process that dies: the next holder learns of that by
/// [`Taken::Abandoned`]. A waiting thread sleeps.
#[derive(Debug)]
pub struct SharedLock(Mutex);

impl SharedLock {
    /// Bytes that a lock takes in its region.
    pub const BYTES: usize = MUTEX_BYTES;

    /// Makes a lock in the [`SharedLock::BYTES`] bytes from `offset` on. One process does so, once,
    /// before the others open it. Nobody may write those bytes otherwise.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where the place exceeds the region, or is no multiple of eight;
    /// [`SetupError::Os`].
    pub fn new(region: &Region, offset: usize) -> Result<Self, SetupError> {
        check(region, offset)?;
        Ok(Self(Mutex::make(region.mapping(), offset as u64)?))
    }

    /// Opens the lock that another process has made.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] where there is none.
    pub fn open(region: &Region, offset: usize) -> Result<Self, SetupError> {
        check(region, offset)?;
        let made = Mutex::made_at(region.mapping(), offset as u64);
        made.map(Self).ok_or_else(|| {
            SetupError::invalid(format!("there is no lock at {offset}: make it with new first"))
        })
    }

    /// Takes the lock if nobody holds it. Does not block.
    ///
    /// # Errors
    /// [`LockMisuse::Held`] where this thread holds it already.
    #[inline]
    pub fn try_lock(&self) -> Result<Option<Taken>, LockMisuse> {
        self.0.try_lock().map_err(misuse)
    }

    /// Takes the lock as soon as nobody holds it, within a time if there is one. Blocks. `None`:
    /// the time is over.
    ///
    /// # Errors
    /// [`LockMisuse::Held`] where this thread holds it already.
    pub fn lock(&self, timeout: Option<Duration>) -> Result<Option<Taken>, LockMisuse> {
        if let Some(taken) = self.try_lock()? {
            return Ok(Some(taken));
        }
        let timeout = timeout.unwrap_or(Duration::MAX);
        self.0.lock(clock::since_1970().saturating_add(timeout)).map_err(misuse)
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// [`LockMisuse::NotHeld`] where this thread does not hold it.
    #[inline]
    pub fn unlock(&self) -> Result<(), LockMisuse> {
        self.0.unlock().map_err(misuse)
    }
}

fn check(region: &Region, offset: usize) -> Result<(), SetupError> {
    let fits = offset.checked_add(MUTEX_BYTES).is_some_and(|end| end <= region.len());
    if fits && offset.is_multiple_of(8) {
        return Ok(());
    }
    Err(SetupError::invalid(format!(
        "a lock at {offset}: it takes {MUTEX_BYTES} bytes at a multiple of eight, of {}",
        region.len()
    )))
}

fn misuse(errno: Errno) -> LockMisuse {
    match errno {
        Errno::DEADLK => LockMisuse::Held,
        Errno::PERM => LockMisuse::NotHeld,
        _ => LockMisuse::Overwritten,
    }
}

//! Operations that belong together: batches, locks, epochs.
use crate::access::{
    AYRE_ATOMIC, AYRE_NOTIFY, AYRE_PUT, AYRE_PUT_WORD, ayre_atomic_op, ayre_fetched, ayre_options,
    ayre_peer,
};
use crate::border::{Bytes, In, Out};
use crate::error::{Failure, Outcome, flag, number, status};
use crate::memory::ayre_remote_region;
use crate::operation::ayre_part;
use crate::port::ayre_port;
use ayre::PeerId;
use ayre::memory::{Batch, EpochStep, Lock, LockMode, try_epoch_step};
use std::ffi::c_int;

/// An operation of a batch. Its kind says which members count; zero the others.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_operation {
    /// `AYRE_PUT`, `AYRE_PUT_WORD`, `AYRE_ATOMIC` or `AYRE_NOTIFY`.
    pub kind: u8,
    /// The remote region of all but a notification.
    pub remote: In<ayre_remote_region>,
    /// The place in it.
    pub offset: u64,
    /// The bytes of a put, if `part.region` is NULL.
    pub from: Bytes,
    /// Their number.
    pub len: usize,
    /// The part of a region that is put, if its region is not NULL.
    pub part: ayre_part,
    /// The word of `AYRE_PUT_WORD`.
    pub word: u64,
    /// The atomic.
    pub atomic: ayre_atomic_op,
    /// The notifications.
    pub options: ayre_options,
}

/// Posts several operations on one peer, in their order: all, or none where there is no room for
/// all. Does not block. Returns the ticket of the last one, or an error; 0 for no operations.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_post(
    port: Out<ayre_port>,
    peer: ayre_peer,
    operations: In<ayre_operation>,
    count: usize,
) -> i64 {
    number(|| {
        let operations = operations.array(count)?;
        let mut batch = Batch::new(PeerId(peer));
        operations.iter().try_for_each(|operation| operation.join(&mut batch))?;
        let ticket = port.held()?.release(&batch)?;
        Ok(ticket.map_or(0, |ticket| ticket.0 as i64))
    })
}

impl ayre_operation {
    fn join<'a>(&'a self, batch: &mut Batch<'a>) -> Outcome<()> {
        let (with, remote) = (self.options.options(), || self.remote.shared());
        match self.kind {
            AYRE_PUT if self.part.region.is_null() => {
                let from = self.from.bytes(self.len)?;
                batch.put(remote()?, self.offset, from, with)
            }
            AYRE_PUT => {
                let part = self.part.slice()?;
                batch.put(remote()?, self.offset, part, with)
            }
            AYRE_PUT_WORD => batch.put_immediate(remote()?, self.offset, self.word, with),
            AYRE_ATOMIC => {
                let what = self.atomic.atomic()?;
                batch.atomic(remote()?, self.offset, what, with)
            }
            AYRE_NOTIFY => batch.notify(with),
            _ => return Err(Failure::Argument("no batch has such an operation")),
        };
        Ok(())
    }
}

/// The lock is not held by this structure.
pub const AYRE_FREE: c_int = 0;
/// Any number of processes may hold the lock in this mode.
pub const AYRE_SHARED: c_int = 1;
/// One process alone holds it.
pub const AYRE_EXCLUSIVE: c_int = 2;

/// A lock in a word of eight bytes of a remote region, which is 0 at first. Each user has a
/// structure of its own, and fills it: `struct ayre_lock lock = {remote, 0, 8, AYRE_FREE};`
///
/// A process that dies while it holds the lock leaves it held. The owner of the word may store
/// zero when it has learned of the death.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ayre_lock {
    /// The remote region with the word.
    pub word: In<ayre_remote_region>,
    /// Where the word is: a multiple of eight.
    pub offset: u64,
    /// How many processes use the lock at most: the same number at all of them.
    pub processes: u32,
    /// How this structure holds the lock: the library sets it.
    pub held: c_int,
}

fn mode(mode: c_int) -> Outcome<LockMode> {
    match mode {
        AYRE_SHARED => Ok(LockMode::Shared),
        AYRE_EXCLUSIVE => Ok(LockMode::Exclusive),
        _ => Err(Failure::Argument("a lock is held AYRE_SHARED or AYRE_EXCLUSIVE")),
    }
}

impl ayre_lock {
    fn handle<'a>(&self) -> Outcome<Lock<'a>> {
        let word = self.word.shared()?;
        let lock = Lock::new(word, self.offset, self.processes);
        Ok(match self.held {
            AYRE_FREE => lock,
            held => lock.held_already(mode(held)?),
        })
    }

    fn note(&mut self, lock: &Lock<'_>) {
        self.held = lock.held().map_or(AYRE_FREE, |held| match held {
            LockMode::Shared => AYRE_SHARED,
            LockMode::Exclusive => AYRE_EXCLUSIVE,
        });
    }
}

fn with_lock<T>(
    port: Out<ayre_port>,
    lock: Out<ayre_lock>,
    step: impl FnOnce(&mut Lock<'_>, &mut ayre::Port) -> Outcome<T>,
) -> Outcome<T> {
    lock.change(|lock| {
        let mut handle = lock.handle()?;
        let done = step(&mut handle, &mut *port.held()?);
        lock.note(&handle);
        done
    })?
}

/// Tries to take a lock once, `AYRE_SHARED` or `AYRE_EXCLUSIVE`. Returns 1 if it was taken, 0 if
/// not, or if this structure holds it already.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_lock_try(port: Out<ayre_port>, lock: Out<ayre_lock>, how: c_int) -> c_int {
    flag(|| {
        let how = mode(how)?;
        with_lock(port, lock, |lock, port| Ok(lock.try_lock(port, how)?))
    })
}

/// Takes a lock. Blocks until it is free.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_lock_take(port: Out<ayre_port>, lock: Out<ayre_lock>, how: c_int) -> c_int {
    status(|| {
        let how = mode(how)?;
        with_lock(port, lock, |lock, port| Ok(lock.lock(port, how)?))
    })
}

/// Releases a lock, after everything that was posted to the word's owner has completed there.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_lock_release(port: Out<ayre_port>, lock: Out<ayre_lock>) -> c_int {
    status(|| with_lock(port, lock, |lock, port| Ok(lock.unlock(port)?)))
}

/// The owner opens its window.
pub const AYRE_EPOCH_POST: c_int = 0;
/// The origin begins to access it.
pub const AYRE_EPOCH_START: c_int = 1;
/// The origin has ended; its operations are flushed first.
pub const AYRE_EPOCH_COMPLETE: c_int = 2;
/// The owner closes its window.
pub const AYRE_EPOCH_WAIT: c_int = 3;

/// Tries one step of an access epoch on the word at `offset`, which is 0 at first. `result` has the
/// state of the word, and whether the step was possible; it may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ayre_epoch_step(
    port: Out<ayre_port>,
    word: In<ayre_remote_region>,
    offset: u64,
    step: c_int,
    result: Out<ayre_fetched>,
) -> c_int {
    status(|| {
        let step = match step {
            AYRE_EPOCH_POST => EpochStep::Post,
            AYRE_EPOCH_START => EpochStep::Start,
            AYRE_EPOCH_COMPLETE => EpochStep::Complete,
            AYRE_EPOCH_WAIT => EpochStep::Wait,
            _ => return Err(Failure::Argument("an epoch has no such step")),
        };
        result.fill(try_epoch_step(&mut *port.held()?, word.shared()?, offset, step)?);
        Ok(())
    })
}

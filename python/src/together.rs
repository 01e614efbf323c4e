//! Operations that belong together: batches, locks, epochs.
use crate::buffer::Room;
use crate::error::{Failure, Misuse, Outcome};
use crate::memory::{LocalSlice, RemoteRegion};
use crate::port::Port;
use crate::value::{Atomic, Options, Peer, Word, fetched};
use ayre::PostError;
use ayre::memory::{EpochStep, LockMode, try_epoch_step};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Operations on one peer that are posted together: all in their order, or none.
///
/// Each method adds one; `port.release(batch)` posts them. The bytes of a buffer are copied when
/// the put is added.
#[pyclass(frozen, module = "ayre", name = "Batch")]
#[derive(Debug)]
pub(crate) struct Batch {
    peer: Peer,
    entries: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    work: Work,
    options: ayre::PostOptions,
}

#[derive(Debug)]
enum Work {
    Put(Py<RemoteRegion>, u64, Vec<u8>),
    PutSlice(Py<RemoteRegion>, u64, Py<LocalSlice>),
    Immediate(Py<RemoteRegion>, u64, u64),
    Atomic(Py<RemoteRegion>, u64, ayre::memory::Atomic),
    Notify,
}

impl Entry {
    fn join<'a>(&'a self, batch: &mut ayre::memory::Batch<'a>) {
        let with = self.options;
        match &self.work {
            Work::Put(to, offset, from) => batch.put(&to.get().0, *offset, from, with),
            Work::PutSlice(to, offset, from) => {
                batch.put(&to.get().0, *offset, from.get().get(), with)
            }
            Work::Immediate(to, offset, value) => {
                batch.put_immediate(&to.get().0, *offset, *value, with)
            }
            Work::Atomic(on, offset, what) => batch.atomic(&on.get().0, *offset, *what, with),
            Work::Notify => batch.notify(with),
        };
    }
}

impl Batch {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, work: Work, options: Options) {
        self.entries().push(Entry { work, options: options.0 });
    }
}

#[pymethods]
impl Batch {
    #[new]
    fn new(peer: Peer) -> Self {
        Self { peer, entries: Mutex::default() }
    }

    fn __len__(&self) -> usize {
        self.entries().len()
    }

    /// Adds a put of a buffer or of a part of a region.
    #[pyo3(signature = (remote, offset, data, options=Options::NONE))]
    fn put(
        &self,
        remote: Py<RemoteRegion>,
        offset: u64,
        data: &Bound<'_, PyAny>,
        options: Options,
    ) -> Outcome<()> {
        let work = match data.cast::<LocalSlice>() {
            Ok(slice) => Work::PutSlice(remote, offset, slice.clone().unbind()),
            Err(_) => Work::Put(remote, offset, Room::new().bytes(data)?.to_vec()),
        };
        self.add(work, options);
        Ok(())
    }

    /// Adds a put of a word of eight bytes.
    #[pyo3(signature = (remote, offset, value, options=Options::NONE))]
    fn put_immediate(&self, remote: Py<RemoteRegion>, offset: u64, value: Word, options: Options) {
        self.add(Work::Immediate(remote, offset, value.0), options);
    }

    /// Adds an atomic without a result.
    #[pyo3(signature = (remote, offset, atomic, options=Options::NONE))]
    fn atomic(&self, remote: Py<RemoteRegion>, offset: u64, atomic: &Atomic, options: Options) {
        self.add(Work::Atomic(remote, offset, atomic.0), options);
    }

    /// Adds a notification.
    #[pyo3(signature = (options=Options::NONE))]
    fn notify(&self, options: Options) {
        self.add(Work::Notify, options);
    }
}

/// A lock in a word of eight bytes of a remote region, which is 0 at first.
///
/// At most `processes` processes use it: the same number at all of them. The lock is held
/// "shared" by any number of them, or "exclusive" by one; `mode` is the way of the `with`
/// statement. A process that dies while it holds the lock leaves it held. The owner of the word
/// may store zero when it has learned of the death.
#[pyclass(frozen, module = "ayre", name = "Lock")]
#[derive(Debug)]
pub(crate) struct Lock {
    port: Py<Port>,
    word: Py<RemoteRegion>,
    offset: u64,
    processes: u32,
    mode: LockMode,
    held: Mutex<Option<LockMode>>,
}

fn lock_mode(mode: &str) -> Outcome<LockMode> {
    match mode {
        "shared" => Ok(LockMode::Shared),
        "exclusive" => Ok(LockMode::Exclusive),
        _ => Err(Failure::argument("a lock is held 'shared' or 'exclusive'")),
    }
}

impl Lock {
    /// How this object holds the lock, if no other thread is at it.
    fn held(&self) -> Outcome<MutexGuard<'_, Option<LockMode>>> {
        match self.held.try_lock() {
            Ok(held) => Ok(held),
            Err(TryLockError::Poisoned(held)) => Ok(held.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let what = "the lock is in use: one thread at a time calls it";
                Err(Failure::Misuse(Misuse::InUse, what.into()))
            }
        }
    }

    /// Makes a call of the engine's lock, as this object holds it.
    fn step<T>(
        &self,
        port: &mut ayre::Port,
        step: impl FnOnce(&mut ayre::memory::Lock<'_>, &mut ayre::Port) -> Result<T, PostError>,
    ) -> Outcome<T> {
        let mut held = self.held()?;
        let lock = ayre::memory::Lock::new(&self.word.get().0, self.offset, self.processes);
        let mut lock = match *held {
            Some(mode) => lock.held_already(mode),
            None => lock,
        };
        let done = step(&mut lock, port);
        *held = lock.held();
        Ok(done?)
    }

    fn take(&self, py: Python<'_>, mode: LockMode) -> Outcome<()> {
        if self.held()?.is_some() {
            return Err(ayre::Fault::Malformed.into());
        }
        let take = |lock: &mut ayre::memory::Lock<'_>, port: &mut ayre::Port| {
            lock.lock(port, mode).map_err(PostError::from)
        };
        self.port.get().wait(py, |port| self.step(port, take))
    }
}

#[pymethods]
impl Lock {
    #[new]
    #[pyo3(signature = (port, word, offset=0, processes=1024, mode="exclusive"))]
    fn new(
        port: Py<Port>,
        word: Py<RemoteRegion>,
        offset: u64,
        processes: u32,
        mode: &str,
    ) -> Outcome<Self> {
        let mode = lock_mode(mode)?;
        Ok(Self { port, word, offset, processes, mode, held: Mutex::new(None) })
    }

    /// How this object holds the lock: "shared", "exclusive" or None.
    #[getter(held)]
    fn held_mode(&self) -> Outcome<Option<&'static str>> {
        Ok(self.held()?.map(|mode| match mode {
            LockMode::Shared => "shared",
            LockMode::Exclusive => "exclusive",
        }))
    }

    /// Tries to take the lock once. Returns whether it did; False if this object holds it already.
    /// Blocks for the answer of a mediated peer.
    #[pyo3(signature = (mode="exclusive"))]
    fn try_lock(&self, py: Python<'_>, mode: &str) -> Outcome<bool> {
        let mode = lock_mode(mode)?;
        self.port.get().wait(py, |port| self.step(port, |lock, port| lock.try_lock(port, mode)))
    }

    /// Takes the lock. Blocks until it is free.
    #[pyo3(signature = (mode="exclusive"))]
    fn lock(&self, py: Python<'_>, mode: &str) -> Outcome<()> {
        self.take(py, lock_mode(mode)?)
    }

    /// Releases the lock, after everything that was posted to the word's owner has completed there.
    fn unlock(&self, py: Python<'_>) -> Outcome<()> {
        self.port.get().wait(py, |port| self.step(port, |lock, port| lock.unlock(port)))
    }

    fn __enter__(slf: &Bound<'_, Self>) -> Outcome<Py<Self>> {
        slf.get().take(slf.py(), slf.get().mode)?;
        Ok(slf.clone().unbind())
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Outcome<()> {
        self.unlock(kind.py())
    }
}

#[pymethods]
impl Port {
    /// Posts the operations of a batch in their order: all, or none where there is no room for all.
    /// Does not block. Returns the ticket of the last one; None for an empty batch.
    fn release(&self, batch: &Batch) -> Outcome<Option<u64>> {
        let entries = batch.entries();
        let mut together = ayre::memory::Batch::new(batch.peer.0);
        entries.iter().for_each(|entry| entry.join(&mut together));
        Ok(self.with(|port| port.release(&together))?.map(|ticket| ticket.0))
    }

    /// Tries one step of an access epoch on the word at `offset`, which is 0 at first: "post",
    /// "start", "complete" or "wait".
    ///
    /// The owner posts and waits, by its loopback. The origin starts and completes, which flushes
    /// its operations first. Returns the state of the word, and whether the step was possible.
    fn try_epoch_step(
        &self,
        py: Python<'_>,
        word: &RemoteRegion,
        offset: u64,
        step: &str,
    ) -> Outcome<(u64, bool)> {
        let step = match step {
            "post" => EpochStep::Post,
            "start" => EpochStep::Start,
            "complete" => EpochStep::Complete,
            "wait" => EpochStep::Wait,
            _ => return Err(Failure::argument("no such step of an epoch")),
        };
        let made = self.wait(py, |port| try_epoch_step(port, &word.0, offset, step))?;
        Ok(fetched(made))
    }
}

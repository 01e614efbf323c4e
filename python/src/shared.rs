//! Memory, locks and queues that processes share without ports.
use crate::buffer::Room;
use crate::error::{Failure, Misuse, Outcome};
use crate::memory::Region;
use crate::port::LONG;
use crate::value::timeout;
use ayre::shared::{LockMisuse, SharedRecord, Taken};
use ayre::{PostError, ReceiveError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyTuple};
use std::fs::OpenOptions;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A call that waits looks for signals after this time.
const SLICE: Duration = Duration::from_millis(50);

/// Opens a file for reading and writing.
fn open(path: &str) -> Outcome<OwnedFd> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let opened = opened.map_err(|error| Failure::argument(format!("{path}: {error}")));
    Ok(opened?.into())
}

/// Makes a call again and again, without the interpreter's lock, each time for a slice of time at
/// most, until it returns something or the time is over. Looks for signals meanwhile.
fn repeat<T: Send>(
    py: Python<'_>,
    until: Option<Duration>,
    mut call: impl FnMut(Duration) -> Outcome<Option<T>> + Send,
) -> Outcome<Option<T>> {
    let deadline = until.and_then(|until| Instant::now().checked_add(until));
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        if let Some(done) = py.detach(|| call(slice))? {
            return Ok(Some(done));
        }
        if deadline.is_some_and(|at| at <= Instant::now()) {
            return Ok(None);
        }
        py.check_signals()?;
    }
}

#[pymethods]
impl Region {
    /// Memory of no port, `len` bytes that are zero: for this process, its children, and all to
    /// which it gives the file. `ayre.SharedArray` is an array in one.
    #[staticmethod]
    fn shared(len: usize) -> Outcome<Self> {
        Ok(Self::new(ayre::Region::shared(len)?))
    }

    /// Opens the memory that another process has made by `shared`. `path` is that of its file:
    /// "/proc/self/fd/7", if this process has it as descriptor 7.
    #[staticmethod]
    fn of_file(path: &str) -> Outcome<Self> {
        Ok(Self::new(ayre::Region::of_file(open(path)?)?))
    }

    /// A new descriptor of the region's file, for another process. The caller closes it.
    fn to_file(&self) -> Outcome<RawFd> {
        Ok(self.region.to_file()?.into_raw_fd())
    }
}

/// A lock of all processes that share a region, in 64 bytes of it.
///
/// One process makes it; others open it with `made=True`. The thread that has taken the lock
/// releases it. The system releases the lock of a process that dies: `was_abandoned` says so to the
/// next holder. A waiting thread sleeps.
#[pyclass(frozen, module = "ayre", name = "SharedLock")]
#[derive(Debug)]
pub(crate) struct SharedLock {
    lock: ayre::shared::SharedLock,
    was_abandoned: Mutex<bool>,
}

impl From<LockMisuse> for Failure {
    fn from(misuse: LockMisuse) -> Self {
        Self::Misuse(Misuse::InUse, misuse.to_string().into())
    }
}

impl SharedLock {
    fn take(&self, py: Python<'_>, until: Option<Duration>) -> Outcome<bool> {
        let taken = match self.lock.try_lock()? {
            None => repeat(py, until, |slice| Ok(self.lock.lock(Some(slice))?))?,
            taken => taken,
        };
        if let Some(taken) = taken {
            *self.was_abandoned.lock().unwrap_or_else(PoisonError::into_inner) =
                taken == Taken::Abandoned;
        }
        Ok(taken.is_some())
    }
}

#[pymethods]
impl SharedLock {
    #[new]
    #[pyo3(signature = (region, offset=0, made=false))]
    fn new(region: &Region, offset: usize, made: bool) -> Outcome<Self> {
        let lock = match made {
            true => ayre::shared::SharedLock::open(&region.region, offset),
            false => ayre::shared::SharedLock::new(&region.region, offset),
        };
        Ok(Self { lock: lock?, was_abandoned: Mutex::new(false) })
    }

    /// Takes the lock, and waits for it for `timeout` seconds; for ever without one, not at all if
    /// `blocking` is False. Returns whether this thread has it.
    ///
    /// Raises InUseError if this thread holds it already.
    #[pyo3(signature = (blocking=true, timeout=None))]
    fn acquire(&self, py: Python<'_>, blocking: bool, timeout: Option<f64>) -> Outcome<bool> {
        let until = self::timeout(timeout)?;
        self.take(py, if blocking { until } else { Some(Duration::ZERO) })
    }

    /// Releases the lock. Raises InUseError if this thread does not hold it.
    fn release(&self) -> Outcome<()> {
        Ok(self.lock.unlock()?)
    }

    /// Whether the holder before this one has died, so that the data may be half changed.
    #[getter]
    fn was_abandoned(&self) -> bool {
        *self.was_abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn __enter__(slf: &Bound<'_, Self>) -> Outcome<Py<Self>> {
        slf.get().take(slf.py(), None)?;
        Ok(slf.clone().unbind())
    }

    #[pyo3(signature = (_kind, _value, _traceback))]
    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Outcome<()> {
        self.release()
    }
}

/// A queue of pickles in memory that processes share: that of `ayre.multiprocessing`.
#[pyclass(frozen, module = "ayre._ayre", name = "SharedQueue")]
#[derive(Debug)]
pub(crate) struct SharedQueue(ayre::shared::SharedQueue);

/// Bytes of a number in a record: how many buffers stand behind the pickle, and the length of each.
const NUMBER: usize = 8;
/// In the length of a buffer: it is for reading only.
const READ_ONLY: u64 = 1 << 63;

#[pymethods]
impl SharedQueue {
    #[new]
    fn new(capacity: usize, most: Option<u32>) -> Outcome<Self> {
        Ok(Self(ayre::shared::SharedQueue::new(capacity, most)?))
    }

    /// Opens the queue of a file.
    #[staticmethod]
    fn of_file(path: &str) -> Outcome<Self> {
        Ok(Self(ayre::shared::SharedQueue::of_file(open(path)?)?))
    }

    /// A new descriptor of the queue's file, for another process. The caller closes it.
    fn to_file(&self) -> Outcome<RawFd> {
        Ok(self.0.to_file()?.into_raw_fd())
    }

    /// Puts an item in: a pickle in pieces, and the buffers beside it. Returns whether there was
    /// room in the time.
    #[pyo3(signature = (pieces, buffers, block, timeout))]
    fn put(
        &self,
        pieces: &Bound<'_, PyList>,
        buffers: &Bound<'_, PyList>,
        block: bool,
        timeout: Option<f64>,
    ) -> Outcome<bool> {
        let py = pieces.py();
        let until = if block { self::timeout(timeout)? } else { Some(Duration::ZERO) };
        if buffers.is_empty() && pieces.len() == 1 {
            let piece = pieces.get_item(0)?;
            if let Ok(piece) = piece.cast::<PyBytes>() {
                return self.enqueue(py, &[&[0; NUMBER], piece.as_bytes()], until);
            }
        }
        let objects: Vec<_> = pieces.iter().chain(buffers.iter()).collect();
        let mut rooms: Vec<_> = objects.iter().map(|_| Room::new()).collect();
        let mut numbers = (buffers.len() as u64).to_ne_bytes().to_vec();
        let mut parts: Vec<&[u8]> = vec![&[]];
        for (room, object) in rooms.iter_mut().zip(&objects) {
            parts.push(room.bytes(object)?);
        }
        for (buffer, part) in buffers.iter().zip(&parts[1 + pieces.len()..]) {
            let is_read_only: bool = buffer.getattr("readonly")?.extract()?;
            let flag = if is_read_only { READ_ONLY } else { 0 };
            numbers.extend((part.len() as u64 | flag).to_ne_bytes());
        }
        parts[0] = &numbers;
        self.enqueue(py, &parts, until)
    }

    /// Takes an item out: a pickle, or one and a list of the buffers beside it. None if none has
    /// come in the time.
    #[pyo3(signature = (block, timeout))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        block: bool,
        timeout: Option<f64>,
    ) -> Outcome<Option<Bound<'py, PyAny>>> {
        let until = if block { self::timeout(timeout)? } else { Some(Duration::ZERO) };
        if let Some(item) = self.0.try_dequeue(|record| item_of(py, record)) {
            return Ok(Some(item?.into_bound(py)));
        }
        let take = |slice| {
            let item = |record: &SharedRecord<'_>| Python::attach(|py| item_of(py, record));
            match self.0.dequeue_wait(Some(slice), item) {
                Err(ReceiveError::TimedOut) => Ok(None),
                taken => Ok(Some(taken??)),
            }
        };
        Ok(repeat(py, until, take)?.map(|item| item.into_bound(py)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no room for a short item.
    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Marks an item as done. False if all are.
    fn mark_done(&self) -> bool {
        self.0.mark_done()
    }

    /// Waits until all items are done.
    fn wait_done(&self, py: Python<'_>) -> Outcome<()> {
        repeat(py, None, |slice| Ok(self.0.wait_done(Some(slice)).then_some(())))?;
        Ok(())
    }
}

impl SharedQueue {
    fn enqueue(&self, py: Python<'_>, parts: &[&[u8]], until: Option<Duration>) -> Outcome<bool> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let longest = self.0.record_max();
        if len > longest {
            return Err(Failure::argument(format!(
                "an item of {len} bytes, pickled: this queue takes {longest} at most. Make it with \
                 a larger `capacity`"
            )));
        }
        if len <= LONG && self.0.try_enqueue(parts).is_ok() {
            return Ok(true);
        }
        let put = |slice| match self.0.enqueue_wait(parts, Some(slice)) {
            Err(PostError::Busy(_)) => Ok(None),
            done => Ok(Some(done?)),
        };
        Ok(repeat(py, until, put)?.is_some())
    }
}

/// The item of a record.
fn item_of(py: Python<'_>, record: &SharedRecord<'_>) -> PyResult<Py<PyAny>> {
    let number = |at| {
        let mut bytes = [0; NUMBER];
        record.read(at, &mut bytes);
        u64::from_ne_bytes(bytes)
    };
    let count = number(0) as usize;
    if count == 0 {
        return Ok(bytes_of(py, record, NUMBER, record.len() - NUMBER)?.into_any().unbind());
    }
    let lens: Vec<_> = (1..=count).map(|at| number(at * NUMBER)).collect();
    let all: usize = lens.iter().map(|len| (len & !READ_ONLY) as usize).sum();
    let start = (1 + count) * NUMBER;
    let pickle = bytes_of(py, record, start, record.len() - start - all)?;
    let mut at = record.len() - all;
    let buffers = PyList::empty(py);
    for len in lens {
        let is_read_only = len & READ_ONLY != 0;
        let len = (len & !READ_ONLY) as usize;
        if is_read_only {
            buffers.append(bytes_of(py, record, at, len)?)?;
        } else {
            let copy = |into: &mut [u8]| copied(py, record, at, into);
            buffers.append(PyByteArray::new_with(py, len, copy)?)?;
        }
        at += len;
    }
    Ok(PyTuple::new(py, [pickle.into_any(), buffers.into_any()])?.into_any().unbind())
}

fn bytes_of<'py>(
    py: Python<'py>,
    record: &SharedRecord<'_>,
    at: usize,
    len: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, len, |into| copied(py, record, at, into))
}

/// Copies bytes of a record, many without the interpreter's lock.
fn copied(py: Python<'_>, record: &SharedRecord<'_>, at: usize, into: &mut [u8]) -> PyResult<()> {
    if into.len() > LONG {
        py.detach(|| record.read(at, into));
    } else {
        record.read(at, into);
    }
    Ok(())
}

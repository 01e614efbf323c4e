//! Remote queues: many producers, one consumer.
use crate::buffer::Room;
use crate::error::{Failure, Misuse, Outcome};
use crate::port::Port;
use crate::value::{Peer, timeout};
use ayre::PostError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The consumer's end of a queue: `port.create_queue` makes it.
#[pyclass(frozen, module = "ayre", name = "Queue")]
#[derive(Debug)]
pub(crate) struct Queue(Mutex<Held>);

/// A queue, and room for its longest record.
#[derive(Debug)]
struct Held {
    queue: ayre::Queue,
    room: Vec<u8>,
}

/// A producer's end of a queue: `port.accept_queue` gives it.
#[pyclass(frozen, module = "ayre", name = "RemoteQueue")]
#[derive(Debug)]
pub(crate) struct RemoteQueue(Mutex<ayre::RemoteQueue>);

/// A record that was taken from a queue.
#[pyclass(frozen, module = "ayre", name = "Record")]
#[derive(Debug)]
pub(crate) struct Record {
    /// The producer.
    #[pyo3(get)]
    source: u16,
    /// Its bytes.
    #[pyo3(get)]
    data: Py<PyBytes>,
}

/// The value of a mutex, if no other thread uses it.
fn held<T>(mutex: &Mutex<T>) -> Outcome<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(held) => Ok(held),
        Err(TryLockError::Poisoned(held)) => Ok(PoisonError::into_inner(held)),
        Err(TryLockError::WouldBlock) => {
            let what = "the queue is in use: one thread at a time calls it";
            Err(Failure::Misuse(Misuse::InUse, what.into()))
        }
    }
}

#[pymethods]
impl Queue {
    /// The longest record in bytes.
    #[getter]
    fn record_max(&self) -> Outcome<usize> {
        Ok(held(&self.0)?.queue.record_max())
    }

    /// The peers that produce.
    #[getter]
    fn producers(&self) -> Outcome<Vec<u16>> {
        Ok(held(&self.0)?.queue.producers().map(|peer| peer.0).collect())
    }
}

#[pymethods]
impl RemoteQueue {
    /// The longest record in bytes.
    #[getter]
    fn record_max(&self) -> Outcome<usize> {
        Ok(held(&self.0)?.record_max())
    }

    /// The peer that consumes what is enqueued here.
    #[getter]
    fn peer(&self) -> Outcome<u16> {
        Ok(held(&self.0)?.peer().0)
    }
}

#[pymethods]
impl Port {
    /// Makes a queue with `capacity` bytes for each producer.
    fn create_queue(&self, capacity: usize) -> Outcome<Queue> {
        let queue = self.with(|port| port.create_queue(capacity))?;
        let room = vec![0; queue.record_max()];
        Ok(Queue(Mutex::new(Held { queue, room })))
    }

    /// Lets a peer produce, under a name that it uses in `accept_queue`.
    #[pyo3(signature = (peer, queue, name=0))]
    fn share_queue(&self, peer: Peer, queue: &Queue, name: u64) -> Outcome<()> {
        let queue = &mut held(&queue.0)?.queue;
        self.with(|port| port.share_queue(peer.0, queue, name))
    }

    /// Accepts the queue that a peer has shared, or shares soon, under a name. Blocks, at most for
    /// the set-up time.
    #[pyo3(signature = (peer, name=0))]
    fn accept_queue(&self, py: Python<'_>, peer: Peer, name: u64) -> Outcome<RemoteQueue> {
        let queue = self.wait(py, |port| port.accept_queue(peer.0, name))?;
        Ok(RemoteQueue(Mutex::new(queue)))
    }

    /// Takes no more records of a peer.
    fn remove_producer(&self, queue: &Queue, peer: Peer) -> Outcome<()> {
        let queue = &mut held(&queue.0)?.queue;
        self.with(|port| {
            port.remove_producer(queue, peer.0);
            Ok::<_, Failure>(())
        })
    }

    /// Enqueues the bytes of a buffer as a record. Does not block: the buffer may be used again
    /// when the call returns.
    ///
    /// Raises BusyError where the consumer has to take earlier records first.
    fn enqueue(&self, queue: &RemoteQueue, record: &Bound<'_, PyAny>) -> Outcome<()> {
        let mut room = Room::new();
        let bytes = room.bytes(record)?;
        let queue = &mut *held(&queue.0)?;
        self.copy(record.py(), bytes.len(), |port| port.enqueue(queue, bytes))
    }

    /// Enqueues a record as `enqueue` does, and waits for room. Blocks.
    fn enqueue_wait(&self, queue: &RemoteQueue, record: &Bound<'_, PyAny>) -> Outcome<()> {
        let mut room = Room::new();
        let bytes = room.bytes(record)?;
        let queue = &mut *held(&queue.0)?;
        self.retry(record.py(), |port| match port.enqueue(queue, bytes) {
            Err(PostError::Busy(_)) => Ok(None),
            enqueued => enqueued.map(Some),
        })
    }

    /// Takes the next record; None if there is none. Does not block.
    fn dequeue(&self, py: Python<'_>, queue: &Queue) -> Outcome<Option<Record>> {
        let Held { queue, room } = &mut *held(&queue.0)?;
        let found = self.copy(py, room.len(), |port| port.dequeue(queue, room))?;
        Ok(found.map(|found| Record::new(py, found, room)))
    }

    /// Takes the next record. Waits for it for `timeout` seconds; for ever without one.
    ///
    /// Raises TimedOutError, and PeerDiedError once for each peer that has died.
    #[pyo3(signature = (queue, timeout=None))]
    fn dequeue_wait(&self, py: Python<'_>, queue: &Queue, timeout: Option<f64>) -> Outcome<Record> {
        let until = self::timeout(timeout)?;
        let Held { queue, room } = &mut *held(&queue.0)?;
        let found = match self.copy(py, room.len(), |port| port.dequeue(queue, room))? {
            Some(found) => found,
            None => self.wait(py, |port| port.dequeue_wait(queue, room, until))?,
        };
        Ok(Record::new(py, found, room))
    }

    /// Takes the next record into a buffer in one piece. Returns producer and length, or None if
    /// there is no record. Does not block.
    ///
    /// A record that is longer than the buffer stays: TooLongError has its length.
    fn dequeue_into(
        &self,
        queue: &Queue,
        buffer: &Bound<'_, PyAny>,
    ) -> Outcome<Option<(u16, usize)>> {
        let mut room = Room::new();
        let into = room.one_piece(buffer)?;
        let queue = &mut held(&queue.0)?.queue;
        let found = self.copy(buffer.py(), into.len(), |port| port.dequeue(queue, into))?;
        Ok(found.map(|found| (found.source.0, found.len)))
    }

    /// Takes the next record into a buffer in one piece. Returns producer and length. The rest is
    /// as for `dequeue_wait` and `dequeue_into`.
    #[pyo3(signature = (queue, buffer, timeout=None))]
    fn dequeue_into_wait(
        &self,
        queue: &Queue,
        buffer: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> Outcome<(u16, usize)> {
        let until = self::timeout(timeout)?;
        let mut room = Room::new();
        let into = room.one_piece(buffer)?;
        let queue = &mut held(&queue.0)?.queue;
        let found = self.wait(buffer.py(), |port| port.dequeue_wait(queue, into, until))?;
        Ok((found.source.0, found.len))
    }
}

impl Record {
    fn new(py: Python<'_>, found: ayre::message::Record, data: &[u8]) -> Self {
        Self { source: found.source.0, data: PyBytes::new(py, &data[..found.len]).unbind() }
    }
}

//! Operations on memory of peers: put, get, atomics, notifications.
use crate::buffer::Room;
use crate::error::Outcome;
use crate::memory::{LocalSlice, RemoteRegion};
use crate::port::Port;
use crate::value::{Atomic, Notification, Options, Peer, Strided, Word, fetched, timeout};
use ayre::memory::{AtomicOp, Ticket, Width};
use pyo3::prelude::*;

#[pymethods]
impl Port {
    /// Puts the bytes of a buffer into a remote region, at `offset` from its first byte. Returns
    /// the ticket of the operation.
    ///
    /// `data` is bytes, an array of any dtype and strides, another buffer, or a part of a region.
    /// Rows of 64 bytes and more are put where they lie, other arrays are packed first. The buffer
    /// may be used again when the call returns. A part of a region is read until the operation has
    /// completed. `rows` gives another shape: then `data` is the memory in which the rows lie.
    ///
    /// Raises BusyError where there is no room: make progress and try again. A put of more than
    /// one piece to a mediated peer may block.
    #[pyo3(signature = (remote, offset, data, options=Options::NONE, rows=None))]
    fn put(
        &self,
        remote: &RemoteRegion,
        offset: u64,
        data: &Bound<'_, PyAny>,
        options: Options,
        rows: Option<&Strided>,
    ) -> Outcome<u64> {
        let (py, to, with) = (data.py(), &remote.0, options.0);
        let given = rows.map(|rows| rows.0);
        if let Ok(slice) = data.cast::<LocalSlice>() {
            let from = slice.get().get();
            return number(self.wait(py, |port| match given {
                Some(rows) => port.put_strided(to, offset, from, rows, with),
                None => port.put(to, offset, from, with),
            }));
        }
        let mut room = Room::new();
        let (bytes, rows) = match given {
            Some(rows) => (room.bytes(data)?, Some(rows)),
            None => room.rows(data)?,
        };
        number(match rows {
            Some(rows) => self.wait(py, |port| port.put_strided(to, offset, bytes, rows, with)),
            None => self.copy(py, bytes.len(), |port| port.put(to, offset, bytes, with)),
        })
    }

    /// Gets bytes of a remote region, from `offset` on, as many as `into` has room for. Returns the
    /// ticket of the operation.
    ///
    /// `into` is an array of any dtype and strides or another buffer, which can be written: its
    /// data is there when the call returns, so it blocks. Into a part of a region the call does not
    /// block: the data is there with the completer notification, or after `flush`. `rows` gives
    /// another shape: then `into` is the memory in which the rows lie.
    ///
    /// Raises BusyError where there is no room, and a BufferError where `into` is read-only.
    #[pyo3(signature = (remote, offset, into, options=Options::NONE, rows=None))]
    fn get(
        &self,
        remote: &RemoteRegion,
        offset: u64,
        into: &Bound<'_, PyAny>,
        options: Options,
        rows: Option<&Strided>,
    ) -> Outcome<u64> {
        let (py, from, with) = (into.py(), &remote.0, options.0);
        let given = rows.map(|rows| rows.0);
        if let Ok(slice) = into.cast::<LocalSlice>() {
            let into = slice.get().get();
            return number(self.wait(py, |port| match given {
                Some(rows) => port.get_strided(from, offset, into, rows, with),
                None => port.get(from, offset, into, with),
            }));
        }
        let mut room = Room::new();
        if let Some(rows) = given {
            let bytes = room.one_piece(into)?;
            return number(self.wait(py, |port| port.get_strided(from, offset, bytes, rows, with)));
        }
        let destination = room.writable_rows(into)?;
        let (bytes, rows) = (&mut *destination.bytes, destination.rows);
        let got = match rows {
            Some(rows) => self.wait(py, |port| port.get_strided(from, offset, bytes, rows, with)),
            None => self
                .fetch(py, (from.peer(), bytes.len()), |port| port.get(from, offset, bytes, with)),
        }?;
        destination.finish(py)?;
        number(Ok(got))
    }

    /// Puts a word of eight bytes, which is never seen in part. `offset` is a multiple of eight.
    /// Does not block. Returns the ticket.
    #[pyo3(signature = (remote, offset, value, options=Options::NONE))]
    fn put_immediate(
        &self,
        remote: &RemoteRegion,
        offset: u64,
        value: Word,
        options: Options,
    ) -> Outcome<u64> {
        number(self.with(|port| port.put_immediate(&remote.0, offset, value.0, options.0)))
    }

    /// Notifies a peer, behind all operations on it that were posted before. Does not block.
    /// Returns the ticket.
    #[pyo3(signature = (peer, options=Options::NONE))]
    fn notify(&self, peer: Peer, options: Options) -> Outcome<u64> {
        number(self.with(|port| port.notify(peer.0, options.0)))
    }

    /// Performs an atomic on a word of a remote region, without a result. Does not block. Returns
    /// the ticket.
    #[pyo3(signature = (remote, offset, atomic, options=Options::NONE))]
    fn atomic(
        &self,
        remote: &RemoteRegion,
        offset: u64,
        atomic: &Atomic,
        options: Options,
    ) -> Outcome<u64> {
        number(self.with(|port| port.atomic(&remote.0, offset, atomic.0, options.0)))
    }

    /// Performs an atomic, and brings its result: the word before (after an FCAA), and whether it
    /// was changed. Blocks until it is there.
    #[pyo3(name = "fetch", signature = (remote, offset, atomic, options=Options::NONE))]
    fn fetch_atomic(
        &self,
        py: Python<'_>,
        remote: &RemoteRegion,
        offset: u64,
        atomic: &Atomic,
        options: Options,
    ) -> Outcome<(u64, bool)> {
        let call = |port: &mut ayre::Port| port.fetch(&remote.0, offset, atomic.0, options.0);
        Ok(fetched(self.fetch(py, (remote.0.peer(), 0), call)?))
    }

    /// Adds to a word of eight bytes, and brings the word before. Blocks until it is there.
    fn fetch_add(
        &self,
        py: Python<'_>,
        remote: &RemoteRegion,
        offset: u64,
        addend: Word,
    ) -> Outcome<u64> {
        let call = |port: &mut ayre::Port| port.fetch_add(&remote.0, offset, addend.0);
        self.fetch(py, (remote.0.peer(), 0), call)
    }

    /// Stores a word of eight bytes if the word there is the expected one. Returns the word before,
    /// and whether it was stored. Blocks until that is known.
    fn compare_swap(
        &self,
        py: Python<'_>,
        remote: &RemoteRegion,
        offset: u64,
        expected: Word,
        new: Word,
    ) -> Outcome<(u64, bool)> {
        let (op, width) = (AtomicOp::CompareSwap, Width::W64);
        let (operand, compare) = (new.0, expected.0);
        let swap = ayre::memory::Atomic { width, op, operand, compare };
        self.fetch_atomic(py, remote, offset, &Atomic(swap), Options::NONE)
    }

    /// Takes the next notification; None if there is none. Does not block.
    fn poll_notification(&self) -> Outcome<Option<Notification>> {
        self.with(|port| Ok::<_, crate::error::Failure>(port.poll_notification().map(Notification)))
    }

    /// Takes the next notification. Waits for it for `timeout` seconds; for ever without one.
    ///
    /// Raises TimedOutError, and PeerDiedError once for each peer that has died.
    #[pyo3(name = "wait_notification", signature = (timeout=None))]
    fn wait_for_notification(&self, py: Python<'_>, timeout: Option<f64>) -> Outcome<Notification> {
        let until = self::timeout(timeout)?;
        if let Some(found) = self.poll_notification()? {
            return Ok(found);
        }
        Ok(Notification(self.wait(py, |port| port.wait_notification(until))?))
    }
}

fn number(posted: Outcome<Ticket>) -> Outcome<u64> {
    Ok(posted?.0)
}

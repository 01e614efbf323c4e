//! Short messages, and the iterators over them and over notifications.
use crate::buffer::Room;
use crate::error::{Failure, Outcome};
use crate::port::Port;
use crate::value::{Notification, Peer, timeout};
use ayre::{PostError, ReceiveError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::Duration;

/// The longest message in bytes.
const LONGEST: usize = 1024;

/// A message that was received.
#[pyclass(frozen, module = "ayre", name = "Message")]
#[derive(Debug)]
pub(crate) struct Message {
    /// The sender.
    #[pyo3(get)]
    source: u16,
    /// The tag that the sender has given it.
    #[pyo3(get)]
    tag: u32,
    /// Its bytes.
    #[pyo3(get)]
    data: Py<PyBytes>,
}

#[pymethods]
impl Message {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data.bind(py).repr()?;
        Ok(format!("Message(source={}, tag={}, data={data})", self.source, self.tag))
    }
}

impl Message {
    fn new(py: Python<'_>, found: ayre::Message, data: &[u8]) -> Self {
        let data = PyBytes::new(py, &data[..found.len]).unbind();
        Self { source: found.source.0, tag: found.tag, data }
    }
}

/// Sender, tag and length of a message.
type Head = (u16, u32, usize);

fn head(found: ayre::Message) -> Head {
    (found.source.0, found.tag, found.len)
}

#[pymethods]
impl Port {
    /// Sends a message of 1 to 1024 bytes to a peer. Does not block.
    ///
    /// `data` is bytes, an array or another buffer, which may be used again when the call returns.
    /// Raises BusyError where the receiver has to take earlier ones first.
    #[pyo3(signature = (peer, data, tag=0))]
    fn send(&self, peer: Peer, data: &Bound<'_, PyAny>, tag: u32) -> Outcome<()> {
        let mut room = Room::new();
        let bytes = room.bytes(data)?;
        self.with_plain(|port| port.send(peer.0, tag, bytes))
    }

    /// Sends a message as `send` does, and waits for room. Blocks.
    #[pyo3(signature = (peer, data, tag=0))]
    fn send_wait(&self, peer: Peer, data: &Bound<'_, PyAny>, tag: u32) -> Outcome<()> {
        let mut room = Room::new();
        let bytes = room.bytes(data)?;
        let send = |port: &mut ayre::Port| match port.send(peer.0, tag, bytes) {
            Err(PostError::Busy(_)) => Ok(None),
            sent => sent.map(Some),
        };
        match self.with_plain(send)? {
            Some(()) => Ok(()),
            None => self.wait(data.py(), |port| port.send_wait(peer.0, tag, bytes)),
        }
    }

    /// Takes the next message; None if there is none. Does not block.
    fn try_recv(&self, py: Python<'_>) -> Outcome<Option<Message>> {
        let mut data = [0; LONGEST];
        let found = self.with_plain(|port| port.try_recv(&mut data))?;
        Ok(found.map(|found| Message::new(py, found, &data)))
    }

    /// Takes the next message. Waits for it for `timeout` seconds; for ever without one.
    ///
    /// Messages of one sender come in the order in which they were sent. Raises TimedOutError, and
    /// PeerDiedError once for each peer that has died.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> Outcome<Message> {
        let until = self::timeout(timeout)?;
        let mut data = [0; LONGEST];
        let found = self.received(py, &mut data, until)?;
        Ok(Message::new(py, found, &data))
    }

    /// Takes the next message into a buffer in one piece. Returns sender, tag and length; None if
    /// there is no message. Does not block.
    ///
    /// A message that is longer than the buffer stays: TooLongError has its length.
    fn try_recv_into(&self, buffer: &Bound<'_, PyAny>) -> Outcome<Option<Head>> {
        let mut room = Room::new();
        let into = room.one_piece(buffer)?;
        Ok(self.with_plain(|port| port.try_recv(into))?.map(head))
    }

    /// Takes the next message into a buffer in one piece. Returns sender, tag and length. The rest
    /// is as for `recv` and `try_recv_into`.
    #[pyo3(signature = (buffer, timeout=None))]
    fn recv_into(&self, buffer: &Bound<'_, PyAny>, timeout: Option<f64>) -> Outcome<Head> {
        let until = self::timeout(timeout)?;
        let mut room = Room::new();
        let into = room.one_piece(buffer)?;
        Ok(head(self.received(buffer.py(), into, until)?))
    }

    /// Iterates over messages, and waits for each of them for `timeout` seconds: for ever without
    /// one. The iterator ends when a timeout is over; 0 takes what is there.
    #[pyo3(signature = (timeout=None))]
    fn messages(slf: Py<Self>, timeout: Option<f64>) -> Outcome<Messages> {
        Ok(Messages { port: slf, until: self::timeout(timeout)? })
    }

    /// Iterates over notifications, as `messages` does over messages.
    #[pyo3(signature = (timeout=None))]
    fn notifications(slf: Py<Self>, timeout: Option<f64>) -> Outcome<Notifications> {
        Ok(Notifications { port: slf, until: self::timeout(timeout)? })
    }
}

impl Port {
    fn received(
        &self,
        py: Python<'_>,
        into: &mut [u8],
        until: Option<Duration>,
    ) -> Outcome<ayre::Message> {
        match self.with_plain(|port| port.try_recv(into))? {
            Some(found) => Ok(found),
            None => self.wait(py, |port| port.recv(into, until)),
        }
    }
}

/// An iterator over the messages of a port.
#[pyclass(frozen, module = "ayre", name = "Messages")]
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) port: Py<Port>,
    pub(crate) until: Option<Duration>,
}

#[pymethods]
impl Messages {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Outcome<Option<Message>> {
        let mut data = [0; LONGEST];
        let found = unless_late(self.port.get().received(py, &mut data, self.until))?;
        Ok(found.map(|found| Message::new(py, found, &data)))
    }
}

/// An iterator over the notifications of a port.
#[pyclass(frozen, module = "ayre", name = "Notifications")]
#[derive(Debug)]
pub(crate) struct Notifications {
    pub(crate) port: Py<Port>,
    pub(crate) until: Option<Duration>,
}

#[pymethods]
impl Notifications {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Outcome<Option<Notification>> {
        let port = self.port.get();
        let found = unless_late(port.wait(py, |port| port.wait_notification(self.until)))?;
        Ok(found.map(Notification))
    }
}

fn unless_late<T>(found: Outcome<T>) -> Outcome<Option<T>> {
    match found {
        Err(Failure::Receive(ReceiveError::TimedOut)) => Ok(None),
        found => found.map(Some),
    }
}

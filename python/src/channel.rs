//! Logical channels: calls with an order and a priority of their own.
use crate::active::Messenger;
use crate::buffer::Room;
use crate::call::{Head, Target, counted, with_id};
use crate::error::Outcome;
use crate::value::Peer;
use ayre::channel::ChannelOptions;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A channel of a messenger: calls by it have an order and a priority of their own.
///
/// `number` is from 1 to 255: both ends open the channel under it. `priority` is from 0 to 7, and
/// channels of higher priority always come first. `weight` from 1 to 16 is the share among channels
/// of one priority. `room` is the number of bytes of messages that may wait here for one peer; one
/// message always fits. Opening it again replaces its options. Sends nothing, and does not block.
#[pyclass(frozen, module = "ayre", name = "Channel")]
#[derive(Debug)]
pub(crate) struct Channel {
    /// The messenger that has opened it.
    #[pyo3(get)]
    messenger: Py<Messenger>,
    channel: ayre::channel::Channel,
    /// The number that both ends know.
    #[pyo3(get)]
    number: u8,
}

#[pymethods]
impl Channel {
    #[new]
    #[pyo3(signature = (messenger, number, priority=0, weight=1, room=1 << 20))]
    fn new(
        messenger: Py<Messenger>,
        number: u8,
        priority: u8,
        weight: u8,
        room: usize,
    ) -> Outcome<Self> {
        let options = ChannelOptions::new().priority(priority).weight(weight).room(room);
        let port = Python::attach(|py| messenger.get().port.clone_ref(py));
        let channel =
            port.get().with_messenger(|messenger| messenger.channels().open(number, options))?;
        Ok(Self { messenger, channel, number })
    }

    /// Calls a handler of a peer by the channel. Blocks until the message is sent or has room in
    /// the channel's queue, and runs handlers meanwhile. The rest is as for `Messenger.call`.
    #[pyo3(signature = (peer, handler, *arguments, payload=None))]
    fn call(
        &self,
        peer: Peer,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (py, head, mut room) = (arguments.py(), Head::new(handler, arguments)?, Room::new());
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        self.messenger.get().detached(py, |messenger| {
            let mut on = messenger.on(self.channel);
            counted!(head.count, N => {
                let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
                Ok(on.call(&mut (), peer.0, handler, arguments, bytes)?)
            })
        })
    }

    /// Calls a handler of a peer by the channel, if the message can be sent or has room in the
    /// channel's queue. Does not block, and runs no handler. A message may have any length.
    ///
    /// Raises BusyError where there is no room.
    #[pyo3(signature = (peer, handler, *arguments, payload=None))]
    fn try_call(
        &self,
        peer: Peer,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (py, head, mut room) = (arguments.py(), Head::new(handler, arguments)?, Room::new());
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        self.messenger.get().detached(py, |messenger| {
            let mut on = messenger.on(self.channel);
            counted!(head.count, N => {
                let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
                Ok(on.try_call(peer.0, handler, arguments, bytes)?)
            })
        })
    }

    /// Stops running messages of the channel. When its window is full, further ones stay at their
    /// senders. Other channels go on. Does not block.
    fn hold(&self, py: Python<'_>) -> Outcome<()> {
        self.messenger.get().detached(py, |messenger| {
            messenger.channels().hold(self.channel);
            Ok(())
        })
    }

    /// Runs messages of a held channel again, first those that have come meanwhile: in the next
    /// calls that run handlers. Does not block.
    fn release(&self, py: Python<'_>) -> Outcome<()> {
        self.messenger.get().detached(py, |messenger| {
            messenger.channels().release(self.channel);
            Ok(())
        })
    }

    /// Runs messages that have come by the channel, held or not, and those without a channel. Does
    /// not block. Returns how many handlers have run. Raises what a handler has raised.
    fn poll(&self, py: Python<'_>) -> Outcome<usize> {
        self.messenger
            .get()
            .detached(py, |messenger| Ok(messenger.channels().poll_only(&mut (), self.channel)))
    }

    /// The bytes of messages that wait here for a peer by the channel.
    fn backlog(&self, py: Python<'_>, peer: Peer) -> Outcome<usize> {
        self.messenger
            .get()
            .detached(py, |messenger| Ok(messenger.channels().backlog(peer.0, self.channel)))
    }

    fn __repr__(&self) -> String {
        format!("<ayre.Channel {}>", self.number)
    }
}

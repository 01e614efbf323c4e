//! Multicast: groups whose members come and go, and get the same messages in the same order.
use crate::active::Messenger;
use crate::buffer::Room;
use crate::call::{Call, Head, Target, counted, with_id};
use crate::error::{Failure, Outcome};
use crate::port::Port;
use crate::signals::Signals;
use crate::value::Peer;
use ayre::PeerId;
use ayre::multicast::{Change, MulticastOptions};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A view of a group: its members, at a place among its messages.
#[pyclass(frozen, get_all, module = "ayre", name = "View")]
#[derive(Debug)]
pub(crate) struct View {
    /// The number of the view in the group, from 1.
    number: u64,
    /// The place of the view among all messages and views of the group.
    ticket: u64,
    /// All members, in the order in which they joined.
    members: Vec<u16>,
    /// The members that were in no view before.
    joined: Vec<u16>,
}

#[pymethods]
impl View {
    fn __repr__(&self) -> String {
        let Self { number, ticket, members, joined } = self;
        format!("View(number={number}, ticket={ticket}, members={members:?}, joined={joined:?})")
    }
}

/// A membership of a port in a group: `messenger.found` and `messenger.join` make it.
#[pyclass(frozen, module = "ayre", name = "Membership")]
#[derive(Debug)]
pub(crate) struct Membership {
    /// The messenger of the port.
    #[pyo3(get)]
    messenger: Py<Messenger>,
    membership: ayre::multicast::Membership,
}

/// The function that the engine runs at changes.
fn watching(
    function: Option<Py<PyAny>>,
    signals: Arc<Signals>,
) -> impl FnMut(&mut (), &Change) + Send + 'static {
    let numbers = |peers: &[PeerId]| peers.iter().map(|peer| peer.0).collect();
    move |(), change| {
        let Some(function) = &function else { return };
        let view = match change {
            Change::View { number, ticket, members, joined } => Some(View {
                number: *number,
                ticket: *ticket,
                members: numbers(members),
                joined: numbers(joined),
            }),
            _ => None,
        };
        Python::try_attach(|py| {
            let function = function.bind(py);
            if let Err(error) = function.call1((view,)) {
                signals.keep(py, error, function);
            }
        });
    }
}

fn options(window: u16, requests: u16) -> MulticastOptions {
    MulticastOptions::new().window(window).requests(requests)
}

fn port_of(messenger: &Bound<'_, Messenger>) -> Py<Port> {
    messenger.get().port.clone_ref(messenger.py())
}

#[pymethods]
impl Messenger {
    /// Founds a group, whose only member is this port, under a name of 1 to 64 bytes. Others join
    /// through any member. Does not block.
    ///
    /// `window` is the number of messages that a member may still lack. `requests` is that of
    /// messages of one member that have no place in the order yet. Further messages wait. Both are
    /// at least 1, and equal at all members.
    ///
    /// `on_change` is called with each new `View`, and with None when the port is no member any
    /// more. It runs where handlers run, under their rules. All processes know each other by the
    /// same numbers, as the ranks of a job do.
    #[pyo3(signature = (name, on_change=None, *, window=64, requests=8))]
    fn found(
        slf: &Bound<'_, Self>,
        name: &str,
        on_change: Option<Py<PyAny>>,
        window: u16,
        requests: u16,
    ) -> Outcome<Membership> {
        let port = port_of(slf);
        let watch = watching(on_change, port.get().signals.clone());
        let membership = port.get().with_messenger(|messenger| {
            messenger.multicast().found(name, options(window, requests), watch)
        })?;
        Ok(Membership { messenger: slf.clone().unbind(), membership })
    }

    /// Joins a group through one of its members, `door`. Blocks until this port is a member or is
    /// refused, and runs handlers meanwhile. `on_change` first gets the view that adds this port;
    /// all later messages of the group follow.
    ///
    /// Raises RefusedError, UnreachableError and InvalidError. After an exception that a signal has
    /// raised, the port may still become a member. The rest is as for `found`.
    #[pyo3(signature = (name, door, on_change=None, *, window=64, requests=8))]
    fn join(
        slf: &Bound<'_, Self>,
        name: &str,
        door: Peer,
        on_change: Option<Py<PyAny>>,
        window: u16,
        requests: u16,
    ) -> Outcome<Membership> {
        let (py, port) = (slf.py(), port_of(slf));
        let watch = watching(on_change, port.get().signals.clone());
        let options = options(window, requests);
        let membership = port.get().with_messenger(|messenger| {
            py.detach(|| messenger.multicast().join(&mut (), name, door.0, options, watch))
        })?;
        Ok(Membership { messenger: slf.clone().unbind(), membership })
    }

    /// Calls a handler at all members of a group of which this port is none, through a member,
    /// `door`. Blocks until the message has its place in the order, and runs handlers meanwhile.
    ///
    /// Raises RefusedError without effect, UnreachableError, and UnknownOutcomeError where the door
    /// has gone meanwhile.
    #[pyo3(signature = (name, door, handler, *arguments, payload=None))]
    fn send_through(
        &self,
        name: &str,
        door: Peer,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (py, head, mut room) = (arguments.py(), Head::new(handler, arguments)?, Room::new());
        let (bytes, to) = (payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?, door.0);
        self.port.get().with_messenger(|messenger| {
            py.detach(|| {
                let mut groups = messenger.multicast();
                counted!(head.count, N => {
                    let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
                    Ok::<_, Failure>(
                        groups.send_through(&mut (), (name, to), handler, arguments, bytes)?,
                    )
                })
            })
        })
    }
}

#[pymethods]
impl Membership {
    /// Calls a handler at all members, this port among them, with at most 1 MiB, arguments
    /// included. Blocks for room, and runs handlers meanwhile. All members run the messages and
    /// changes of the group in the same order.
    ///
    /// Raises NoMemberError.
    #[pyo3(signature = (handler, *arguments, payload=None))]
    fn send(
        &self,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (py, head, mut room) = (arguments.py(), Head::new(handler, arguments)?, Room::new());
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        self.messenger.get().detached(py, |messenger| {
            let (mut groups, to) = (messenger.multicast(), self.membership);
            counted!(head.count, N => {
                let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
                Ok(groups.send(&mut (), to, handler, arguments, bytes)?)
            })
        })
    }

    /// Calls a handler at all members as `send` does, if there is room. Does not block, and runs no
    /// handler. Raises BusyError where there is none.
    #[pyo3(signature = (handler, *arguments, payload=None))]
    fn try_send(
        &self,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (py, head, mut room) = (arguments.py(), Head::new(handler, arguments)?, Room::new());
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        self.messenger.get().detached(py, |messenger| {
            let (mut groups, to) = (messenger.multicast(), self.membership);
            counted!(head.count, N => {
                let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
                Ok(groups.try_send(to, handler, arguments, bytes)?)
            })
        })
    }

    /// Leaves the group, behind all messages of this port. Blocks until no member needs this port
    /// any more, and runs handlers meanwhile.
    fn leave(&self, py: Python<'_>) -> Outcome<()> {
        self.messenger
            .get()
            .detached(py, |messenger| Ok(messenger.multicast().leave(&mut (), self.membership)?))
    }

    /// The members in the order in which they joined, as this port knows them: none if it is no
    /// member.
    #[getter]
    fn members(&self, py: Python<'_>) -> Outcome<Vec<u16>> {
        let members = self
            .messenger
            .get()
            .detached(py, |messenger| Ok(messenger.multicast().members(self.membership)))?;
        Ok(members.iter().map(|member| member.0).collect())
    }
}

#[pymethods]
impl Call {
    /// Calls a handler at all members of a group of this port. Does not block. Raises BusyError
    /// where there is no room. The rest is as for `send`.
    #[pyo3(signature = (to, handler, *arguments, payload=None))]
    fn multicast(
        &self,
        to: &Membership,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (head, mut room) = (Head::new(handler, arguments)?, Room::new());
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        self.with(|call| call.multicast(to.membership, &head, bytes))
    }
}

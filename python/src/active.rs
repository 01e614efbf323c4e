//! Active messages: handlers in Python, and calls of them.
use crate::buffer::Room;
use crate::call::{Call, Head, SHORT, Target, counted, with_id};
use crate::error::{Failure, Outcome};
use crate::port::Port;
use crate::signals::Signals;
use crate::value::{Peer, timeout};
use ayre::PostError;
use ayre::active::{DropCause, MessengerOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

/// A port that calls handlers of its peers, and runs its own.
///
/// The port stays valid for everything but short messages, which belong to handlers from now on.
/// The limits are in bytes. `overflow` is that of messages of handlers that wait for room.
/// `landing` is the memory for each peer that sends long messages: a power of two from 4 KiB to
/// 16 MiB. `longest` is the longest payload that is accepted, at most 64 MiB. A port that is a
/// messenger already stays as it is.
#[pyclass(frozen, subclass, module = "ayre._ayre", name = "Messenger")]
#[derive(Debug)]
pub(crate) struct Messenger {
    /// The port.
    #[pyo3(get)]
    pub(crate) port: Py<Port>,
}

/// The function that the engine runs with a message.
fn running<const N: usize>(
    function: Py<PyAny>,
    signals: Arc<Signals>,
) -> impl FnMut(&mut (), &mut ayre::active::Call<'_>, [u64; N], &[u8]) + Send + 'static {
    move |(), call, arguments, payload| {
        let ran = Python::try_attach(|py| {
            let function = function.bind(py);
            let ran = run(function, call, &arguments, payload);
            ran.map_err(|failure| signals.keep(py, failure.into(), function)).is_ok()
        });
        if ran != Some(true) {
            // The engine takes it for a panic of a handler. No hook speaks of it.
            resume_unwind(Box::new("the handler has raised an exception"));
        }
    }
}

fn run(
    function: &Bound<'_, PyAny>,
    call: &mut ayre::active::Call<'_>,
    arguments: &[u64],
    payload: &[u8],
) -> Outcome<()> {
    let py = function.py();
    Call::lend(py, call, |token| {
        let mut all = vec![token.into_any()];
        for argument in arguments {
            let Ok(argument) = argument.into_pyobject(py);
            all.push(argument.into_any());
        }
        all.push(PyBytes::new(py, payload).into_any());
        function.call1(PyTuple::new(py, all)?)?;
        Ok(())
    })
}

/// A message whose handler was not run, or has failed, here or at a peer.
#[pyclass(frozen, get_all, module = "ayre", name = "DroppedCall")]
#[derive(Debug)]
pub(crate) struct DroppedCall {
    /// The peer: its sender, or its destination if `is_ours`.
    peer: u16,
    /// The id of the handler.
    handler: u32,
    /// "unknown": there is no such handler. "malformed": it takes other arguments, or not so long a
    /// payload. "failed": it has raised an exception, or panicked.
    cause: &'static str,
    /// Whether this port has sent the message.
    is_ours: bool,
}

#[pymethods]
impl DroppedCall {
    fn __repr__(&self) -> String {
        let Self { peer, handler, cause, is_ours } = self;
        let is_ours = if *is_ours { "True" } else { "False" };
        format!("DroppedCall(peer={peer}, handler={handler}, cause='{cause}', is_ours={is_ours})")
    }
}

impl Messenger {
    /// Makes a call of the engine's messenger, without the interpreter's lock.
    pub(crate) fn detached<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut ayre::active::Messenger<()>) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        self.port.get().with_messenger(|messenger| py.detach(|| call(messenger)))
    }
}

#[pymethods]
impl Messenger {
    #[new]
    #[pyo3(signature = (port, overflow=None, landing=None, longest=None))]
    fn new(
        port: Py<Port>,
        overflow: Option<usize>,
        landing: Option<usize>,
        longest: Option<usize>,
    ) -> Outcome<Self> {
        let mut options = MessengerOptions::new();
        for (bytes, set) in [
            (overflow, MessengerOptions::overflow as fn(_, _) -> _),
            (landing, MessengerOptions::landing),
            (longest, MessengerOptions::longest),
        ] {
            if let Some(bytes) = bytes {
                options = set(options, bytes);
            }
        }
        port.get().become_messenger(options)?;
        Ok(Self { port })
    }

    /// Registers a function as the handler of a name of 1 to 64 bytes, or of an id from 32 to 255
    /// on which the processes have agreed. Returns its id. `handler` is the decorator for it.
    ///
    /// The function gets the call, as many numbers as `arguments` says, and the payload as bytes.
    #[pyo3(signature = (name, function, arguments=0))]
    fn register(&self, name: Name, function: Py<PyAny>, arguments: usize) -> Outcome<u32> {
        let port = self.port.get();
        let signals = port.signals.clone();
        port.with_messenger(|messenger| {
            counted!(arguments, N => {
                let run = running::<N>(function, signals);
                Ok::<_, Failure>(match name {
                    Name::Text(name) => messenger.register(&name, run)?.id(),
                    Name::Id(id) => messenger.register_static(id, run)?.id(),
                })
            })
        })
    }

    /// Calls a handler of a peer, by its name, its id or its handler object.
    ///
    /// Up to 8 arguments have 64 bits each, with or without a sign. The payload is bytes, an array
    /// or another buffer, of at most 64 MiB.
    ///
    /// Blocks until the message has room, and runs handlers meanwhile. Raises what one of them
    /// raises, once the message is sent. A handler that the peer does not have is no error here:
    /// see `failures`.
    #[pyo3(signature = (peer, handler, *arguments, payload=None))]
    fn call(
        &self,
        peer: Peer,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let (py, port) = (arguments.py(), self.port.get());
        let head = Head::new(handler, arguments)?;
        let mut room = Room::new();
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        if 8 * head.count + bytes.len() <= SHORT
            && let Some(()) =
                port.with_messenger(|messenger| post(messenger, peer, &head, bytes))?
        {
            return Ok(());
        }
        port.with_messenger(|messenger| {
            py.detach(|| {
                counted!(head.count, N => {
                    let handler = with_id::<N>(head.handler)?;
                    let arguments = head.arguments::<N>();
                    Ok::<_, Failure>(messenger.call(&mut (), peer.0, handler, arguments, bytes)?)
                })
            })
        })
    }

    /// Calls a handler as `call` does, with at most 1024 bytes, arguments included. Does not block,
    /// and runs no handler. Raises BusyError where there is no room.
    #[pyo3(signature = (peer, handler, *arguments, payload=None))]
    fn try_call(
        &self,
        peer: Peer,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let head = Head::new(handler, arguments)?;
        let mut room = Room::new();
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        self.port.get().with_messenger(|messenger| {
            counted!(head.count, N => {
                let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
                Ok::<_, Failure>(messenger.try_call(peer.0, handler, arguments, bytes)?)
            })
        })
    }

    /// Runs the handlers of messages that have come. Does not block. Returns how many have run.
    /// Raises what a handler has raised.
    fn poll(&self) -> Outcome<usize> {
        self.port.get().with_messenger(|messenger| Ok::<_, Failure>(messenger.poll(&mut ())))
    }

    /// Waits until handlers have run, for `timeout` seconds; for ever without one. Returns how many
    /// have run.
    ///
    /// Raises what a handler has raised, TimedOutError, and PeerDiedError once for each peer.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> Outcome<usize> {
        let until: Option<Duration> = self::timeout(timeout)?;
        self.port.get().with_messenger(|messenger| py.detach(|| messenger.wait(&mut (), until)))
    }

    /// Waits until all living peers have begun as many syncs as this port. Blocks, and runs
    /// handlers meanwhile. Then all handlers that peers had registered before are known here, and
    /// all messages that they had sent before have been run.
    fn sync(&self, py: Python<'_>) -> Outcome<()> {
        self.port.get().with_messenger(|messenger| py.detach(|| messenger.sync(&mut ())))
    }

    /// Waits until all messages are sent that handlers have sent. Blocks, and runs handlers
    /// meanwhile. A program that will not poll for a while calls it first.
    fn flush(&self, py: Python<'_>) -> Outcome<()> {
        self.port.get().with_messenger(|messenger| {
            py.detach(|| messenger.flush(&mut ()));
            Ok::<_, Failure>(())
        })
    }

    /// Gives the short messages back to the port, and forgets all handlers. Messages that were kept
    /// for peers are lost: `flush` sends them before. Does not block.
    fn stop(&self) -> Outcome<()> {
        self.port.get().end_messenger()
    }

    /// Takes messages whose handlers were not run or have failed, the oldest first. The last 1024
    /// are kept.
    fn failures(&self) -> Outcome<Vec<DroppedCall>> {
        self.port.get().with_messenger(|messenger| {
            let taken = messenger.failures().map(|call| DroppedCall {
                peer: call.peer.0,
                handler: call.handler,
                cause: match call.cause {
                    DropCause::Unknown => "unknown",
                    DropCause::Malformed => "malformed",
                    DropCause::Panicked => "failed",
                },
                is_ours: call.is_ours,
            });
            Ok::<_, Failure>(taken.collect())
        })
    }

    /// Whether a peer has announced a handler with this number of arguments.
    #[pyo3(signature = (peer, handler, arguments=0))]
    fn is_announced(&self, peer: Peer, handler: Target, arguments: usize) -> Outcome<bool> {
        self.port.get().with_messenger(|messenger| {
            counted!(arguments, N => {
                Ok::<_, Failure>(messenger.is_announced(peer.0, with_id::<N>(handler.0)?))
            })
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<ayre.Messenger of {}>", self.port.bind(py).repr()?))
    }
}

/// The name or the static id under which a handler is registered.
#[derive(Debug, FromPyObject)]
enum Name {
    Text(String),
    Id(u32),
}

/// Posts a short message; None if it has no room.
fn post(
    messenger: &mut ayre::active::Messenger<()>,
    peer: Peer,
    head: &Head,
    bytes: &[u8],
) -> Outcome<Option<()>> {
    counted!(head.count, N => {
        let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
        match messenger.try_call(peer.0, handler, arguments, bytes) {
            Err(PostError::Busy(_)) => Ok(None),
            posted => Ok(Some(posted?)),
        }
    })
}

//! Active messages: handlers in Python, and calls of them.
use crate::buffer::Room;
use crate::error::{Failure, Outcome};
use crate::port::{PAUSES, Port, Signals};
use crate::value::{Peer, Word, timeout};
use ayre::active::{ARGUMENTS_MAX, DropCause, Handler, MessengerOptions};
use ayre::{Fault, PeerId, PostError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most bytes of a message that has room or has none, arguments included.
const SHORT: usize = 1024;
/// The most bytes of a payload.
const LONGEST: usize = 64 << 20;

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

/// A handler as a caller names it: by its name, its id, or an object that has an `id`.
#[derive(Clone, Copy, Debug)]
struct Target(u32);

impl<'py> FromPyObject<'_, 'py> for Target {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = object.extract::<&str>() {
            return Ok(Self(Handler::<0>::named(name).id()));
        }
        match object.extract::<u32>() {
            Ok(id) => Ok(Self(id)),
            Err(_) => Ok(Self(object.getattr("id")?.extract()?)),
        }
    }
}

/// A message: the handler, its arguments, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Head {
    handler: u32,
    words: [u64; ARGUMENTS_MAX],
    count: usize,
}

impl Head {
    fn new(Target(handler): Target, arguments: &Bound<'_, PyTuple>) -> Outcome<Self> {
        let (mut words, count) = ([0; ARGUMENTS_MAX], arguments.len());
        if count > ARGUMENTS_MAX {
            return Err(too_many());
        }
        for (word, argument) in words.iter_mut().zip(arguments) {
            *word = argument.extract::<Word>()?.0;
        }
        Ok(Self { handler, words, count })
    }

    fn arguments<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|at| self.words[at])
    }
}

fn too_many() -> Failure {
    Failure::argument("a call has at most 8 arguments")
}

/// Makes a call for handlers of this number of arguments.
macro_rules! counted {
    ($count:expr, $many:ident => $call:expr) => {
        counted!($count, $many => $call; 0 1 2 3 4 5 6 7 8)
    };
    ($count:expr, $many:ident => $call:expr; $($number:literal)+) => {
        match $count {
            $($number => {
                const $many: usize = $number;
                $call
            })+
            _ => Err(too_many()),
        }
    };
}

fn with_id<const N: usize>(id: u32) -> Outcome<Handler<N>> {
    Handler::with_id(id).ok_or_else(|| Failure::argument("no handler has such an id"))
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
    let sends = Mutex::new(Some(Vec::new()));
    let token = Bound::new(py, Call { source: call.source().0, sends })?;
    let mut all = vec![token.clone().into_any()];
    for argument in arguments {
        let Ok(argument) = argument.into_pyobject(py);
        all.push(argument.into_any());
    }
    all.push(PyBytes::new(py, payload).into_any());
    let ran = function.call1(PyTuple::new(py, all)?);
    let sends = token.get().end();
    ran?;
    sends.iter().flatten().try_for_each(|send| send.post(call))
}

/// The call that a handler runs for, by which it replies.
///
/// Messages are sent when the handler returns; one that raises sends none. A message that cannot be
/// sent then raises as the handler itself does.
#[pyclass(frozen, module = "ayre", name = "Call")]
#[derive(Debug)]
pub(crate) struct Call {
    /// The peer that has called.
    #[pyo3(get)]
    source: u16,
    sends: Mutex<Option<Vec<Posted>>>,
}

/// A message that a handler sends.
#[derive(Debug)]
struct Posted {
    to: u16,
    head: Head,
    payload: Vec<u8>,
}

impl Posted {
    fn post(&self, call: &mut ayre::active::Call<'_>) -> Outcome<()> {
        counted!(self.head.count, N => {
            let handler = with_id::<N>(self.head.handler)?;
            Ok(call.send(PeerId(self.to), handler, self.head.arguments::<N>(), &self.payload)?)
        })
    }
}

impl Call {
    /// Ends the call: the handler has returned.
    fn end(&self) -> Option<Vec<Posted>> {
        self.sends.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Call {
    /// Calls a handler of the peer that has called. The rest is as for `send`.
    #[pyo3(signature = (handler, *arguments, payload=None))]
    fn reply(
        &self,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        self.send(Peer(PeerId(self.source)), handler, arguments, payload)
    }

    /// Calls a handler of any peer, when this handler returns. Does not block: a message without
    /// room is kept and sent later, in order.
    ///
    /// Raises ClosedError after the handler has returned.
    #[pyo3(signature = (peer, handler, *arguments, payload=None))]
    fn send(
        &self,
        peer: Peer,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let head = Head::new(handler, arguments)?;
        let mut room = Room::new();
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        if bytes.len() > LONGEST {
            return Err(Fault::TooLong.into());
        }
        let mut sends = self.sends.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || Failure::closed("the handler has returned: a call is valid until then");
        let sends = sends.as_mut().ok_or_else(ended)?;
        sends.push(Posted { to: peer.0.0, head, payload: bytes.to_vec() });
        Ok(())
    }
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
    /// raises; then a message of up to 1 KiB may not be sent. A handler that the peer does not have
    /// is no error here: see `failures`.
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
        if 8 * head.count + bytes.len() <= SHORT {
            return match port.with_messenger(|messenger| post(messenger, peer, &head, bytes))? {
                Some(()) => Ok(()),
                None => when_there_is_room(port, py, |it| post(it, peer, &head, bytes)),
            };
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

/// Posts again and again, and runs handlers, until there was room. Looks for signals meanwhile.
fn when_there_is_room(
    port: &Port,
    py: Python<'_>,
    mut post: impl FnMut(&mut ayre::active::Messenger<()>) -> Outcome<Option<()>> + Send,
) -> Outcome<()> {
    let mut rounds = 0;
    loop {
        let posted = port.with_messenger(|messenger| {
            py.detach(|| {
                for _ in 0..PAUSES {
                    if let Some(()) = post(messenger)? {
                        return Ok(Some(()));
                    }
                    if messenger.poll(&mut ()) > 0 {
                        // One of them may have raised an exception.
                        return Ok(None);
                    }
                    messenger.port().pause(&mut rounds);
                }
                Ok::<_, Failure>(None)
            })
        })?;
        if posted.is_some() {
            return Ok(());
        }
        py.check_signals()?;
    }
}

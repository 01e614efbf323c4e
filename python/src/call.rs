//! Calls of handlers: what they carry, and the one that a handler runs for.
//!
//! The engine lends its call to a handler for as long as that runs. The object that Python gets
//! finds it in a variable of the thread, and only there: it may outlive the handler.
use crate::buffer::Room;
use crate::error::{Failure, Outcome};
use crate::value::{Peer, Word};
use ayre::PeerId;
use ayre::active::{ARGUMENTS_MAX, Handler};
use ayre::channel::Channel;
use ayre::multicast::Membership;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use scoped_tls_hkt::scoped_thread_local;

/// The most bytes of a message that has room or has none, arguments included.
pub(crate) const SHORT: usize = 1024;

/// A handler as a caller names it: by its name, its id, or an object that has an `id`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target(pub(crate) u32);

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
pub(crate) struct Head {
    pub(crate) handler: u32,
    words: [u64; ARGUMENTS_MAX],
    pub(crate) count: usize,
}

impl Head {
    pub(crate) fn new(Target(handler): Target, arguments: &Bound<'_, PyTuple>) -> Outcome<Self> {
        let (mut words, count) = ([0; ARGUMENTS_MAX], arguments.len());
        if count > ARGUMENTS_MAX {
            return Err(too_many());
        }
        for (word, argument) in words.iter_mut().zip(arguments) {
            *word = argument.extract::<Word>()?.0;
        }
        Ok(Self { handler, words, count })
    }

    pub(crate) fn arguments<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|at| self.words[at])
    }
}

pub(crate) fn too_many() -> Failure {
    Failure::argument("a call has at most 8 arguments")
}

/// Makes a call for handlers of this number of arguments.
macro_rules! counted {
    ($count:expr, $many:ident => $call:expr) => {
        $crate::call::counted!($count, $many => $call; 0 1 2 3 4 5 6 7 8)
    };
    ($count:expr, $many:ident => $call:expr; $($number:literal)+) => {
        match $count {
            $($number => {
                const $many: usize = $number;
                $call
            })+
            _ => Err($crate::call::too_many()),
        }
    };
}

pub(crate) use counted;

pub(crate) fn with_id<const N: usize>(id: u32) -> Outcome<Handler<N>> {
    Handler::with_id(id).ok_or_else(|| Failure::argument("no handler has such an id"))
}

/// The number of a channel, as a caller gives it: a number, or an object that has a `number`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By(pub(crate) Channel);

impl<'py> FromPyObject<'_, 'py> for By {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = match object.extract::<u8>() {
            Ok(number) => number,
            Err(_) => object.getattr("number")?.extract()?,
        };
        let channel = Channel::with_number(number);
        Ok(Self(channel.ok_or_else(|| Failure::argument("a channel has a number from 1 to 255"))?))
    }
}

/// The engine's call, with the object that stands for it.
struct Lent<'a, 'b> {
    call: &'a mut ayre::active::Call<'b>,
    token: &'a Call,
}

/// The engine's call, as a handler uses it.
pub(crate) trait Sending {
    fn is_of(&self, token: &Call) -> bool;
    fn send(&mut self, to: PeerId, by: Option<By>, head: &Head, payload: &[u8]) -> Outcome<()>;
    fn multicast(&mut self, to: Membership, head: &Head, payload: &[u8]) -> Outcome<()>;
}

impl Sending for Lent<'_, '_> {
    fn is_of(&self, token: &Call) -> bool {
        std::ptr::eq(self.token, token)
    }

    fn send(&mut self, to: PeerId, by: Option<By>, head: &Head, payload: &[u8]) -> Outcome<()> {
        counted!(head.count, N => {
            let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
            match by {
                None => self.call.send(to, handler, arguments, payload)?,
                Some(By(channel)) => self.call.on(channel).send(to, handler, arguments, payload)?,
            }
            Ok(())
        })
    }

    fn multicast(&mut self, to: Membership, head: &Head, payload: &[u8]) -> Outcome<()> {
        counted!(head.count, N => {
            let (handler, arguments) = (with_id::<N>(head.handler)?, head.arguments::<N>());
            Ok(self.call.multicast(to, handler, arguments, payload)?)
        })
    }
}

scoped_thread_local!(
    /// The call of the handler that runs on this thread.
    static mut RUNNING: for<'a> &'a mut (dyn Sending + 'a)
);

/// The call that a handler runs for, by which it replies. It is valid until the handler returns, on
/// the handler's thread.
#[pyclass(frozen, module = "ayre", name = "Call")]
#[derive(Debug)]
pub(crate) struct Call {
    /// The peer that has called.
    #[pyo3(get)]
    source: u16,
}

impl Call {
    /// Runs a handler with the object that stands for the engine's call.
    pub(crate) fn lend<'py>(
        py: Python<'py>,
        call: &mut ayre::active::Call<'_>,
        run: impl FnOnce(Bound<'py, Self>) -> Outcome<()>,
    ) -> Outcome<()> {
        let object = Bound::new(py, Self { source: call.source().0 })?;
        RUNNING.set(&mut Lent { call, token: object.get() }, || run(object.clone()))
    }

    /// Does something by the engine's call, if that is still lent.
    pub(crate) fn with(&self, act: impl FnOnce(&mut dyn Sending) -> Outcome<()>) -> Outcome<()> {
        let ended = || Failure::closed("a call is valid until its handler returns, and only there");
        if !RUNNING.is_set() {
            return Err(ended());
        }
        RUNNING.with(|running| match running.is_of(self) {
            true => act(running),
            false => Err(ended()),
        })
    }
}

#[pymethods]
impl Call {
    /// Calls a handler of the peer that has called. The rest is as for `send`.
    #[pyo3(signature = (handler, *arguments, payload=None, channel=None))]
    fn reply(
        &self,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
        channel: Option<By>,
    ) -> Outcome<()> {
        self.send(Peer(PeerId(self.source)), handler, arguments, payload, channel)
    }

    /// Calls a handler of any peer, at once: also where this handler raises later. Does not block:
    /// a message without room is kept and sent later, in order.
    ///
    /// The parameters are those of `Messenger.call`. With a `channel` the message goes by that.
    /// Raises BusyError where what is kept has reached the messenger's limit, or the channel's
    /// queue is full; ClosedError after the handler has returned, and in another thread.
    #[pyo3(signature = (peer, handler, *arguments, payload=None, channel=None))]
    fn send(
        &self,
        peer: Peer,
        handler: Target,
        arguments: &Bound<'_, PyTuple>,
        payload: Option<&Bound<'_, PyAny>>,
        channel: Option<By>,
    ) -> Outcome<()> {
        let head = Head::new(handler, arguments)?;
        let mut room = Room::new();
        let bytes = payload.map_or(Ok(&[][..]), |payload| room.bytes(payload))?;
        self.with(|call| call.send(peer.0, channel, &head, bytes))
    }
}

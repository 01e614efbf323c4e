//! Exceptions: the classes are Python's, in `ayre/_errors.py`.
use ayre::collective::GroupError;
use ayre::multicast::MulticastError;
use ayre::stream::{PushError, StreamError, StreamFailure};
use ayre::{Busy, Fault, PostError, ReceiveError, SetupError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::borrow::Cow;

/// The end of a call that did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    Post(PostError),
    Receive(ReceiveError),
    Setup(SetupError),
    Group(GroupError),
    Multicast(MulticastError),
    Stream(StreamError),
    /// A stream has no room.
    StreamBusy,
    /// The object cannot be used, for this reason.
    Misuse(Misuse, Cow<'static, str>),
    /// Python itself has raised it.
    Python(PyErr),
}

/// Reasons why an object cannot be used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Misuse {
    Argument,
    Buffer,
    Closed,
    InUse,
    Inherited,
    Type,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn argument(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Misuse(Misuse::Argument, what.into())
    }

    pub(crate) fn closed(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Misuse(Misuse::Closed, what.into())
    }

    /// The exception, as Python makes it.
    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        let (class, text, more) = match self {
            Self::Python(error) => return Ok(error),
            Self::Stream(StreamError::Failed(failure)) => return stream_failed(py, failure),
            Self::Stream(StreamError::Refused(peer, answer)) => {
                let text = StreamError::Refused(peer, answer).to_string();
                return two(py, "entry_refused", text, (answer as i32, peer.0.into()));
            }
            Self::Stream(StreamError::TooLong) | Self::Multicast(MulticastError::TooLong) => {
                fault(Fault::TooLong)
            }
            Self::Stream(error @ StreamError::Interrupted) => ("Error", error.to_string(), None),
            Self::StreamBusy => ("busy", PushError::Busy.to_string(), Some(STREAM_BUSY)),
            Self::Multicast(error) => {
                let (class, more) = multicast(error);
                (class, error.to_string(), more)
            }
            Self::Post(PostError::Busy(why)) => ("busy", why.to_string(), Some(why as i32)),
            Self::Post(PostError::Fault(why)) => fault(why),
            Self::Receive(error) => {
                let (class, more) = match error {
                    ReceiveError::TooLong(len) => ("TooLongError", i32::try_from(len).ok()),
                    ReceiveError::PeerDied(peer) => ("PeerDiedError", Some(peer.0.into())),
                    ReceiveError::TimedOut => ("TimedOutError", None),
                };
                (class, error.to_string(), more)
            }
            Self::Setup(SetupError::Fault(why)) => fault(why),
            Self::Setup(error) => (setup(&error), error.to_string(), errno(&error)),
            Self::Group(error) => (group(&error), error.to_string(), member(&error)),
            Self::Misuse(why, what) => (misuse(why), what.into_owned(), None),
        };
        let class = errors(py)?.getattr(class)?;
        let made = match more {
            Some(more) => class.call1((text, more))?,
            None => class.call1((text,))?,
        };
        Ok(PyErr::from_value(made))
    }
}

/// The module with the classes of exceptions.
fn errors(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("ayre._errors")?.unbind()));
    Ok(module?.bind(py))
}

/// The exception of a fault, for programs that look at one instead of catching it.
pub(crate) fn of_fault(py: Python<'_>, why: Fault) -> PyErr {
    Failure::from(why).exception(py).unwrap_or_else(|error| error)
}

/// The exception of a stream's failure, for programs that look at one instead of catching it.
pub(crate) fn of_stream(py: Python<'_>, failure: StreamFailure) -> PyErr {
    stream_failed(py, failure).unwrap_or_else(|error| error)
}

fn stream_failed(py: Python<'_>, failure: StreamFailure) -> PyResult<PyErr> {
    let text = StreamError::Failed(failure).to_string();
    two(py, "stream_failed", text, (failure.why as i32, failure.at.0.into()))
}

/// The exception that a function makes of a text and two numbers.
fn two(py: Python<'_>, class: &str, text: String, more: (i32, i32)) -> PyResult<PyErr> {
    Ok(PyErr::from_value(errors(py)?.getattr(class)?.call1((text, more.0, more.1))?))
}

/// The numbers in `ayre.Busy` of the reasons that the engine has elsewhere.
const STREAM_BUSY: i32 = 9;
const MULTICAST_BUSY: i32 = 10;
const _: () = assert!((Busy::ChannelFull as i32) < STREAM_BUSY, "each reason has its number");

fn multicast(error: MulticastError) -> (&'static str, Option<i32>) {
    match error {
        MulticastError::Busy => ("busy", Some(MULTICAST_BUSY)),
        MulticastError::NoMember => ("NoMemberError", None),
        MulticastError::Refused(peer) => ("RefusedError", Some(peer.0.into())),
        MulticastError::Unreachable(peer) => ("UnreachableError", Some(peer.0.into())),
        MulticastError::Unknown(peer) => ("UnknownOutcomeError", Some(peer.0.into())),
        MulticastError::Invalid(_) => ("InvalidError", None),
        _ => ("Error", None),
    }
}

fn fault(why: Fault) -> (&'static str, String, Option<i32>) {
    ("fault", why.to_string(), Some(why.code().into()))
}

fn misuse(why: Misuse) -> &'static str {
    match why {
        Misuse::Argument => "InvalidError",
        Misuse::Buffer => "BufferAccessError",
        Misuse::Closed => "ClosedError",
        Misuse::InUse => "InUseError",
        Misuse::Inherited => "InheritedError",
        Misuse::Type => "NoBufferError",
    }
}

fn setup(error: &SetupError) -> &'static str {
    match error {
        SetupError::Os { .. } => "SystemCallError",
        SetupError::Refused { .. } => "RefusedError",
        SetupError::Rejected { .. } => "RejectedError",
        SetupError::InUse { .. } => "AddressInUseError",
        SetupError::PeerLeft { .. } => "PeerLeftError",
        SetupError::Memory { .. } | SetupError::MemoryFile { .. } => "NoMemoryError",
        SetupError::PortsTaken(_) | SetupError::Exhausted(_) => "ExhaustedError",
        SetupError::Environment(_) | SetupError::Invalid(_) | SetupError::NoPeer { .. } => {
            "InvalidError"
        }
        SetupError::TimedOut(_) => "TimedOutError",
        SetupError::UnsafeFile
        | SetupError::Protocol(_)
        | SetupError::Version { .. }
        | SetupError::NoLink { .. }
        | SetupError::Fault(_) => "SetupError",
    }
}

fn group(error: &GroupError) -> &'static str {
    match error {
        GroupError::PeerDied(_) => "PeerDiedError",
        GroupError::Mismatch { .. } => "MismatchError",
        GroupError::GivenUp(_) => "GivenUpError",
        GroupError::Interrupted => "Error",
        GroupError::Invalid(_) => "InvalidError",
    }
}

fn member(error: &GroupError) -> Option<i32> {
    match error {
        GroupError::PeerDied(peer)
        | GroupError::Mismatch { peer, .. }
        | GroupError::GivenUp(peer) => Some(peer.0.into()),
        GroupError::Interrupted | GroupError::Invalid(_) => None,
    }
}

fn errno(error: &SetupError) -> Option<i32> {
    match error {
        SetupError::Os { errno, .. } => Some(errno.raw_os_error()),
        _ => None,
    }
}

impl From<Failure> for PyErr {
    #[cold]
    fn from(failure: Failure) -> Self {
        Python::attach(|py| failure.exception(py).unwrap_or_else(|error| error))
    }
}

impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        Self::Post(error)
    }
}

impl From<Busy> for Failure {
    fn from(busy: Busy) -> Self {
        Self::Post(busy.into())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Post(fault.into())
    }
}

impl From<ReceiveError> for Failure {
    fn from(error: ReceiveError) -> Self {
        Self::Receive(error)
    }
}

impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Self {
        Self::Group(error)
    }
}

impl From<MulticastError> for Failure {
    fn from(error: MulticastError) -> Self {
        Self::Multicast(error)
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Busy => Self::StreamBusy,
            PushError::Ended(error) => error.into(),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

//! Exceptions: the classes are Python's, in `ayre/_errors.py`.
use ayre::collective::GroupError;
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
        GroupError::Invalid(_) => "InvalidError",
    }
}

fn member(error: &GroupError) -> Option<i32> {
    match error {
        GroupError::PeerDied(peer)
        | GroupError::Mismatch { peer, .. }
        | GroupError::GivenUp(peer) => Some(peer.0.into()),
        GroupError::Invalid(_) => None,
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

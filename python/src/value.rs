//! Values that Python and the engine hand to each other.
use crate::error::{Failure, Outcome, of_fault};
use ayre::memory::{AtomicOp, Classes, Fetched, Width};
use ayre::{PeerId, Rights};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use std::time::Duration;

/// The number of a peer of a port; in a job, its rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) PeerId);

impl<'py> FromPyObject<'_, 'py> for Peer {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u16>() {
            Ok(number) => Ok(Self(PeerId(number))),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Err(Failure::argument("a peer has a number from 0 to 65535").into())
            }
            Err(error) => Err(error),
        }
    }
}

/// A word of an atomic: a number with or without a sign.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Word(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Word {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u64>() {
            Ok(word) => Ok(Self(word)),
            Err(error) => match object.extract::<i64>() {
                Ok(word) => Ok(Self(word as u64)),
                Err(_) => Err(error),
            },
        }
    }
}

/// How long a call waits: a number of seconds, or for ever.
pub(crate) fn timeout(seconds: Option<f64>) -> Outcome<Option<Duration>> {
    match seconds {
        None => Ok(None),
        Some(f64::INFINITY) => Ok(None),
        Some(seconds) => duration(seconds).map(Some),
    }
}

/// A time in seconds.
pub(crate) fn duration(seconds: f64) -> Outcome<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::argument("a time is a number of seconds, 0 or more"))
}

pub(crate) fn rights(bits: u8) -> Outcome<Rights> {
    Rights::from_bits(bits)
        .ok_or_else(|| Failure::argument("there is no such right: see ayre.Rights"))
}

/// The result of an atomic: the word, and whether it was changed.
pub(crate) fn fetched(Fetched { value, success }: Fetched) -> (u64, bool) {
    (value, success)
}

/// The notifications that an operation raises, with their tag and value.
///
/// `classes` are `Classes.REQUESTER`, `COMPLETER` and `RESPONDER`, or-ed: where the operation
/// raises a notification. Those that do not apply to it are ignored. A call that takes options
/// takes classes alone, too.
#[pyclass(frozen, module = "ayre", name = "PostOptions")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostOptions(ayre::PostOptions);

#[pymethods]
impl PostOptions {
    #[new]
    #[pyo3(signature = (classes=0, tag=0, value=Word(0)))]
    fn new(classes: u8, tag: u32, value: Word) -> Outcome<Self> {
        Ok(Self(notifying(classes)?.tag(tag).value(value.0)))
    }
}

fn notifying(classes: u8) -> Outcome<ayre::PostOptions> {
    let classes = Classes::from_bits(classes)
        .ok_or_else(|| Failure::argument("there is no such class: see ayre.Classes"))?;
    Ok(ayre::PostOptions::new().notify(classes))
}

/// The options of an operation, as a caller gives them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options(pub(crate) ayre::PostOptions);

impl Options {
    pub(crate) const NONE: Self = Self(ayre::PostOptions::new());
}

impl<'py> FromPyObject<'_, 'py> for Options {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PostOptions>() {
            Ok(options) => Ok(Self(options.get().0)),
            Err(_) => Ok(Self(notifying(object.extract()?)?)),
        }
    }
}

/// An atomic on a word of 8 or 4 bytes.
///
/// `op` is an `AtomicOp`. `compare` is the other operand of `COMPARE_SWAP` and `FCAA`. Numbers with
/// a sign are taken in two's complement.
#[pyclass(frozen, module = "ayre", name = "Atomic")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atomic(pub(crate) ayre::memory::Atomic);

#[pymethods]
impl Atomic {
    #[new]
    #[pyo3(signature = (op, operand, compare=Word(0), width=8))]
    fn new(op: u8, operand: Word, compare: Word, width: u8) -> Outcome<Self> {
        let op = AtomicOp::from_code(op)
            .ok_or_else(|| Failure::argument("there is no such atomic: see ayre.AtomicOp"))?;
        let width = match width {
            4 => Width::W32,
            8 => Width::W64,
            _ => return Err(Failure::argument("the width of an atomic is 4 or 8 bytes")),
        };
        let (operand, compare) = (operand.0, compare.0);
        Ok(Self(ayre::memory::Atomic { width, op, operand, compare }))
    }
}

/// The shape of a strided operation, in bytes: `rows` rows of `row_len` bytes each.
///
/// The strides are the distances from the beginning of a row to that of the next one, in local
/// memory and in remote memory.
#[pyclass(frozen, module = "ayre", name = "Strided")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided(pub(crate) ayre::memory::Strided);

#[pymethods]
impl Strided {
    #[new]
    fn new(row_len: u64, rows: u64, local_stride: u64, remote_stride: u64) -> Self {
        Self(ayre::memory::Strided { row_len, rows, local_stride, remote_stride })
    }
}

/// An operation has completed, or data has landed.
#[pyclass(frozen, module = "ayre", name = "Notification")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification(pub(crate) ayre::Notification);

#[pymethods]
impl Notification {
    /// The number of the other port.
    #[getter]
    fn source(&self) -> u16 {
        self.0.source.0
    }

    /// Where it was raised: `REQUESTER`, `COMPLETER` or `RESPONDER` of `Classes`.
    #[getter]
    fn class_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        named(py, "Classes", self.0.class.bits())
    }

    /// The kind of the operation: an `Operation`.
    #[getter]
    fn operation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        named(py, "Operation", self.0.operation as u8)
    }

    /// The tag of the operation.
    #[getter]
    fn tag(&self) -> u32 {
        self.0.tag
    }

    /// The value of the operation, or its result.
    #[getter]
    fn value(&self) -> u64 {
        self.0.value
    }

    /// Whether the condition of an atomic did not hold, so that nothing was written.
    #[getter]
    fn is_declined(&self) -> bool {
        self.0.status == ayre::error::Status::Declined
    }

    /// The fault with which the operation has ended, as an exception to look at or to raise; None
    /// if it has none.
    #[getter]
    fn fault(&self, py: Python<'_>) -> Option<PyErr> {
        self.0.status.fault().map(|why| of_fault(py, why))
    }

    /// The two words of the record, as the specification has them.
    fn encode(&self) -> (u64, u64) {
        self.0.encode().into()
    }

    fn __repr__(&self) -> String {
        let ayre::Notification { source, operation, tag, value, status, .. } = self.0;
        let (source, operation) = (source.0, operation as u8);
        let status = status.code();
        format!(
            "Notification(source={source}, operation={operation}, status={status}, tag={tag}, \
             value={value})"
        )
    }
}

/// The name of a number, among those of a class in `ayre._names`.
pub(crate) fn named<'py>(py: Python<'py>, class: &str, number: u8) -> PyResult<Bound<'py, PyAny>> {
    py.import("ayre._names")?.getattr(class)?.call1((number,))
}

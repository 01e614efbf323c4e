//! Buffers of Python objects: bytes that a call reads or writes.
//!
//! ```text
//!   bytes, an array in one piece   -->  its bytes, where they are
//!   rows in one piece each         -->  the same, and the shape of a strided operation
//!   any other array                -->  packed once, or unpacked once
//! ```
//!
//! The bytes of an array are those of its elements in the order of its indices, as `tobytes()` has
//! them.
use crate::error::{Failure, Misuse, Outcome};
use ayre::memory::Strided;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shortest row that is a piece of an operation of its own: shorter ones are packed.
const ROW_MIN: usize = 64;

/// The place of one object's buffer, in the call that uses it. The buffer is released with it.
pub(crate) struct Room<'py> {
    raw: MaybeUninit<ffi::Py_buffer>,
    is_filled: bool,
    /// The bytes of an array whose elements do not lie one behind the other.
    packed: Vec<u8>,
    /// The array that stands for an object of another library.
    array: Option<Bound<'py, PyAny>>,
    /// A buffer may point to itself.
    _pinned: PhantomPinned,
}

/// Bytes to read, and the rows that they have.
pub(crate) type Source<'a> = (&'a [u8], Option<Strided>);

/// Bytes to write, the rows that they have, and whether they are to be unpacked.
pub(crate) struct Destination<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) rows: Option<Strided>,
    /// The buffer, if they are.
    scatter: Option<&'a ffi::Py_buffer>,
}

impl<'py> Room<'py> {
    pub(crate) const fn new() -> Self {
        let raw = MaybeUninit::uninit();
        Self { raw, is_filled: false, packed: Vec::new(), array: None, _pinned: PhantomPinned }
    }

    /// The bytes of an object, in one piece.
    #[inline]
    pub(crate) fn bytes<'a>(&'a mut self, object: &'a Bound<'py, PyAny>) -> Outcome<&'a [u8]> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(bytes.as_bytes()),
            Err(_) => Ok(self.source(object, usize::MAX)?.0),
        }
    }

    /// The bytes of an object, in one piece or in rows.
    #[inline]
    pub(crate) fn rows<'a>(&'a mut self, object: &'a Bound<'py, PyAny>) -> Outcome<Source<'a>> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok((bytes.as_bytes(), None)),
            Err(_) => self.source(object, ROW_MIN),
        }
    }

    fn source<'a>(&'a mut self, object: &Bound<'py, PyAny>, row_min: usize) -> Outcome<Source<'a>> {
        self.fill(object, ffi::PyBUF_STRIDES)?;
        // SAFETY: it was filled.
        let raw = unsafe { self.raw.assume_init_ref() };
        match extent(raw, row_min) {
            Some((0, _)) => Ok((&[], None)),
            Some((len, rows)) => {
                // SAFETY: the exporter keeps these bytes while the buffer is not released.
                let bytes = unsafe { std::slice::from_raw_parts(raw.buf.cast(), len) };
                Ok((bytes, rows))
            }
            None => {
                let raw: *const ffi::Py_buffer = raw;
                self.packed.resize(len(raw), 0);
                let into: *mut c_void = self.packed.as_mut_ptr().cast();
                // SAFETY: the buffer was filled, and there is room for as many bytes as it has.
                let packed = unsafe {
                    ffi::PyBuffer_ToContiguous(into, raw.cast_mut(), len(raw) as isize, ORDER)
                };
                done(object.py(), packed)?;
                Ok((&self.packed, None))
            }
        }
    }

    /// The bytes of an object that a call writes, in one piece: no others have room for a message.
    pub(crate) fn one_piece<'a>(&'a mut self, object: &Bound<'py, PyAny>) -> Outcome<&'a mut [u8]> {
        let destination = self.destination(object, usize::MAX)?;
        match destination.scatter {
            None => Ok(destination.bytes),
            Some(_) => Err(Failure::argument("a message is received into memory in one piece")),
        }
    }

    /// The bytes of an object that a call writes, in one piece, in rows, or to be unpacked.
    pub(crate) fn writable_rows<'a>(
        &'a mut self,
        object: &Bound<'py, PyAny>,
    ) -> Outcome<Destination<'a>> {
        self.destination(object, ROW_MIN)
    }

    fn destination<'a>(
        &'a mut self,
        object: &Bound<'py, PyAny>,
        row_min: usize,
    ) -> Outcome<Destination<'a>> {
        let filled = self.fill(object, ffi::PyBUF_STRIDES | ffi::PyBUF_WRITABLE);
        let py = object.py();
        filled.map_err(|failure| match failure {
            Failure::Python(error) if !error.is_instance_of::<PyTypeError>(py) => {
                Failure::Misuse(Misuse::Buffer, format!("the destination: {error}").into())
            }
            other => other,
        })?;
        // SAFETY: it was filled.
        let raw = unsafe { self.raw.assume_init_ref() };
        if raw.readonly != 0 {
            let what = "the destination is read-only".into();
            return Err(Failure::Misuse(Misuse::Buffer, what));
        }
        match extent(raw, row_min) {
            Some((0, rows)) => Ok(Destination { bytes: &mut [], rows, scatter: None }),
            Some((len, rows)) => {
                // SAFETY: the exporter keeps these bytes, which may be written, while the buffer is
                // not released. The interpreter's rules are that nobody else uses them meanwhile.
                let bytes = unsafe { std::slice::from_raw_parts_mut(raw.buf.cast(), len) };
                Ok(Destination { bytes, rows, scatter: None })
            }
            None => {
                self.packed.resize(len(raw), 0);
                Ok(Destination { bytes: &mut self.packed, rows: None, scatter: Some(raw) })
            }
        }
    }

    /// Asks the object for its buffer.
    fn fill(&mut self, object: &Bound<'py, PyAny>, flags: c_int) -> Outcome<()> {
        let object = self.exporter(object)?;
        let py = object.py();
        let with_format = self.ask(&object, flags | ffi::PyBUF_FORMAT);
        if let Err(error) = with_format {
            // Arrays of dates have no format in the protocol, and no objects either.
            if !is_of_dates(&object)? || self.ask(&object, flags).is_err() {
                return Err(without_bytes(py, error));
            }
        }
        // SAFETY: it was filled; the format is NULL or text.
        let format = unsafe {
            let format = self.raw.assume_init_ref().format;
            (!format.is_null()).then(|| CStr::from_ptr(format))
        };
        if format.is_some_and(has_objects) {
            let what = "an array of objects holds references, and no bytes: pickle it first";
            return Err(Failure::Misuse(Misuse::Type, what.into()));
        }
        Ok(())
    }

    fn ask(&mut self, object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<()> {
        // SAFETY: the place is empty, and stays where it is until the buffer is released: what is
        // taken out of it borrows it.
        let asked =
            unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), self.raw.as_mut_ptr(), flags) };
        if asked != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        self.is_filled = true;
        Ok(())
    }

    /// The object, or the array that numpy makes of an object of another library.
    fn exporter(&mut self, object: &Bound<'py, PyAny>) -> Outcome<Bound<'py, PyAny>> {
        // SAFETY: it is an object.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0 {
            return Ok(object.clone());
        }
        let py = object.py();
        if !object.hasattr("__dlpack__")? {
            let kind = object.get_type().name()?;
            let what = format!("{kind} has no bytes: give bytes, an array or another buffer");
            return Err(Failure::Misuse(Misuse::Type, what.into()));
        }
        let array = py.import("numpy")?.call_method1("from_dlpack", (object,))?;
        Ok(self.array.insert(array).clone())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.is_filled {
            // SAFETY: it was filled, and is released once. A room lives in a call of Python's.
            unsafe { ffi::PyBuffer_Release(self.raw.as_mut_ptr()) };
        }
    }
}

impl Destination<'_> {
    /// Unpacks what was written, if the array is not in one piece.
    pub(crate) fn finish(self, py: Python<'_>) -> Outcome<()> {
        let Some(raw) = self.scatter else { return Ok(()) };
        let raw: *const ffi::Py_buffer = raw;
        let from: *const c_void = self.bytes.as_ptr().cast();
        let len = self.bytes.len() as isize;
        // SAFETY: the buffer was filled, and as many bytes are there as it has.
        let unpacked =
            unsafe { ffi::PyBuffer_FromContiguous(raw.cast_mut(), from.cast_mut(), len, ORDER) };
        done(py, unpacked)
    }
}

/// The order of C: the last index runs fastest.
const ORDER: c_char = b'C' as c_char;

fn done(py: Python<'_>, code: c_int) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(PyErr::fetch(py).into()) }
}

fn len(raw: *const ffi::Py_buffer) -> usize {
    // SAFETY: the callers have filled it.
    unsafe { (*raw).len }.unsigned_abs()
}

/// The failure of an exporter that cannot say what its elements are; read-only ones say so first.
fn without_bytes(py: Python<'_>, error: PyErr) -> Failure {
    if error.is_instance_of::<PyValueError>(py) && error.to_string().contains("dtype") {
        return Failure::Misuse(Misuse::Type, error.value(py).to_string().into());
    }
    error.into()
}

/// Whether the elements are dates or times, or records with some, and no objects.
fn is_of_dates(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(kind) = object.getattr("dtype") else { return Ok(false) };
    let has_objects: bool = kind.getattr("hasobject")?.extract()?;
    let kind: String = kind.getattr("kind")?.extract()?;
    Ok(!has_objects && ["M", "m", "V"].contains(&kind.as_str()))
}

/// Whether elements of this format have references to objects. Names of fields stand between
/// colons.
fn has_objects(format: &CStr) -> bool {
    let kinds = format.to_bytes().split(|byte| *byte == b':').step_by(2);
    kinds.flatten().any(|kind| *kind == b'O')
}

/// How many bytes there are from the first one on, and the rows among them: for an array in one
/// piece, or in rows of at least this length. None for any other.
fn extent(raw: &ffi::Py_buffer, row_min: usize) -> Option<(usize, Option<Strided>)> {
    let whole = len(raw);
    let dimensions = usize::try_from(raw.ndim).unwrap_or(0);
    if whole == 0 || dimensions == 0 || raw.shape.is_null() || raw.strides.is_null() {
        return Some((whole, None));
    }
    // SAFETY: an exporter that was asked for strides gives one for each dimension.
    let (shape, strides) = unsafe {
        let shape = std::slice::from_raw_parts(raw.shape, dimensions);
        (shape, std::slice::from_raw_parts(raw.strides, dimensions))
    };
    let mut piece = raw.itemsize;
    let mut outer = shape.iter().zip(strides).rev().filter(|(count, _)| **count != 1).peekable();
    while let Some((count, _)) = outer.next_if(|(_, stride)| **stride == piece) {
        piece *= count;
    }
    let Some((rows, stride)) = outer.next().map(|(rows, stride)| (*rows, *stride)) else {
        return Some((whole, None));
    };
    let mut all = rows;
    for (count, next) in outer {
        if *next != stride * all {
            return None;
        }
        all *= count;
    }
    let (row_len, distance) = (piece.unsigned_abs(), stride.unsigned_abs());
    if stride < piece || row_len < row_min {
        return None;
    }
    let rows = Strided {
        row_len: row_len as u64,
        rows: all as u64,
        local_stride: distance as u64,
        remote_stride: row_len as u64,
    };
    Some((distance * (all.unsigned_abs() - 1) + row_len, Some(rows)))
}

/// How many views of a region there are.
#[derive(Debug, Default)]
pub(crate) struct Views(AtomicUsize);

impl Views {
    pub(crate) fn begin(&self) {
        // Relaxed: the count alone matters.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        // Relaxed: the count alone matters.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn are_there(&self) -> bool {
        // Relaxed: the count alone matters.
        self.0.load(Ordering::Relaxed) > 0
    }
}

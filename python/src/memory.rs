//! Memory that peers access: regions, grants, and remote regions.
use crate::buffer::{Room, Views};
use crate::error::{Failure, Misuse, Outcome};
use crate::port::{LONG, Port};
use crate::value::{Atomic, Peer, Word, fetched};
use ayre::RegionOptions;
use ayre::memory::{Fenced, Pages};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Memory of this process that peers can access once it is shared: `port.alloc` makes it.
///
/// A region is a buffer that can be written: `region.array(shape, dtype)` and
/// `numpy.frombuffer(region, dtype)` are arrays over its bytes, without a copy. Peers may change
/// the bytes at any time. The program orders such changes and its own accesses, by notifications,
/// messages and atomics.
#[pyclass(frozen, module = "ayre", name = "Region")]
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) region: ayre::Region,
    pub(crate) views: Views,
}

impl Region {
    pub(crate) fn new(region: ayre::Region) -> Self {
        Self { region, views: Views::default() }
    }

    /// A range of this length, if it lies in the region.
    fn range(&self, offset: usize, len: usize) -> Outcome<Range<usize>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.region.len());
        Ok(offset..end.ok_or(ayre::Fault::Bounds)?)
    }

    /// The place of a word, which has to be aligned.
    fn word(&self, offset: usize, width: usize) -> Outcome<usize> {
        self.range(offset, width)?;
        let is_aligned = offset.is_multiple_of(width);
        is_aligned.then_some(offset).ok_or_else(|| ayre::Fault::Alignment.into())
    }
}

/// The shape of an array, as a caller gives it.
#[derive(Debug, FromPyObject)]
enum Shape {
    One(usize),
    Several(Vec<usize>),
}

impl Shape {
    fn lengths(self) -> Vec<usize> {
        match self {
            Self::One(len) => vec![len],
            Self::Several(lengths) => lengths,
        }
    }
}

#[pymethods]
impl Region {
    fn __len__(&self) -> usize {
        self.region.len()
    }

    /// An array over the region, without a copy: numpy's `ndarray`, which can be written.
    ///
    /// `shape` is a number or several, `dtype` any of numpy's without references, `offset` the
    /// place of the first element in bytes.
    #[pyo3(signature = (shape, dtype=None, offset=0))]
    fn array<'py>(
        slf: &Bound<'py, Self>,
        shape: Shape,
        dtype: Option<&Bound<'py, PyAny>>,
        offset: usize,
    ) -> Outcome<Bound<'py, PyAny>> {
        let numpy = slf.py().import("numpy")?;
        let dtype = match dtype {
            Some(dtype) => dtype.clone(),
            None => numpy.getattr("float64")?,
        };
        let shape = shape.lengths();
        let count = shape.iter().try_fold(1_usize, |all, len| all.checked_mul(*len));
        let count = count.ok_or(ayre::Fault::Bounds)?;
        let array = numpy.call_method1("frombuffer", (slf, dtype, count, offset))?;
        Ok(array.call_method1("reshape", (shape,))?)
    }

    /// A part of the region, as the local end of an operation. Its data is not copied on its way.
    fn slice(slf: Py<Self>, start: usize, end: usize) -> Outcome<LocalSlice> {
        let len = end.checked_sub(start).ok_or(ayre::Fault::Bounds)?;
        let part = slf.get().range(start, len)?;
        Ok(LocalSlice { region: slf, part })
    }

    /// Copies `len` bytes out of the region.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: usize,
        len: usize,
    ) -> Outcome<Bound<'py, PyBytes>> {
        let part = self.range(offset, len)?;
        Ok(PyBytes::new_with(py, len, |into| {
            let mut copy = || self.region.read(part.start, into);
            if len > LONG {
                py.detach(copy)
            } else {
                copy()
            }
            Ok(())
        })?)
    }

    /// Copies the bytes of a buffer into the region.
    fn write(&self, offset: usize, data: &Bound<'_, PyAny>) -> Outcome<()> {
        let mut room = Room::new();
        let bytes = room.bytes(data)?;
        let part = self.range(offset, bytes.len())?;
        let copy = || self.region.write(part.start, bytes);
        if part.len() > LONG {
            data.py().detach(copy)
        } else {
            copy()
        }
        Ok(())
    }

    /// Reads a word of eight bytes, with all that was written before it was.
    fn load(&self, offset: usize) -> Outcome<u64> {
        Ok(self.region.load(self.word(offset, 8)?))
    }

    /// Writes a word of eight bytes, after all that was written before.
    fn store(&self, offset: usize, value: Word) -> Outcome<()> {
        self.region.store(self.word(offset, 8)?, value.0);
        Ok(())
    }

    /// Performs an atomic on a word of the region, atomic with respect to those of all peers.
    /// Returns the word, and whether it was changed.
    fn atomic(&self, offset: usize, atomic: &Atomic) -> Outcome<(u64, bool)> {
        let at = self.word(offset, atomic.0.width.bytes() as usize)?;
        Ok(fetched(self.region.atomic(at, &atomic.0)))
    }

    fn __repr__(&self) -> String {
        format!("<ayre.Region of {} bytes>", self.region.len())
    }
}

/// A part of a region, as the local end of an operation.
#[pyclass(frozen, module = "ayre", name = "LocalSlice")]
#[derive(Debug)]
pub(crate) struct LocalSlice {
    region: Py<Region>,
    part: Range<usize>,
}

impl LocalSlice {
    pub(crate) fn get(&self) -> ayre::memory::LocalSlice<'_> {
        self.region.get().region.slice(self.part.clone())
    }

    pub(crate) fn parts(&self) -> (&ayre::Region, Range<usize>) {
        (&self.region.get().region, self.part.clone())
    }
}

#[pymethods]
impl LocalSlice {
    fn __len__(&self) -> usize {
        self.part.len()
    }
}

/// A part of a region that its owner has shared with a peer, and can revoke.
#[pyclass(frozen, module = "ayre", name = "Grant")]
#[derive(Debug)]
pub(crate) struct Grant(Mutex<Option<ayre::memory::Grant>>);

impl Grant {
    fn with<T>(&self, call: impl FnOnce(&ayre::memory::Grant) -> T) -> Outcome<T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(call).ok_or_else(revoked)
    }
}

fn revoked() -> Failure {
    Failure::closed("the grant was revoked")
}

#[pymethods]
impl Grant {
    /// The peer that holds it.
    #[getter]
    fn peer(&self) -> Outcome<u16> {
        self.with(|grant| grant.peer().0)
    }

    /// Its key in the owner's table: slot and generation.
    #[getter]
    fn key(&self) -> Outcome<(u16, u32)> {
        self.with(|grant| key(grant.key()))
    }
}

fn key(key: ayre::memory::Key) -> (u16, u32) {
    (key.slot, key.generation)
}

/// Memory of a peer, as far as the peer has shared it. Offsets count from its first byte.
#[pyclass(frozen, module = "ayre", name = "RemoteRegion")]
#[derive(Debug)]
pub(crate) struct RemoteRegion(pub(crate) ayre::RemoteRegion);

#[pymethods]
impl RemoteRegion {
    fn __len__(&self) -> usize {
        self.0.len() as usize
    }

    /// The peer that owns the memory.
    #[getter]
    fn peer(&self) -> u16 {
        self.0.peer().0
    }

    /// The rights on it: `Rights`.
    #[getter]
    fn rights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::value::named(py, "Rights", self.0.rights().bits())
    }

    /// Its key in the owner's table: slot and generation.
    #[getter]
    fn key(&self) -> (u16, u32) {
        key(self.0.key())
    }

    /// A handle for less: for the bytes from `start` to before `end`, with some of the rights.
    #[pyo3(signature = (start, end, rights=None))]
    fn narrow(&self, start: u64, end: u64, rights: Option<u8>) -> Outcome<Self> {
        let rights = rights.map_or(Ok(self.0.rights()), crate::value::rights)?;
        Ok(Self(self.0.narrow(start..end, rights)?))
    }

    fn __repr__(&self) -> String {
        format!("<ayre.RemoteRegion of {} bytes, peer {}>", self.0.len(), self.0.peer().0)
    }
}

#[pymethods]
impl Port {
    /// Allocates memory that peers may be given, `len` bytes that are zero.
    ///
    /// A sealed region is shared for reading only: no other process will ever be able to write it.
    /// Huge pages have to be reserved by the administrator.
    #[pyo3(signature = (len, sealed=false, huge=false))]
    fn alloc(&self, py: Python<'_>, len: usize, sealed: bool, huge: bool) -> Outcome<Region> {
        let options = RegionOptions::new().pages(if huge { Pages::Huge } else { Pages::Ordinary });
        let options = if sealed { options.sealed() } else { options };
        Ok(Region::new(self.copy(py, len, |port| port.alloc(len, options))?))
    }

    /// Makes a region of a copy of a buffer's bytes, a multiple of eight, for peers of mediated
    /// connections alone.
    fn register(&self, data: &Bound<'_, PyAny>) -> Outcome<Region> {
        let mut room = Room::new();
        let (words, rest) = room.bytes(data)?.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(Failure::argument("memory is registered in multiples of eight bytes"));
        }
        let words = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        Ok(Region::new(self.with(|port| port.register(words))?))
    }

    /// Revokes all grants of a region, and lets nobody use it any more. May block as `revoke` does.
    ///
    /// Raises a BufferError while there are arrays or other views of the region.
    fn deregister(&self, py: Python<'_>, region: &Region) -> Outcome<()> {
        if region.views.are_there() {
            let what = "there are views of the region: delete the arrays over it first";
            return Err(Failure::Misuse(Misuse::Buffer, what.into()));
        }
        self.wait(py, |port| port.deregister(&region.region))
    }

    /// Shares a region with a peer under a name, which it uses in `accept_region`.
    ///
    /// `part` is the first byte, a multiple of eight, and the one behind the last; all of the
    /// region where there is none. `rights` are those of `Rights`, or-ed. On a direct connection
    /// the peer's handle alone enforces the part.
    #[pyo3(signature = (peer, region, part=None, rights=63, name=0))]
    fn share(
        &self,
        peer: Peer,
        region: &Region,
        part: Option<(usize, usize)>,
        rights: u8,
        name: u64,
    ) -> Outcome<Grant> {
        let (start, end) = part.unwrap_or((0, region.region.len()));
        let rights = crate::value::rights(rights)?;
        let share =
            |port: &mut ayre::Port| port.share(peer.0, &region.region, start..end, rights, name);
        Ok(Grant(Mutex::new(Some(self.with(share)?))))
    }

    /// Accepts the region that a peer has shared, or shares soon, under a name. Blocks, at most for
    /// the set-up time.
    #[pyo3(signature = (peer, name=0))]
    fn accept_region(&self, py: Python<'_>, peer: Peer, name: u64) -> Outcome<RemoteRegion> {
        Ok(RemoteRegion(self.wait(py, |port| port.accept_region(peer.0, name))?))
    }

    /// Takes a grant back. No operation that uses it lands after the call.
    ///
    /// Blocks for peers inside an operation. Returns whether one did not let go, so that the
    /// contents of the region were moved to fresh memory at the old address.
    fn revoke(&self, py: Python<'_>, grant: &Grant) -> Outcome<bool> {
        let revoke = |port: &mut ayre::Port| -> Outcome<Fenced> {
            let held = grant.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(port.revoke(held.ok_or_else(revoked)?)?)
        };
        Ok(self.wait(py, revoke)? == Fenced::Moved)
    }
}

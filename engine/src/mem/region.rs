//! Registered memory: regions at their owner, and their handles at peers.
use super::file::{Pages, is_sealed, memory_file, round_to_pages, seal_seals, seal_writers};
use super::map::Mapping;
use super::word::Word;
use crate::error::{Fault, SetupError};
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use ayre_proto::alu::{Atomic, Fetched};
use ayre_proto::units::{Claim, Key, PeerId, Rights};
use ayre_proto::xlate::Cover;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fstat};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// The identity of no port: regions with it belong to none.
const OF_NO_PORT: u64 = u64::MAX;

/// The options of a new region.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionOptions {
    pages: Pages,
    sealed: bool,
}

impl RegionOptions {
    /// Options for ordinary pages, which peers may write if they get that right.
    pub const fn new() -> Self {
        Self { pages: Pages::Ordinary, sealed: false }
    }

    /// Sets the page size. The administrator must have reserved huge pages.
    pub const fn pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// Makes the region sealed: no other process will ever be able to write it, because the memory
    /// file is sealed against other writable mappings. Grants with write rights are refused.
    // spec: CAP-9
    pub const fn sealed(mut self) -> Self {
        self.sealed = true;
        self
    }
}

/// Memory of this process that peers can access once it is shared.
///
/// Cheap to clone; all clones refer to the same memory. Peers may change the bytes at any time, so
/// they are copied in and out and never borrowed.
// spec: REG-2
#[derive(Clone, Debug)]
pub struct Region {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mapping: Arc<Mapping>,
    /// The memory file; None for memory that the program brought.
    file: Option<Mutex<Descriptor>>,
    len: usize,
    pages: Pages,
    sealed: bool,
    number: u16,
    port: u64,
}

impl Region {
    pub(crate) fn allocate(
        len: usize,
        options: RegionOptions,
        (number, port): (u16, u64),
    ) -> Result<Self, SetupError> {
        let mapped = round_to_pages(len, options.pages);
        let (file, mapping) = Self::backing(mapped, options.pages)?;
        Self::seal(&file, options.sealed)?;
        let RegionOptions { pages, sealed } = options;
        let file = Some(Mutex::new(file));
        let mapping = Arc::new(mapping);
        Ok(Self { inner: Arc::new(Inner { mapping, file, len, pages, sealed, number, port }) })
    }

    fn backing(len: usize, pages: Pages) -> Result<(Descriptor, Mapping), SetupError> {
        let file = memory_file(len, pages)?;
        let mapping = Mapping::own(file.as_fd(), len).map_err(|error| match (error, pages) {
            (SetupError::Os { errno, .. }, Pages::Huge) => {
                SetupError::Os { call: "mmap of huge pages", errno }
            }
            (error, _) => error,
        })?;
        Ok((file, mapping))
    }

    /// After our own mapping was made: a seal against writers leaves that as it is.
    // spec: LIFE-41
    fn seal(file: &Descriptor, sealed: bool) -> Result<(), SetupError> {
        match sealed {
            true if !is_sealed(file.as_fd()) => Err(SetupError::invalid(
                "memory of this process cannot be sealed: its system refuses memfd_create",
            )),
            true => seal_writers(file.as_fd()),
            false => seal_seals(file.as_fd()),
        }
    }

    /// Memory of no port, `len` bytes that are zero: for this process, its children, and all to
    /// which it gives the file. Pages come at their first access. See [`crate::shared`].
    ///
    /// # Errors
    /// [`SetupError::Os`], for one where `len` is too large.
    pub fn shared(len: usize) -> Result<Self, SetupError> {
        let mapped = round_to_pages(len, Pages::Ordinary);
        let file = memory_file(mapped, Pages::Ordinary)?;
        let mapping = Mapping::own_in_part(file.as_fd(), mapped, [])?;
        seal_seals(file.as_fd())?;
        Ok(Self::of_no_port(mapping, file, len))
    }

    /// Opens the memory of a file that another process has made by [`Region::shared`]. The region
    /// has whole pages of the file.
    ///
    /// # Errors
    /// [`SetupError::UnsafeFile`] where the file is none of these; [`SetupError::Os`].
    pub fn of_file(file: OwnedFd) -> Result<Self, SetupError> {
        let file = descriptor::placed(file).map_err(SetupError::os("dup"))?;
        let stat = fstat(&file).map_err(SetupError::os("size of shared memory"))?;
        let len = usize::try_from(stat.st_size).map_err(|_| SetupError::UnsafeFile)?;
        let mapping = Mapping::foreign(file.as_fd(), len, true)?;
        Ok(Self::of_no_port(mapping, file, len))
    }

    /// A descriptor of the region's file, for another process.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for memory that the program has brought; [`SetupError::Os`].
    pub fn to_file(&self) -> Result<OwnedFd, SetupError> {
        Ok(self.file_for(true)?.into_owned())
    }

    fn of_no_port(mapping: Mapping, file: Descriptor, len: usize) -> Self {
        let (mapping, file) = (Arc::new(mapping), Some(Mutex::new(file)));
        let (pages, sealed) = (Pages::Ordinary, false);
        let inner = Inner { mapping, file, len, pages, sealed, number: 0, port: OF_NO_PORT };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn over(mapping: Mapping, len: usize, (number, port): (u16, u64)) -> Self {
        let (mapping, pages) = (Arc::new(mapping), Pages::Ordinary);
        let inner = Inner { mapping, file: None, len, pages, sealed: false, number, port };
        Self { inner: Arc::new(inner) }
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.inner.len
    }

    /// Whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.inner.len == 0
    }

    /// The first byte. Peers may change the bytes at any time: no reference may point to them.
    pub fn address(&self) -> NonNull<u8> {
        self.inner.mapping.base()
    }

    /// Copies bytes into the region. The program orders such accesses and those of peers, by
    /// notifications.
    ///
    /// # Panics
    /// Panics if the range exceeds the region.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.assert_range(offset, from.len());
        self.inner.mapping.write(offset as u64, from);
    }

    /// Copies bytes out of the region.
    ///
    /// # Panics
    /// Panics if the range exceeds the region.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.assert_range(offset, into.len());
        self.inner.mapping.read(offset as u64, into);
    }

    /// Reads a 64-bit word, with acquire ordering.
    ///
    /// # Panics
    /// Panics if `offset` is not a multiple of eight, or the word exceeds the region.
    pub fn load(&self, offset: usize) -> u64 {
        self.assert_range(offset, 8);
        // LOCK-A1: pairs with a remote atomic on the word, LOCK-R1.
        self.inner.mapping.word(offset as u64).load(crate::sync::Ordering::Acquire)
    }

    /// Writes a 64-bit word, with release ordering.
    ///
    /// # Panics
    /// Panics if `offset` is not a multiple of eight, or the word exceeds the region.
    pub fn store(&self, offset: usize, value: u64) {
        self.assert_range(offset, 8);
        // LOCK-R1: pairs with a remote atomic on the word, LOCK-A1.
        self.inner.mapping.word(offset as u64).store(value, crate::sync::Ordering::Release);
    }

    /// Performs an atomic on a word of the region. It is atomic with respect to those of all peers.
    ///
    /// # Panics
    /// Panics if `offset` is not a multiple of the width, or the word exceeds the region.
    pub fn atomic(&self, offset: usize, atomic: &Atomic) -> Fetched {
        self.assert_range(offset, atomic.width.bytes() as usize);
        self.inner.mapping.atomic(offset as u64, atomic)
    }

    fn assert_range(&self, offset: usize, len: usize) {
        let fits = offset <= self.inner.len && len <= self.inner.len - offset;
        assert!(fits, "{len} bytes at {offset} leave a region of {} bytes", self.inner.len);
    }

    pub(crate) fn mapping(&self) -> &Arc<Mapping> {
        &self.inner.mapping
    }

    pub(crate) fn number(&self) -> u16 {
        self.inner.number
    }

    pub(crate) fn port(&self) -> u64 {
        self.inner.port
    }

    pub(crate) fn sealed(&self) -> bool {
        self.inner.sealed
    }

    /// The file for a peer with or without the right to store. A descriptor opened for reading
    /// gives mappings that no mprotect makes writable.
    // spec: CAP-8
    pub(crate) fn file_for(&self, writable: bool) -> Result<Descriptor, SetupError> {
        let Some(file) = &self.inner.file else {
            return Err(SetupError::invalid("memory that was registered is shared mediated only"));
        };
        let file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if writable {
            return descriptor::copy(&*file).map_err(SetupError::os("dup"));
        }
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&*file));
        descriptor::open(path, OFlags::RDONLY, Mode::empty())
            .map_err(SetupError::os("open a region for reading"))
    }

    /// Moves the contents to fresh memory at the same address. A process that has mapped the old
    /// file keeps pages that this process no longer sees.
    // spec: REV-3
    pub(crate) fn replace_storage(&self) -> Result<(), SetupError> {
        let Some(file) = &self.inner.file else { return Ok(()) };
        let old = &self.inner.mapping;
        let (fresh_file, fresh) = Self::backing(old.len(), self.inner.pages)?;
        fresh.write_from(0, old, 0, old.len());
        old.replace(fresh_file.as_fd())?;
        Self::seal(&fresh_file, self.inner.sealed)?;
        *file.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = fresh_file;
        Ok(())
    }
}

/// A handle for a peer's memory: a capability, or a part of it.
#[derive(Clone, Debug)]
pub struct RemoteRegion {
    pub(crate) peer: PeerId,
    /// The identity of its connection.
    pub(crate) connection: u64,
    pub(crate) key: Key,
    /// The range and rights of this handle: the capability's, or less.
    pub(crate) cover: Cover,
    /// The beginning of the handle's range within the capability's.
    pub(crate) start: u64,
    /// The mapped memory of the peer, on a direct connection.
    pub(crate) memory: Option<PeerMemory>,
}

/// Memory of a peer that this process has mapped.
#[derive(Clone, Debug)]
pub(crate) struct PeerMemory {
    pub(crate) mapping: Arc<Mapping>,
    /// The generation of the key's slot, in the owner's page.
    pub(crate) generation: Word,
}

impl RemoteRegion {
    /// The peer that owns the memory.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The length of the range in bytes; offsets count from its first byte.
    pub fn len(&self) -> u64 {
        self.cover.len
    }

    /// Whether the range has no bytes.
    pub fn is_empty(&self) -> bool {
        self.cover.len == 0
    }

    /// The rights of the handle.
    pub fn rights(&self) -> Rights {
        self.cover.rights
    }

    /// Derives a handle for a part of this one's range, with some of its rights. Offsets count from
    /// the part's first byte. This needs no message to the owner; revoking the capability ends the
    /// derived handle, too.
    ///
    /// # Errors
    /// [`Fault::Rights`] and [`Fault::Bounds`] where this handle lacks the rights or the range;
    /// [`Fault::Alignment`] where the part does not begin at a multiple of eight.
    // spec: CAP-4
    pub fn narrow(&self, part: std::ops::Range<u64>, rights: Rights) -> Result<Self, Fault> {
        let len = part.end.checked_sub(part.start).ok_or(Fault::Bounds)?;
        self.cover.check(&Claim { key: self.key, offset: part.start, len }, rights)?;
        if !part.start.is_multiple_of(8) {
            return Err(Fault::Alignment);
        }
        let mut narrow = self.clone();
        narrow.cover.rights = rights;
        narrow.cover.base += part.start;
        narrow.cover.len = len;
        narrow.start += part.start;
        Ok(narrow)
    }

    /// The key of the capability in the owner's table.
    pub fn key(&self) -> Key {
        self.key
    }
}

//! Memory that several processes have mapped, and direct accesses to it.
//!
//! A process makes a memory file for it. Behind the memory, the file has a label. A peer of the
//! same user opens it by the numbers of the process and of the descriptor, and looks for the label.
//! Where the kernel does not let it, or another file is there, the memory is out of reach.

use crate::key::Key;
use ayre::SetupError;
use ayre::guest::descriptor::Descriptor;
use ayre::guest::{memory_file, memory_file_of};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io::{Errno, pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::Arc;

/// Where memory is to lie: at a place that the kernel chooses, if none is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    place: *mut c_void,
    is_exact: bool,
}

impl At {
    /// There, if nothing else does; null is anywhere.
    pub(crate) fn rather(place: *mut c_void) -> Self {
        Self { place, is_exact: false }
    }

    /// Exactly there.
    ///
    /// # Safety
    /// Nothing that lies there is used any more.
    pub(crate) unsafe fn exactly(place: *mut c_void) -> Self {
        Self { place, is_exact: true }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }
}

/// Memory that several processes have mapped.
#[derive(Debug)]
pub(crate) struct Window {
    start: *mut u8,
    len: usize,
    is_writable: bool,
    /// Of memory of our own.
    file: Option<Descriptor>,
}

// SAFETY: an address range: accesses are copies and atomics by address, which any thread may do.
unsafe impl Send for Window {}
// SAFETY: as above; no reference points into it.
unsafe impl Sync for Window {}

impl Window {
    /// Makes memory of `len` bytes, whole pages of zeros.
    ///
    /// # Errors
    /// Those of [`memory_file`]; [`SetupError::Os`] where it cannot be mapped there.
    pub(crate) fn make(len: usize, at: At, label: [u8; 16]) -> Result<Self, SetupError> {
        let too_long = || SetupError::Invalid("there is not that much memory".into());
        let file = memory_file(len.checked_add(label.len()).ok_or_else(too_long)?)?;
        let os = |call| move |errno| SetupError::Os { call, errno };
        pwrite(&file, &label, len as u64).map_err(os("pwrite of shared memory"))?;
        let start = map(file.as_fd(), len, at, true).map_err(os("mmap"))?;
        Ok(Self { start, len, is_writable: true, file: Some(file) })
    }

    /// Maps the memory of another process of this host. None where that cannot be.
    pub(crate) fn of_peer(
        place: (u32, u32),
        len: usize,
        label: [u8; 16],
        is_writable: bool,
    ) -> Option<Self> {
        let file = memory_file_of(place, len.checked_add(label.len())?, is_writable)?;
        let mut found = [0; 16];
        let is_whole = pread(&file, &mut found, len as u64) == Ok(found.len());
        if !is_whole || found != label {
            return None;
        }
        let start = map(file.as_fd(), len, At::rather(null_mut()), is_writable).ok()?;
        Some(Self { start, len, is_writable, file: None })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Whether accesses fit that a key of this length admits, with the right to write or without.
    pub(crate) fn serves(&self, len: usize, is_writable: bool) -> bool {
        self.len == len && (self.is_writable || !is_writable)
    }

    /// The number of the descriptor of memory of our own.
    pub(crate) fn file(&self) -> Option<u32> {
        self.file.as_ref().and_then(|file| file.as_raw_fd().try_into().ok())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping of this; nobody uses it any more.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}

fn map(file: BorrowedFd<'_>, len: usize, at: At, is_writable: bool) -> Result<*mut u8, Errno> {
    let exactly = if at.is_exact { MapFlags::FIXED } else { MapFlags::empty() };
    let write = if is_writable { ProtFlags::WRITE } else { ProtFlags::empty() };
    let (protection, flags) = (ProtFlags::READ | write, MapFlags::SHARED | exactly);
    // SAFETY: the promise of exactly(); otherwise the kernel chooses a place where nothing is.
    unsafe { mmap(at.place, len, protection, flags, file, 0) }.map(<*mut c_void>::cast)
}

/// Memory that is within reach of our loads and stores.
#[derive(Debug)]
pub(crate) struct Reachable {
    start: *mut u8,
    len: usize,
    _window: Option<Arc<Window>>,
}

impl Reachable {
    /// Memory that this very process has mapped, with this key. The interface makes the program
    /// responsible for keeping it as long as the key is used.
    pub(crate) fn own(key: &Key) -> Self {
        let start = with_exposed_provenance_mut(key.address as usize);
        Self { start, len: key.length as usize, _window: None }
    }

    pub(crate) fn of(window: Arc<Window>) -> Self {
        Self { start: window.start, len: window.len, _window: Some(window) }
    }

    /// The place of a range.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.len && len <= self.len - offset, "keys admit no other range");
        self.start.wrapping_add(offset)
    }

    /// Stores bytes.
    ///
    /// # Safety
    /// That many bytes may be read there; the memory may be written.
    #[inline]
    pub(crate) unsafe fn write(&self, offset: usize, from: *const c_void, len: usize) {
        // SAFETY: the caller's promise, and at() has looked.
        unsafe { copy(from.cast(), self.at(offset, len), len) };
    }

    /// Loads bytes.
    ///
    /// # Safety
    /// That many bytes may be written there.
    #[inline]
    pub(crate) unsafe fn read(&self, offset: usize, into: *mut c_void, len: usize) {
        // SAFETY: the caller's promise, and at() has looked.
        unsafe { copy(self.at(offset, len), into.cast(), len) };
    }
}

/// Copies bytes, also within memory of our own. The most frequent number of them is one store.
///
/// # Safety
/// That many bytes may be read and written there.
#[inline(always)]
unsafe fn copy(from: *const u8, into: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            8 => into.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            _ => std::ptr::copy(from, into, len),
        }
    }
}

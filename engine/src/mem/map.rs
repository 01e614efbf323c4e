//! Mappings of memory files, and of the program's memory under the same interface.
use super::file::{self, Pages};
use super::private::{self, Instead};
use crate::error::SetupError;
use crate::machine::memory;
use crate::tuning::{Method, Tuning, Use};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a block in the results of stat.
const BLOCK: u64 = 512;

/// Bytes that are made present before the next check of the memory that is left.
const AT_ONCE: usize = 32 << 20;

/// A mapped range of memory, which is unmapped when this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
    backing: Backing,
    /// The tuning for copies of many bytes; None: ordinary copies.
    tuning: Option<Arc<Tuning>>,
    /// A forked child has private memory in place of this.
    is_private: bool,
}

#[derive(Debug)]
enum Backing {
    File,
    /// Memory that the program gave up; freed with this.
    Words {
        _words: Vec<u64>,
    },
    /// Memory that the program keeps, by its promise.
    Borrowed,
}

// SAFETY: a Mapping is an address range; all access goes through raw copies and atomics (bytes.rs),
// which any thread may do. What the range points to does not move between threads with it.
unsafe impl Send for Mapping {}
// SAFETY: as above, no method hands out a plain reference into the range.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file of our own for reading and writing, with every page present.
    pub(crate) fn own(file: BorrowedFd<'_>, len: usize) -> Result<Self, SetupError> {
        let mapping = Self::map(file, len, true).map_err(SetupError::os("mmap"))?;
        mapping.populate_all()?;
        Ok(mapping)
    }

    /// Maps a file of our own with the pages of these bytes present; others come at their first
    /// access.
    pub(crate) fn own_in_part(
        file: BorrowedFd<'_>,
        len: usize,
        present: impl IntoIterator<Item = Range<usize>>,
    ) -> Result<Self, SetupError> {
        let mapping = Self::map(file, len, true).map_err(SetupError::os("mmap"))?;
        present.into_iter().for_each(|bytes| mapping.populate(bytes));
        Ok(mapping)
    }

    /// Maps a part of a file of our own, or of a peer's that was checked. Pages come at their first
    /// access.
    pub(crate) fn part(file: BorrowedFd<'_>, bytes: Range<u64>) -> Result<Self, SetupError> {
        let len = (bytes.end - bytes.start) as usize;
        Self::map_at(file, bytes.start, len, true).map_err(SetupError::os("mmap"))
    }

    /// Gives the memory of whole pages back to the system: they are zeros from now on. A file
    /// system may be unable to.
    pub(crate) fn give_back(&self, bytes: Range<u64>) {
        let (start, len) = (bytes.start as usize, (bytes.end - bytes.start) as usize);
        let page = rustix::param::page_size();
        assert!(start.is_multiple_of(page) && len.is_multiple_of(page), "whole pages");
        assert!(self.writable && bytes.end <= self.len as u64, "bytes of this mapping");
        // SAFETY: the range is of our mapping of a file; nobody holds references into it (module
        // rules), and any bytes are valid there.
        let _ = unsafe { madvise(self.base.as_ptr().add(start).cast(), len, Advice::LinuxRemove) };
    }

    /// Leaves the mapping out of dumps of this process, which would allocate all its pages.
    pub(crate) fn leave_out_of_dumps(&self) {
        // SAFETY: the range is of our mapping; this changes no content.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxDontDump) };
    }

    /// Maps the slots that the system keeps for a socket, all of which are present. The system
    /// keeps them while they are mapped.
    pub(crate) fn slots(socket: BorrowedFd<'_>, len: usize) -> rustix::io::Result<Self> {
        Self::map(socket, len, true)
    }

    /// Maps a peer's file, after a check that it cannot shrink. Pages that its owner has not
    /// allocated are not made present at our expense. A file of huge pages is refused: its owner
    /// could punch a hole into it, and an access here would end this process where no huge page is
    /// free.
    // spec: LANE-9, ERR-7
    pub(crate) fn foreign(
        file: BorrowedFd<'_>,
        len: usize,
        writable: bool,
    ) -> Result<Self, SetupError> {
        Self::foreign_of(file, (len, Pages::Ordinary), writable)
    }

    /// Maps the file of a region of a peer on a direct connection, which is trusted not to punch
    /// holes into its huge pages.
    // spec: ERR-7
    pub(crate) fn foreign_region(
        file: BorrowedFd<'_>,
        len: usize,
        writable: bool,
    ) -> Result<Self, SetupError> {
        Self::foreign_of(file, (len, Pages::Huge), writable)
    }

    /// Maps a peer's file with pages of at most this size.
    fn foreign_of(
        file: BorrowedFd<'_>,
        (len, largest): (usize, Pages),
        writable: bool,
    ) -> Result<Self, SetupError> {
        let stat = file::check_foreign(file, len, largest)?;
        let mapping = Self::map(file, len, writable).map_err(SetupError::os("mmap"))?;
        if stat.st_blocks as u64 * BLOCK >= len as u64 {
            mapping.populate(0..len);
        }
        Ok(mapping)
    }

    /// Sets the tuning for copies of many bytes.
    // spec: INJ-2
    pub(crate) fn tuned(mut self, tuning: &Arc<Tuning>) -> Self {
        let has_steps = |of| !tuning.steps(of).is_empty();
        let matters = has_steps(Use::Put) || has_steps(Use::Get);
        self.tuning = matters.then(|| tuning.clone());
        self
    }

    /// Has forked children get private memory in place of this.
    // spec: LIFE-35
    pub(crate) fn private(mut self, instead: Instead) -> Self {
        assert!(matches!(self.backing, Backing::File), "what is the program's is its children's");
        private::keep(self.base.as_ptr().expose_provenance(), self.len, instead);
        self.is_private = true;
        self
    }

    /// The method for copies of this length.
    #[inline]
    pub(super) fn method(&self, of: Use, bytes: usize) -> Method {
        match &self.tuning {
            None => of.methods()[0],
            Some(tuning) => tuning.method(of, bytes as u64),
        }
    }

    fn map(file: BorrowedFd<'_>, len: usize, writable: bool) -> rustix::io::Result<Self> {
        Self::map_at(file, 0, len, writable)
    }

    fn map_at(
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        writable: bool,
    ) -> rustix::io::Result<Self> {
        let protection =
            if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a fresh mapping at an address that the kernel chooses aliases nothing of ours.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, offset) }?;
        let base = NonNull::new(base.cast::<u8>()).expect("mmap never returns null without FIXED");
        Ok(Self { base, len, writable, backing: Backing::File, tuning: None, is_private: false })
    }

    /// Makes all pages present, step by step, so that other processes which do so are noticed.
    // spec: REG-1, LIM-5
    fn populate_all(&self) -> Result<(), SetupError> {
        for start in (0..self.len).step_by(AT_ONCE) {
            if self.len >= AT_ONCE {
                memory::ask((self.len - start) as u64)?;
            }
            self.populate(start..self.len.min(start + AT_ONCE));
        }
        Ok(())
    }

    /// Makes the pages of these bytes present, so that no operation there takes a page fault.
    /// Kernels before 5.14 lack this advice; there pages come at their first access.
    // spec: REG-1
    fn populate(&self, bytes: Range<usize>) {
        let advice =
            if self.writable { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        let first = bytes.start / rustix::param::page_size() * rustix::param::page_size();
        assert!(first <= bytes.end && bytes.end <= self.len, "bytes of this mapping");
        // SAFETY: the range is of our mapping; populating changes no content.
        let _ = unsafe { madvise(self.base.as_ptr().add(first).cast(), bytes.end - first, advice) };
    }

    /// Takes memory that the program gives up.
    pub(crate) fn of_words(mut words: Vec<u64>) -> Self {
        let len = words.len() * 8;
        let base = NonNull::new(words.as_mut_ptr().cast::<u8>()).expect("a Vec is never null");
        Self {
            base,
            len,
            writable: true,
            backing: Backing::Words { _words: words },
            tuning: None,
            is_private: false,
        }
    }

    /// Uses memory that the program keeps.
    ///
    /// # Safety
    /// `base..base + len` must be valid for reads and writes, and no Rust reference may be used to
    /// access it, as long as the mapping lives.
    pub(crate) unsafe fn of_raw(base: NonNull<u8>, len: usize) -> Self {
        Self {
            base,
            len,
            writable: true,
            backing: Backing::Borrowed,
            tuning: None,
            is_private: false,
        }
    }

    /// Replaces the pages at this mapping's address by those of another file, atomically: peers
    /// that have mapped the old file no longer reach the memory of this process.
    pub(crate) fn replace(&self, file: BorrowedFd<'_>) -> Result<(), SetupError> {
        assert!(matches!(self.backing, Backing::File), "only a file's mapping can be replaced");
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the range is our own mapping and stays mapped throughout; nobody holds references
        // into it (module rules), so replacing its pages breaks no aliasing.
        unsafe { mmap(self.base.as_ptr().cast(), self.len, protection, flags, file.as_fd(), 0) }
            .map_err(SetupError::os("mmap over a region"))?;
        self.populate_all()
    }

    /// The address of the first byte.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether stores are allowed; the MMU enforces that.
    #[inline]
    pub(crate) fn writable(&self) -> bool {
        self.writable
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_private {
            private::forget(self.base.as_ptr().addr());
        }
        if matches!(self.backing, Backing::File) {
            // SAFETY: the range was mapped by us; nothing points into it once its owner is gone.
            let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
            debug_assert!(unmapped.is_ok(), "our own mapping can be unmapped");
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::mem::file::memory_file;
    use rustix::fd::AsFd;

    // spec: ERR-7
    #[test]
    fn huge_pages_of_a_peer_are_mapped_for_a_region_only() {
        const LEN: usize = 2 << 20;
        let file = memory_file(LEN, Pages::Huge).expect("whether there are any or not");
        let refused =
            |mapped: Result<Mapping, SetupError>| matches!(mapped, Err(SetupError::UnsafeFile));
        assert!(refused(Mapping::foreign(file.as_fd(), LEN, true)));
        assert!(refused(Mapping::foreign_region(file.as_fd(), LEN - 4096, true)), "no whole page");
        // The system refuses where none are reserved.
        assert!(!refused(Mapping::foreign_region(file.as_fd(), LEN, true)));
        let file = memory_file(LEN, Pages::Ordinary).expect("memory");
        assert!(Mapping::foreign(file.as_fd(), LEN, true).is_ok());
    }
}

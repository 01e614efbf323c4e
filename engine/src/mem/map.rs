//! Mappings of memory files, and memory of the program taken under the same roof.
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

/// Bytes of a block, as stat counts them.
const BLOCK: u64 = 512;

/// Bytes that are made present before it is asked how many are left, and from how many on.
const AT_ONCE: usize = 32 << 20;

/// A range of memory that lives as long as this value.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
    backing: Backing,
    /// By which methods many bytes are copied in and out; none: as usual.
    tuning: Option<Arc<Tuning>>,
    /// A forked child has other memory in its place.
    is_private: bool,
}

#[derive(Debug)]
enum Backing {
    File,
    /// Memory that the program gave us; kept alive here.
    Words {
        _words: Vec<u64>,
    },
    /// Memory that the program promised to keep.
    Borrowed,
}

// SAFETY: a Mapping is an address range; all access goes through raw copies and atomics (bytes.rs),
// which any thread may do. What the range points to does not move between threads with it.
unsafe impl Send for Mapping {}
// SAFETY: as above, no method hands out a plain reference into the range.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file that we made, for reading and writing, with every page present.
    pub(crate) fn own(file: BorrowedFd<'_>, len: usize) -> Result<Self, SetupError> {
        let mapping = Self::map(file, len, true).map_err(SetupError::os("mmap"))?;
        mapping.populate_all()?;
        Ok(mapping)
    }

    /// The same with the pages of these bytes present; others come when they are first touched.
    pub(crate) fn own_in_part(
        file: BorrowedFd<'_>,
        len: usize,
        present: impl IntoIterator<Item = Range<usize>>,
    ) -> Result<Self, SetupError> {
        let mapping = Self::map(file, len, true).map_err(SetupError::os("mmap"))?;
        present.into_iter().for_each(|bytes| mapping.populate(bytes));
        Ok(mapping)
    }

    /// Maps the slots that the system keeps for a socket, all of which are present. It keeps them
    /// as long as they are mapped.
    pub(crate) fn slots(socket: BorrowedFd<'_>, len: usize) -> rustix::io::Result<Self> {
        Self::map(socket, len, true)
    }

    /// Maps a file that a peer handed over, after making sure that it cannot shrink under us. Pages
    /// that its owner has not paid for are not made present at our expense. It is none of huge
    /// pages: its owner could still punch a hole into such a one, and where no huge page is free
    /// then, an access here would end this process.
    // spec: LANE-9, ERR-7
    pub(crate) fn foreign(
        file: BorrowedFd<'_>,
        len: usize,
        writable: bool,
    ) -> Result<Self, SetupError> {
        Self::foreign_of(file, (len, Pages::Ordinary), writable)
    }

    /// The same of a region of a peer on a direct connection, which is trusted to leave its huge
    /// pages where they are.
    // spec: ERR-7
    pub(crate) fn foreign_region(
        file: BorrowedFd<'_>,
        len: usize,
        writable: bool,
    ) -> Result<Self, SetupError> {
        Self::foreign_of(file, (len, Pages::Huge), writable)
    }

    /// With pages of that size at most.
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

    /// The same memory, many bytes of which are moved as a machine's cut-offs say.
    // spec: INJ-2
    pub(crate) fn tuned(mut self, tuning: &Arc<Tuning>) -> Self {
        let has_steps = |of| !tuning.steps(of).is_empty();
        let matters = has_steps(Use::Put) || has_steps(Use::Get);
        self.tuning = matters.then(|| tuning.clone());
        self
    }

    /// The same memory, which a forked child of this process does not reach.
    // spec: LIFE-35
    pub(crate) fn private(mut self, instead: Instead) -> Self {
        assert!(matches!(self.backing, Backing::File), "what is the program's is its children's");
        private::keep(self.base.as_ptr().expose_provenance(), self.len, instead);
        self.is_private = true;
        self
    }

    /// By which method so many bytes are copied.
    #[inline]
    pub(super) fn method(&self, of: Use, bytes: usize) -> Method {
        match &self.tuning {
            None => of.methods()[0],
            Some(tuning) => tuning.method(of, bytes as u64),
        }
    }

    fn map(file: BorrowedFd<'_>, len: usize, writable: bool) -> rustix::io::Result<Self> {
        let protection =
            if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of ours.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0) }?;
        let base = NonNull::new(base.cast::<u8>()).expect("mmap never returns null without FIXED");
        Ok(Self { base, len, writable, backing: Backing::File, tuning: None, is_private: false })
    }

    /// Makes all pages present, so much at a time that others who do the same are seen.
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

    /// Makes the pages of these bytes present, so that no operation there faults. Kernels before
    /// 5.14 lack the advice; there the pages come with the first access.
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

    /// Takes memory that the program keeps.
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

    /// Puts another file's pages at this mapping's address, atomically: peers that still map the
    /// old file no longer reach what this process sees here.
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

    /// First byte.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether stores are possible; the MMU says so too.
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
        // Where none are reserved, the system says no.
        assert!(!refused(Mapping::foreign_region(file.as_fd(), LEN, true)));
        let file = memory_file(LEN, Pages::Ordinary).expect("memory");
        assert!(Mapping::foreign(file.as_fd(), LEN, true).is_ok());
    }
}

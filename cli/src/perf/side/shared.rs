//! The mapping that both ranks see: plain shared memory, with nothing of Ayre in it.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::io::pread;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of one cache line.
pub(crate) const LINE: usize = 64;

/// The largest message or copy that the bulk area of a rank holds.
pub(crate) const LARGEST: usize = 16 << 20;

/// Which of two forms a ring has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::perf) enum Form {
    /// Lines one behind the other; or few slots, which stay in the first-level cache.
    Compact,
    /// Lines two apart, out of reach of adjacent-line prefetching. Or slots in a number that makes
    /// them reach the shared cache before they are read.
    Wide,
}

/// The layout of the mapping. Each rank has its own copy of every area it writes, and areas start
/// on pages of their own. So no two of them share a line or a prefetched pair of lines.
pub(crate) mod layout {
    use super::{LARGEST, LINE};

    const PAGE: usize = 4096;

    /// Arrival counters of the barrier, two lines apart, one a rank.
    pub(crate) const ARRIVALS: usize = 0;
    /// How many ranks the barrier has room for.
    pub(crate) const MAX_RANKS: usize = 64;
    /// The value that rank 0 announces.
    pub(crate) const ANNOUNCEMENT: usize = 2 * PAGE;
    /// The line of the atomic operations.
    pub(crate) const ATOMIC: usize = 3 * PAGE;
    /// One line a rank: the ping-pong's, then the put's.
    pub(crate) const PINGPONG: [usize; 2] = [4 * PAGE, 5 * PAGE];
    pub(crate) const PUT: [usize; 2] = [6 * PAGE, 7 * PAGE];
    /// The consumer's cursors for each rank's outgoing rings, two lines apart.
    pub(crate) const CURSORS: [usize; 2] = [8 * PAGE, 9 * PAGE];
    /// How many rows were printed.
    pub(crate) const ROWS: usize = 10 * PAGE;
    /// Each rank's outgoing rings of lines: the compact ones, then the wide ones.
    pub(crate) const LINES: [[usize; 2]; 2] = [[12 * PAGE, 16 * PAGE], [20 * PAGE, 24 * PAGE]];
    const LINES_BYTES: usize = 4 * PAGE;
    /// Each rank's outgoing ring of slots, for messages longer than a line.
    pub(crate) const SLOTS: [usize; 2] = [32 * PAGE, 32 * PAGE + SLOTS_BYTES];
    pub(crate) const SLOTS_BYTES: usize = 5 << 20;
    /// Each rank's bulk area, with a line in front of it for a sequence number.
    pub(crate) const BULK: [usize; 2] =
        [SLOTS[1] + SLOTS_BYTES, SLOTS[1] + SLOTS_BYTES + BULK_BYTES];
    const BULK_BYTES: usize = LARGEST + PAGE;
    /// The words on which ranks sleep: two lines per rank for tokens, then the barrier's two.
    const TOKENS: usize = BULK[1] + BULK_BYTES;
    pub(crate) const MEETING: usize = TOKENS + MAX_RANKS * 2 * LINE;
    /// The consumer's cursors for the rings of many producers, two lines apart, then the rings.
    pub(crate) const FAN_IN_CURSORS: usize = MEETING + PAGE;
    pub(crate) const FAN_IN: usize = FAN_IN_CURSORS + MAX_RANKS * 2 * LINE;
    pub(crate) const FAN_IN_BYTES: usize = LINES_BYTES;
    /// A line from each rank to each, twice: for even and for odd rounds.
    pub(crate) const ALL_TO_ALL: usize = FAN_IN + MAX_RANKS * FAN_IN_BYTES;
    pub(crate) const ALL_TO_ALL_BYTES: usize = MAX_RANKS * MAX_RANKS * LINE;
    /// A queue behind a lock: the lock, the tail and the head two lines apart, then the ring.
    pub(crate) const LOCKED: usize = ALL_TO_ALL + 2 * ALL_TO_ALL_BYTES;
    pub(crate) const LOCKED_RING: usize = LOCKED + PAGE;
    /// The whole mapping.
    pub(in crate::perf) const BYTES: usize = LOCKED_RING + 2 * PAGE;

    /// A rank's lines for tokens.
    pub(crate) const fn token(rank: usize) -> usize {
        TOKENS + rank * 2 * LINE
    }

    const _: () = assert!(MAX_RANKS * 2 * LINE <= ANNOUNCEMENT);
    const _: () = assert!(LINES[1][1] + LINES_BYTES <= SLOTS[0]);
}

/// One cache line as eight words. By convention of the raw programs word 0 carries a sequence
/// number, stored last, and the other seven the payload.
#[repr(C, align(64))]
pub(in crate::perf) struct Line {
    pub(in crate::perf) words: [AtomicU64; 8],
}

/// Memory that both ranks have mapped, read and write.
pub(crate) struct RawShared {
    base: NonNull<u8>,
}

impl RawShared {
    /// Makes the memory. The descriptor survives `exec`, so that the ranks can inherit it.
    pub(crate) fn create() -> io::Result<OwnedFd> {
        let memory = memfd_create("ayre-perf", MemfdFlags::empty())?;
        ftruncate(&memory, layout::BYTES as u64)?;
        Ok(memory)
    }

    /// How many rows the ranks, which have ended, have printed.
    pub(crate) fn rows(memory: impl AsFd) -> io::Result<u64> {
        let mut rows = [0; 8];
        pread(memory, &mut rows, layout::ROWS as u64)?;
        Ok(u64::from_ne_bytes(rows))
    }

    /// Maps the memory and populates it, so that no measurement meets a page fault.
    pub(crate) fn map(memory: impl AsFd) -> io::Result<Self> {
        let size = fstat(&memory)?.st_size;
        if size != layout::BYTES as i64 {
            let what = format!("the shared memory has {size} bytes instead of {}", layout::BYTES);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                layout::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                memory,
                0,
            )?
        };
        Ok(Self { base: NonNull::new(address.cast()).expect("a mapping is never at address 0") })
    }

    /// The line at `offset` of the mapping.
    pub(in crate::perf) fn line(&self, offset: usize) -> &Line {
        &self.lines(offset, 1)[0]
    }

    /// One word on a line of its own at `offset` of the mapping.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.line(offset).words[0]
    }

    /// Half a word, which ranks can sleep on, on a line of its own at `offset` of the mapping.
    pub(in crate::perf) fn half_word(&self, offset: usize) -> &AtomicU32 {
        let line: *const Line = self.line(offset);
        // SAFETY: the line lies in the mapping and is aligned; an atomic may be written by the
        // other processes, and nobody accesses this line in other pieces.
        unsafe { &*line.cast::<AtomicU32>() }
    }

    /// `count` consecutive lines at `offset` of the mapping.
    pub(in crate::perf) fn lines(&self, offset: usize, count: usize) -> &[Line] {
        assert!(offset.is_multiple_of(LINE) && offset + count * LINE <= layout::BYTES);
        // SAFETY: the range lies in the mapping (asserted), which lives as long as `self` and is
        // aligned to pages, so the lines are aligned too; zeroed memory is a valid `Line`; all its
        // words are atomics, so the other process may write them.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// `len` bytes at `offset` of the mapping, for copies.
    pub(in crate::perf) fn bytes(&self, offset: usize, len: usize) -> SharedBytes<'_> {
        assert!(offset.is_multiple_of(LINE) && offset + len <= layout::BYTES);
        // SAFETY: the range lies in the mapping (asserted).
        let start = unsafe { self.base.as_ptr().add(offset) };
        SharedBytes { start, len, mapping: PhantomData }
    }
}

impl Drop for RawShared {
    fn drop(&mut self) {
        // SAFETY: `base` is the start of a mapping of this length, and everything handed out
        // borrows `self`. A failure would leave the mapping to the end of the process: harmless.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), layout::BYTES) };
    }
}

/// A range of the mapping that is copied to and from, never referenced.
#[derive(Clone, Copy)]
pub(in crate::perf) struct SharedBytes<'a> {
    start: *mut u8,
    len: usize,
    mapping: PhantomData<&'a RawShared>,
}

impl SharedBytes<'_> {
    /// Copies `source` to the start of the range.
    #[inline(always)]
    pub(in crate::perf) fn write(self, source: &[u8]) {
        assert!(source.len() <= self.len);
        // SAFETY: the destination lies in the mapping (asserted), no Rust reference to it exists
        // other than to atomics, and the caller's handshake keeps the other rank from it.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), self.start, source.len()) }
    }

    /// Copies the start of the range to `destination`.
    #[inline(always)]
    pub(in crate::perf) fn read(self, destination: &mut [u8]) {
        assert!(destination.len() <= self.len);
        // SAFETY: the source lies in the mapping (asserted); the caller's handshake keeps the other
        // rank from it meanwhile.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start, destination.as_mut_ptr(), destination.len());
        }
    }

    /// Copies the range to the start of another one.
    #[inline(always)]
    pub(in crate::perf) fn copy_to(self, destination: Self) {
        assert!(self.len <= destination.len);
        // SAFETY: both ranges lie in the mapping (asserted where they were made); where they
        // overlap, `copy` is made for that.
        unsafe { std::ptr::copy(self.start, destination.start, self.len) }
    }
}

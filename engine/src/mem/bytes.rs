//! Copies and atomics on mappings: bounds-checked, never through a reference.
//!
//! A peer may write the same bytes at the same time. Any bit pattern is a valid byte, nothing here
//! branches on the bytes, and bounds come from our own numbers. So a race can only change the data
//! about which the two disagree.
use super::inject::copy_streaming;
use super::map::Mapping;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::errno;
use crate::tuning::{Method, Use};
use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::ptr;

/// Copies below this number of bytes are ordinary ones, whatever the tuning says.
const TUNED_MIN: usize = 512;

impl Mapping {
    #[inline(always)]
    fn range(&self, offset: u64, len: usize) -> *mut u8 {
        let fits = offset <= self.len() as u64 && len as u64 <= self.len() as u64 - offset;
        assert!(fits, "translation admits no range outside a mapping");
        // SAFETY: offset + len is within the mapping, just checked.
        unsafe { self.base().as_ptr().add(offset as usize) }
    }

    #[inline(always)]
    fn range_mut(&self, offset: u64, len: usize) -> *mut u8 {
        assert!(self.writable(), "rights admit no store to a read-only mapping");
        self.range(offset, len)
    }

    /// Copies bytes into the mapping.
    // spec: ORD-5
    #[inline(always)]
    pub(crate) fn write(&self, offset: u64, from: &[u8]) {
        let to = self.range_mut(offset, from.len());
        // SAFETY: `to` has room for from.len() bytes; `from` is a Rust slice and so lies outside
        // the mapping, to which no references exist.
        unsafe { copy(from.as_ptr(), to, from.len(), || self.method(Use::Put, from.len())) }
    }

    /// The place of a few bytes to be written, if the mapping admits that. Nothing panics.
    #[inline(always)]
    pub(crate) fn place_of<'a>(&'a self, offset: u64, from: &'a [u8]) -> Option<ShortWrite<'a>> {
        if from.is_empty() || from.len() >= TUNED_MIN {
            return None;
        }
        let to = self.admitted(offset, from.len())?;
        Some(ShortWrite { to, from })
    }

    /// A word to be updated, if the mapping admits that. Nothing panics.
    #[inline(always)]
    pub(crate) fn word_to_update(&self, offset: u64) -> Option<UpdatedWord<'_>> {
        let at = self.admitted(offset, 8)?.cast::<AtomicU64>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: in range and aligned; an atomic may be shared with any process.
        Some(UpdatedWord(unsafe { &*at }))
    }

    /// The beginning of a range that may be written, if there is one.
    #[inline(always)]
    fn admitted(&self, offset: u64, len: usize) -> Option<*mut u8> {
        let room = (self.len() as u64).checked_sub(offset)?;
        if !self.writable() || len as u64 > room {
            return None;
        }
        // SAFETY: offset + len is within the mapping, just checked.
        Some(unsafe { self.base().as_ptr().add(offset as usize) })
    }

    /// Copies several slices into the mapping, one after the other.
    // spec: ORD-5
    #[inline(always)]
    pub(crate) fn write_all<const N: usize>(&self, offset: u64, from: [&[u8]; N]) {
        let mut to = self.range_mut(offset, from.iter().map(|part| part.len()).sum());
        for part in from {
            let len = part.len();
            // SAFETY: `to` has room for the rest of the parts, which are Rust slices, as in write.
            unsafe {
                copy(part.as_ptr(), to, len, || self.method(Use::Put, len));
                to = to.add(len);
            }
        }
    }

    /// Copies bytes out of the mapping.
    #[inline(always)]
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let from = self.range(offset, into.len());
        let len = into.len();
        // SAFETY: as in write, with the roles exchanged.
        unsafe { copy(from, into.as_mut_ptr(), len, || self.method(Use::Get, len)) }
    }

    /// Copies bytes out of the mapping to an address.
    ///
    /// # Safety
    /// `to` must be writable for `len` bytes.
    pub(super) unsafe fn read_to(&self, offset: u64, to: *mut u8, len: usize) {
        let from = self.range(offset, len);
        // SAFETY: range() has found len bytes there; the caller vouches for the others.
        unsafe { copy_any(from, to, len) }
    }

    /// Copies bytes from an address into the mapping.
    ///
    /// # Safety
    /// `from` must be readable for `len` bytes.
    pub(super) unsafe fn write_of(&self, offset: u64, from: *const u8, len: usize) {
        let to = self.range_mut(offset, len);
        // SAFETY: range_mut() has found len bytes there; the caller vouches for the others.
        unsafe { copy_any(from, to, len) }
    }

    /// Reads bytes of a file, from this position on, into the mapping. Returns their number, which
    /// is smaller at the end of the file.
    ///
    /// # Errors
    /// Those of pread(2).
    pub(crate) fn read_file(
        &self,
        (offset, len): (u64, usize),
        (file, at): (BorrowedFd<'_>, u64),
    ) -> Result<usize, Errno> {
        let to = self.range_mut(offset, len);
        let position = i64::try_from(at).map_err(|_| Errno::INVAL)?;
        // SAFETY: range_mut() has found len bytes there, to which no references exist.
        let read = unsafe { libc::pread(file.as_raw_fd(), to.cast(), len, position) };
        usize::try_from(read).map_err(|_| errno::last())
    }

    /// Copies from one mapping to another, or within one, where the ranges may overlap.
    #[inline(always)]
    pub(crate) fn write_from(&self, offset: u64, from: &Self, from_offset: u64, len: usize) {
        let to = self.range_mut(offset, len);
        let from = from.range(from_offset, len);
        // SAFETY: both ranges hold len bytes; ptr::copy allows overlap.
        unsafe { ptr::copy(from, to, len) }
    }

    /// Stores an aligned word, little-endian, in one access that releases everything before it.
    // spec: ORD-4, ORD-11
    #[inline(always)]
    pub(crate) fn store(&self, offset: u64, value: u64) {
        assert!(self.writable(), "rights admit no store to a read-only mapping");
        // LOCK-R1: a load of the word with acquire sees all puts before it.
        self.word(offset).store(value.to_le(), Ordering::Release);
    }

    /// A word for flags and counters; `offset` must be a multiple of eight.
    #[inline(always)]
    pub(crate) fn word(&self, offset: u64) -> &AtomicU64 {
        let at = self.range(offset, 8).cast::<AtomicU64>();
        assert!(at.is_aligned(), "words lie at multiples of eight");
        // SAFETY: in range and aligned; an atomic may be shared with any process. A word of a
        // read-only mapping is only loaded (a store would fault, and corrupt nothing).
        unsafe { &*at }
    }

    /// Half a word; `offset` must be a multiple of four.
    #[inline(always)]
    pub(crate) fn half_word(&self, offset: u64) -> &AtomicU32 {
        let at = self.range_mut(offset, 4).cast::<AtomicU32>();
        assert!(at.is_aligned(), "half words lie at multiples of four");
        // SAFETY: in range and aligned; an atomic may be shared with any process.
        unsafe { &*at }
    }

    /// Performs an atomic operation with the processor's own instructions, so that it is atomic
    /// with respect to all other atomics, local ones included.
    // spec: ATOM-4, ORD-8, ORD-11
    #[inline(always)]
    pub(crate) fn atomic(&self, offset: u64, atomic: &Atomic) -> Fetched {
        assert!(self.writable(), "rights admit no atomic on a read-only mapping");
        match atomic.width {
            Width::W64 => atomic64(self.word(offset), atomic),
            Width::W32 => atomic32(self.half_word(offset), atomic),
        }
    }
}

/// A few bytes, and the place in a mapping to which they go.
pub(crate) struct ShortWrite<'a> {
    to: *mut u8,
    from: &'a [u8],
}

impl ShortWrite<'_> {
    // spec: ORD-5
    #[inline(always)]
    pub(crate) fn perform(self) {
        let Self { to, from } = self;
        // SAFETY: as in Mapping::write: place_of() has found room for all bytes, and the mapping is
        // borrowed.
        unsafe { copy(from.as_ptr(), to, from.len(), || Method::Cached) }
    }
}

/// A word of a mapping that admits atomics.
pub(crate) struct UpdatedWord<'a>(&'a AtomicU64);

impl UpdatedWord<'_> {
    // spec: ATOM-4, ORD-8, ORD-11
    #[inline(always)]
    pub(crate) fn perform(self, atomic: &Atomic) -> Fetched {
        atomic64(self.0, atomic)
    }
}

/// Copies between ranges that may overlap, since a program may send data from memory that it has
/// exposed. An aligned number of 1 to 8 bytes is moved in one access.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes.
#[inline]
pub(super) unsafe fn copy_any(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: each access covers exactly len bytes, for which the caller vouches.
    unsafe {
        match len {
            1 => ptr::write(to, ptr::read(from)),
            2 => ptr::write_unaligned(to.cast::<u16>(), ptr::read_unaligned(from.cast())),
            4 => ptr::write_unaligned(to.cast::<u32>(), ptr::read_unaligned(from.cast())),
            8 => move_words::<1>(from, to),
            _ => ptr::copy(from, to, len),
        }
    }
}

/// Copies with a few wide moves where a call would cost more than the copy, and many bytes by the
/// given method.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes, and they must not overlap.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize, method: impl FnOnce() -> Method) {
    // SAFETY: every access below stays within len bytes of its pointer: the second of each pair of
    // moves ends exactly at len. The caller vouches for the ranges.
    unsafe {
        match len {
            8 => move_words::<1>(from, to),
            9..=16 => move_ends::<1>(from, to, len),
            17..=32 => move_ends::<2>(from, to, len),
            33..=64 => move_ends::<4>(from, to, len),
            _ if len >= TUNED_MIN && method() == Method::Streaming => copy_streaming(from, to, len),
            _ => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Moves the first and the last N words of a range, which together cover N to 2N words.
///
/// # Safety
/// As [`copy`], with `8 * N <= len`.
#[inline(always)]
unsafe fn move_ends<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
    let last = len - 8 * N;
    // SAFETY: both moves cover 8N bytes, the second ends at len; the caller vouches for the ranges.
    unsafe {
        move_words::<N>(from, to);
        move_words::<N>(from.add(last), to.add(last));
    }
}

/// # Safety
/// As [`copy`], with `len == 8 * N`.
#[inline(always)]
unsafe fn move_words<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: unaligned accesses of exactly 8N bytes, for which the caller vouches.
    unsafe { ptr::write_unaligned(to.cast::<[u64; N]>(), ptr::read_unaligned(from.cast())) }
}

macro_rules! atomic_by_width {
    ($name:ident, $word:ty, $int:ty, $signed:ty) => {
        #[inline(always)]
        fn $name(word: &$word, atomic: &Atomic) -> Fetched {
            let operand = atomic.operand as $int;
            // Every remote atomic both releases and acquires, LOCK-R1 and LOCK-A1 in one: a lock
            // word orders the data that it protects.
            let order = Ordering::AcqRel;
            let old = match atomic.op {
                AtomicOp::Add => word.fetch_add(operand, order),
                AtomicOp::And => word.fetch_and(operand, order),
                AtomicOp::Or => word.fetch_or(operand, order),
                AtomicOp::Xor => word.fetch_xor(operand, order),
                AtomicOp::Swap => word.swap(operand, order),
                _ => {
                    // LOCK-A1: a declined exchange acquires, too, as a successful one does.
                    let acquire = Ordering::Acquire;
                    let update = |old: $int| atomic.apply(old as u64).map(|new| new as $int);
                    match word.fetch_update(order, acquire, update) {
                        Ok(old) | Err(old) => old,
                    }
                }
            };
            atomic.fetched(old as u64)
        }
    };
}
atomic_by_width!(atomic64, AtomicU64, u64, i64);
atomic_by_width!(atomic32, AtomicU32, u32, i32);

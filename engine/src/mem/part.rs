//! Words of a mapping that several processes access.
use super::map::Mapping;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::ptr::NonNull;
use std::sync::Arc;

/// A part of a mapping whose place was checked once.
#[derive(Clone, Debug)]
pub(crate) struct Part<const BYTES: usize> {
    at: NonNull<u8>,
    mapping: Arc<Mapping>,
}

// SAFETY: the pointer leads into a mapping that this value keeps alive; only atomics are accessed
// through it, which any thread may do.
unsafe impl<const BYTES: usize> Send for Part<BYTES> {}
// SAFETY: as above.
unsafe impl<const BYTES: usize> Sync for Part<BYTES> {}

impl<const BYTES: usize> Part<BYTES> {
    pub(crate) fn new(mapping: &Arc<Mapping>, offset: u64) -> Self {
        assert!(mapping.writable(), "words of both sides are written");
        assert!(offset as usize + BYTES <= mapping.len(), "the part lies in the mapping");
        let at = NonNull::from(mapping.word(offset)).cast::<u8>();
        Self { at, mapping: mapping.clone() }
    }

    #[inline(always)]
    pub(crate) fn word(&self, place: usize) -> &AtomicU64 {
        assert!(place.is_multiple_of(8) && place + 8 <= BYTES, "words lie in their part");
        // SAFETY: new() found the part inside the mapping and aligned, and so is the word: above.
        unsafe { self.at.add(place).cast().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn half(&self, place: usize) -> &AtomicU32 {
        assert!(place.is_multiple_of(4) && place + 4 <= BYTES, "half words lie in their part");
        // SAFETY: as in word().
        unsafe { self.at.add(place).cast().as_ref() }
    }

    /// The mapping that it is a part of.
    #[inline(always)]
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    // Relaxed, in these four: a lock, or another word, orders what they access.

    /// A word, without order.
    #[inline(always)]
    pub(crate) fn get(&self, place: usize) -> u64 {
        // Relaxed: as above.
        self.word(place).load(Ordering::Relaxed)
    }

    /// Sets a word, without order.
    #[inline(always)]
    pub(crate) fn set(&self, place: usize, value: u64) {
        // Relaxed: as above.
        self.word(place).store(value, Ordering::Relaxed);
    }

    /// Half a word, without order.
    #[inline(always)]
    pub(crate) fn get_half(&self, place: usize) -> u32 {
        // Relaxed: as above.
        self.half(place).load(Ordering::Relaxed)
    }

    /// Sets half a word, without order.
    #[inline(always)]
    pub(crate) fn set_half(&self, place: usize, value: u32) {
        // Relaxed: as above.
        self.half(place).store(value, Ordering::Relaxed);
    }
}

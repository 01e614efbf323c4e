//! Words of a mapping whose place is checked once.
use super::map::Mapping;
use crate::sync::AtomicU64;
use std::ops::Deref;
use std::sync::Arc;

/// A shared word, for fast paths in place of a mapping and an offset.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    at: *const AtomicU64,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer leads to an atomic in a mapping that this value keeps alive; any thread may
// use it.
unsafe impl Send for Word {}
// SAFETY: any thread may use an atomic.
unsafe impl Sync for Word {}

impl Word {
    pub(crate) fn new(mapping: &Arc<Mapping>, offset: u64) -> Self {
        Self { at: mapping.word(offset), _mapping: mapping.clone() }
    }
}

impl Deref for Word {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        // SAFETY: new() found the word inside the mapping, aligned; the mapping lives as long as
        // self and never moves.
        unsafe { &*self.at }
    }
}

/// The words at the beginning of a mapping, which fast paths find by an index that is known to be
/// small.
#[derive(Debug)]
pub(crate) struct Words<const N: usize>(Mapping);

impl<const N: usize> Words<N> {
    pub(crate) fn new(mapping: Mapping) -> Self {
        assert!(8 * N <= mapping.len(), "a mapping has room for its words");
        assert!(mapping.base().cast::<AtomicU64>().is_aligned(), "words lie at multiples of eight");
        Self(mapping)
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.0
    }
}

impl<const N: usize> Deref for Words<N> {
    type Target = [AtomicU64; N];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64; N] {
        // SAFETY: new() found N words inside the mapping, aligned; its length and place never
        // change. A read-only mapping's words are only loaded, as Mapping::word says.
        unsafe { self.0.base().cast::<[AtomicU64; N]>().as_ref() }
    }
}

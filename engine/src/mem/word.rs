//! A word of a mapping whose place was checked once.
use super::map::Mapping;
use crate::sync::AtomicU64;
use std::ops::Deref;
use std::sync::Arc;

/// A shared word: what hot paths hold instead of a mapping and an offset.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    at: *const AtomicU64,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer leads to an atomic in a mapping that this value keeps alive; any thread may
// use it.
unsafe impl Send for Word {}
// SAFETY: as above; an atomic is made for sharing.
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

//! Memory that remotes may work on, by key.
use crate::error::Fault;
use crate::mem::exposed::Exposed;
use crate::mem::span::Span;
use ayre_proto::units::{Rights, RmaClaim};
use ayre_proto::xlate::memory_regions::{self, Exposure};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use memory_regions::{ExposeError, MEMORY_REGION_SPANS_MAX, MEMORY_REGIONS_MAX};

/// Memory to be opened for remotes.
///
/// Unlike the memory of a message, others may read and write it meanwhile, the program among them.
/// The maker of its spans has promised that they stay until the memory region is withdrawn.
#[derive(Clone, Debug)]
pub struct MemoryRegion {
    /// How remotes call it.
    pub key: u64,
    /// How they call its first byte.
    pub base: u64,
    /// Up to [`MEMORY_REGION_SPANS_MAX`] ranges, one behind the other; may be read-only without
    /// [`Rights::WRITE`].
    pub memory: Vec<Span>,
    /// The permitted accesses: [`Rights::READ`] and [`Rights::WRITE`] concern memory regions.
    pub rights: Rights,
}

/// Memory regions: memory that remotes may work on, by key. Clones are the same windows; several
/// endpoints may share them.
#[derive(Clone, Debug)]
pub struct MemoryRegions {
    /// Of sets beside each other: one lock, as their memory may be the same.
    sets: Arc<Mutex<Vec<Table>>>,
    own: usize,
}

/// The open memory regions of a set.
type Table = memory_regions::MemoryRegions<Exposed>;

impl Default for MemoryRegions {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryRegions {
    /// No windows.
    pub fn new() -> Self {
        Self { sets: Arc::new(Mutex::new(vec![Table::default()])), own: 0 }
    }

    /// Others, none of which is open yet, under keys of their own. Their memory may be the same:
    /// updates by way of either are whole to those by way of the other.
    // spec: ENV-21, ENV-28
    pub fn beside(&self) -> Self {
        let mut sets = self.lock();
        sets.push(Table::default());
        debug_assert!(self.own < sets.len() - 1, "each set is its own");
        Self { sets: Arc::clone(&self.sets), own: sets.len() - 1 }
    }

    /// Opens a window to the remotes of every endpoint that shares these windows.
    ///
    /// # Errors
    /// See [`ExposeError`].
    // spec: ENV-21
    pub fn expose(&self, region: MemoryRegion) -> Result<(), ExposeError> {
        let MemoryRegion { key, base, memory, rights } = region;
        if memory.len() > MEMORY_REGION_SPANS_MAX {
            return Err(ExposeError::TooManySpans);
        }
        let memory = Exposed::new(memory).ok_or(ExposeError::TooLong)?;
        let seen = Exposure { base, len: memory.len(), rights };
        self.lock()[self.own].expose(key, seen, memory)
    }

    /// Closes a window. When this returns, no remote touches its memory any more. False where there
    /// is none of this key.
    // spec: ENV-22
    pub fn withdraw(&self, key: u64) -> bool {
        self.lock()[self.own].withdraw(key).is_some()
    }

    /// Does something to the memory of a claim, while no endpoint touches any of these windows or
    /// of those beside them, nor is one withdrawn.
    // spec: ENV-22, ENV-23, ENV-28
    #[inline(always)]
    pub(super) fn perform<T>(
        &self,
        claim: &RmaClaim,
        what: impl FnOnce(&Exposed, u64) -> T,
    ) -> Result<T, Fault> {
        let sets = self.lock();
        let (memory, at) = sets[self.own].translate(claim)?;
        Ok(what(memory, at))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Table>> {
        // Whoever panicked has left each table as it was, or with one entry more or less.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn claim(key: u64) -> RmaClaim {
        RmaClaim { key, address: 0, len: 1, rights: Rights::WRITE }
    }

    fn open(regions: &MemoryRegions, key: u64) {
        let memory = vec![Span::of_static(vec![0].leak())];
        regions.expose(MemoryRegion { key, base: 0, memory, rights: Rights::WRITE }).unwrap();
    }

    // spec: ENV-21
    #[test]
    fn sets_beside_each_other_have_keys_of_their_own() {
        let one = MemoryRegions::new();
        let other = one.beside();
        open(&one, 1);
        open(&other, 2);
        assert_eq!(one.perform(&claim(2), |_, _| ()), Err(Fault::UnknownKey));
        assert_eq!(other.perform(&claim(1), |_, _| ()), Err(Fault::UnknownKey));
        assert!(!one.withdraw(2) && other.withdraw(2) && one.withdraw(1));
    }

    // spec: ENV-28
    #[test]
    fn operations_on_sets_that_share_memory_exclude_each_other() {
        let one = MemoryRegions::new();
        let other = one.clone().beside();
        open(&one, 1);
        let is_kept_off = |of: &MemoryRegions| of.sets.try_lock().is_err();
        let during = one.perform(&claim(1), |_, _| is_kept_off(&other) && is_kept_off(&one));
        assert_eq!((during, is_kept_off(&other)), (Ok(true), false));
        assert!(!is_kept_off(&MemoryRegions::new()));
    }
}

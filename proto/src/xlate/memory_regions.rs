//! Memory regions of endpoints: memory under keys that its owner's program chooses, at addresses as
//! that says them.
use super::{contains, permits};
use crate::fault::Fault;
use crate::keyed::Keyed;
use crate::units::{Rights, RmaClaim};

/// Memory regions that are open at a time in a set.
// spec: ENV-21
pub const MEMORY_REGIONS_MAX: usize = 1 << 16;
/// Spans of a memory region.
// spec: ENV-21
pub const MEMORY_REGION_SPANS_MAX: usize = 16;

/// A memory region as remotes see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// The address of its first byte.
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// The rights of remotes: read, write, both or neither.
    pub rights: Rights,
}

/// A memory region was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExposeError {
    /// The key is in use.
    KeyTaken,
    /// The set is full, [`MEMORY_REGIONS_MAX`].
    TooMany,
    /// The memory region has more than [`MEMORY_REGION_SPANS_MAX`] spans.
    TooManySpans,
    /// The address behind its last byte is beyond what an address can be.
    TooLong,
}

/// A set of memory regions, each with its executor's memory.
#[derive(Debug)]
pub struct MemoryRegions<M> {
    open: Keyed<(Exposure, M)>,
}

impl<M> Default for MemoryRegions<M> {
    fn default() -> Self {
        Self { open: Keyed::default() }
    }
}

impl<M> MemoryRegions<M> {
    /// Opens a memory region.
    ///
    /// # Errors
    /// [`ExposeError`], as it says.
    // spec: ENV-21
    pub fn expose(&mut self, key: u64, seen: Exposure, memory: M) -> Result<(), ExposeError> {
        seen.base.checked_add(seen.len).ok_or(ExposeError::TooLong)?;
        if self.open.contains_key(&key) {
            return Err(ExposeError::KeyTaken);
        }
        if self.open.len() >= MEMORY_REGIONS_MAX {
            return Err(ExposeError::TooMany);
        }
        let before = self.open.insert(key, (seen, memory));
        assert!(before.is_none(), "an open memory region keeps its key");
        Ok(())
    }

    /// Closes the memory region of this key, if there is one, and returns its memory. The caller
    /// fences operations under way.
    // spec: ENV-22
    pub fn withdraw(&mut self, key: u64) -> Option<M> {
        let open = self.open.len();
        let withdrawn = self.open.remove(&key);
        debug_assert_eq!(open - self.open.len(), usize::from(withdrawn.is_some()), "one at a time");
        withdrawn.map(|(_, memory)| memory)
    }

    /// Checks a claim. Returns the memory, and the offset of the claim in it.
    ///
    /// # Errors
    /// The fault of the operation: unknown key, missing rights, or out of bounds.
    // spec: ENV-23
    #[inline]
    pub fn translate(&self, claim: &RmaClaim) -> Result<(&M, u64), Fault> {
        let (seen, memory) = self.open.get(&claim.key).ok_or(Fault::UnknownKey)?;
        permits(seen.rights, claim.rights)?;
        let at = claim.address.checked_sub(seen.base).ok_or(Fault::Bounds)?;
        contains(seen.len, at, claim.len)?;
        debug_assert!(
            at + claim.len <= u64::MAX - seen.base,
            "a memory region does not wrap around"
        );
        Ok((memory, at))
    }
}

impl core::fmt::Display for ExposeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::KeyTaken => "the key is taken",
            Self::TooMany => "too many memory regions",
            Self::TooManySpans => "too many spans",
            Self::TooLong => "the memory region wraps around the end of the addresses",
        })
    }
}

/// Rust prints an error that `main` returns by its `Debug` text, so that one is the message.
impl core::fmt::Debug for ExposeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for ExposeError {}

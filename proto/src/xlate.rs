//! Translation and protection: from a peer's claim to an extent of memory.
//!
//! Exposed memory carries rights and has a length. Every claim is held against both by [`permits`]
//! and [`contains`]. The claim may be to a region, to a memory region of an endpoint in
//! [`memory_regions`], or to an inlet of a depot in [`crate::deposit`]. They differ in how the
//! memory is found.
//!
//! For regions there is one table per port. An entry gives the holder of the capability, its
//! rights, and the range that it covers; its generation tells live keys from revoked ones. The
//! owner is compared on every access, as in EXTOLL's shared-context tables.
use crate::fault::Fault;
use crate::units::{Claim, Extent, Key, PeerId, Rights};
use alloc::boxed::Box;

pub mod memory_regions;

/// Whether rights that were given are enough.
// spec: CAP-2, DEP-14, DEP-16, ENV-23
#[inline(always)]
pub const fn permits(given: Rights, needed: Rights) -> Result<(), Fault> {
    if given.contains(needed) { Ok(()) } else { Err(Fault::Rights) }
}

/// Checks that a range lies in exposed memory of `all` bytes; an empty range may begin behind the
/// last one.
// spec: CAP-5, DEP-14, ENV-23
#[inline(always)]
pub const fn contains(all: u64, offset: u64, len: u64) -> Result<(), Fault> {
    if offset > all || len > all - offset { Err(Fault::Bounds) } else { Ok(()) }
}

/// The holder, rights and range of a new capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The peer that may use it.
    pub holder: PeerId,
    /// The rights.
    pub rights: Rights,
    /// The owner's number of the region.
    pub region: u16,
    /// First byte within the region.
    pub base: u64,
    /// Bytes.
    pub len: u64,
}

impl Cover {
    /// Checks a range of the capability, counted from its first byte, against it.
    // spec: CAP-2, CAP-5
    #[inline(always)]
    pub fn check(&self, claim: &Claim, rights: Rights) -> Result<Extent, Fault> {
        permits(self.rights, rights)?;
        contains(self.len, claim.offset, claim.len)?;
        Ok(Extent::new(self.region, self.base + claim.offset, claim.len))
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    generation: u32,
    cover: Option<Cover>,
}

/// A slot whose generations are used up is never handed out again.
const LAST_GENERATION: u32 = u32::MAX;

/// A port's translation table.
#[derive(Debug)]
pub struct Table {
    entries: Box<[Entry]>,
    next: usize,
}

impl Table {
    /// A table of `slots` free entries; allocates once.
    pub fn new(slots: usize) -> Self {
        assert!(slots > 0 && slots <= 1 << 16, "a slot number has 16 bits");
        let free = Entry { generation: 0, cover: None };
        Self { entries: alloc::vec![free; slots].into_boxed_slice(), next: 0 }
    }

    /// Makes a key for a part of a region. `None` where the table is full.
    // spec: KEY-1, REG-3
    pub fn insert(&mut self, cover: Cover) -> Option<Key> {
        assert!(cover.base.checked_add(cover.len).is_some(), "a cover lies within a region");
        let slots = self.entries.len();
        let slot = (0..slots).map(|i| (self.next + i) % slots).find(|&slot| {
            let entry = &self.entries[slot];
            entry.cover.is_none() && entry.generation != LAST_GENERATION
        })?;
        self.next = (slot + 1) % slots;
        let entry = &mut self.entries[slot];
        assert!(entry.cover.is_none(), "a key that is alive keeps its slot");
        entry.cover = Some(cover);
        Some(Key { slot: slot as u16, generation: entry.generation })
    }

    /// Checks a claim of `holder` that needs `rights`.
    // spec: KEY-2, CAP-7
    #[inline]
    pub fn check(&self, holder: PeerId, claim: &Claim, rights: Rights) -> Result<Extent, Fault> {
        let entry = self.entries.get(claim.key.slot as usize).ok_or(Fault::UnknownKey)?;
        if claim.key.generation < entry.generation {
            return Err(Fault::StaleKey);
        }
        match entry.cover {
            Some(cover) if claim.key.generation == entry.generation && cover.holder == holder => {
                cover.check(claim, rights)
            }
            _ => Err(Fault::UnknownKey),
        }
    }

    /// Ends a key: its slot gets a new generation, so the key faults from here on. Returns the new
    /// generation. The caller fences what is under way.
    // spec: REV-1, REV-2
    pub fn revoke(&mut self, key: Key) -> Result<u32, Fault> {
        let entry = self.entries.get_mut(key.slot as usize).ok_or(Fault::UnknownKey)?;
        if entry.generation != key.generation || entry.cover.is_none() {
            return Err(Fault::StaleKey);
        }
        entry.cover = None;
        entry.generation += 1;
        Ok(entry.generation)
    }

    /// Live keys with a wanted cover, and their holders.
    pub fn live(&self, wanted: impl Fn(&Cover) -> bool) -> impl Iterator<Item = (Key, PeerId)> {
        self.entries.iter().enumerate().filter_map(move |(slot, entry)| {
            let cover = entry.cover.as_ref()?;
            let key = Key { slot: slot as u16, generation: entry.generation };
            wanted(cover).then_some((key, cover.holder))
        })
    }
}

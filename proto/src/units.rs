//! Numbers with a meaning: ports, keys, claims and extents.

/// Names a port among the peers of another one: in a job, its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u16);

impl PeerId {
    /// As an index; in a job, the rank.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a posted operation on one connection; later operations have larger tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names an entry of a translation table. The generation tells a live key from a revoked one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Index into the owner's table.
    pub slot: u16,
    /// Value of the slot's generation when the key was made.
    pub generation: u32,
}

/// An initiator's claim to memory; it is worth nothing until [`crate::xlate::Table`] accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The capability's key.
    pub key: Key,
    /// First byte, counted from the start of the capability's range.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// A remote's claim to a memory region; it is worth nothing until
/// [`crate::xlate::memory_regions::MemoryRegions`] accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmaClaim {
    /// The memory region's key.
    pub key: u64,
    /// First byte, by the address that its owner gave it.
    pub address: u64,
    /// Number of bytes.
    pub len: u64,
    /// The rights that the access needs.
    pub rights: Rights,
}

/// A checked range of a registered region. Only translation makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    region: u16,
    offset: u64,
    len: u64,
}

impl Extent {
    pub(crate) const fn new(region: u16, offset: u64, len: u64) -> Self {
        Self { region, offset, len }
    }

    /// The owner's number of the region.
    pub const fn region(&self) -> u16 {
        self.region
    }

    /// First byte, counted from the start of the region.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of bytes.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the extent holds no byte.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

bitflags::bitflags! {
    /// The rights of the holder of a capability, or of remotes on a memory region.
    // spec: CAP-1
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Rights: u8 {
        /// Get; read a memory region, and fetch by updates.
        const READ = 1;
        /// Put, immediate put; write and update a memory region.
        const WRITE = 2;
        /// Atomic operations on a region.
        const ATOMIC = 4;
        /// Enqueue into a remote queue.
        const ENQUEUE = 8;
        /// Raise notifications at the owner along with an operation.
        const NOTIFY = 16;
        /// Send deposit messages that carry instructions of their own.
        const PROGRAM = 32;
    }
}

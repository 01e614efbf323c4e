//! The two ends of a landing: memory of the receiver, round which one sender puts pieces.
use crate::lane::Malformed;

/// Bytes of the smallest landing.
pub const LANDING_MIN: u64 = 1 << 12;
/// Bytes of the largest landing.
pub const LANDING_MAX: u64 = 1 << 24;
/// A piece, and what is taken before the sender is told, at most: the part of a landing.
const PART: u64 = 4;

/// Whether a landing may have so many bytes.
// spec: AM-12
pub const fn is_landing(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes >= LANDING_MIN && bytes <= LANDING_MAX
}

/// Where a piece lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte in the landing.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A sender's end.
#[derive(Clone, Debug)]
pub struct Outward {
    bytes: u64,
    /// Put in all.
    put: u64,
    /// Taken in all, as far as is known.
    taken: u64,
}

impl Outward {
    /// An empty landing; its bytes come from the peer.
    pub const fn new(bytes: u64) -> Result<Self, Malformed> {
        if is_landing(bytes) { Ok(Self { bytes, put: 0, taken: 0 }) } else { Err(Malformed) }
    }

    /// What holds between two steps, whatever the receiver says.
    const fn check(&self) {
        debug_assert!(self.taken <= self.put, "only what was put is taken");
        debug_assert!(self.put - self.taken <= self.bytes, "what is not taken fits the landing");
    }

    /// Bytes of the landing.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next piece of what has so many bytes left, at least one; none while there is no room for
    /// a whole one. It stays the next one until it is put.
    // spec: AM-12, AM-13
    pub fn next(&self, left: u64) -> Option<Piece> {
        let offset = self.put & (self.bytes - 1);
        let len = left.min(self.bytes / PART).min(self.bytes - offset);
        let room = self.bytes - (self.put - self.taken);
        if len == 0 || len > room { None } else { Some(Piece { offset, len }) }
    }

    /// The next piece was put, and the receiver is told of it.
    pub const fn put(&mut self, piece: Piece) {
        debug_assert!(piece.offset == self.put & (self.bytes - 1), "pieces lie behind each other");
        self.put += piece.len;
        self.check();
    }

    /// The receiver tells how much it has taken.
    // spec: AM-13, AM-15
    pub const fn on_room(&mut self, taken: u64) -> Result<(), Malformed> {
        if taken < self.taken || taken > self.put {
            return Err(Malformed);
        }
        self.taken = taken;
        self.check();
        Ok(())
    }
}

/// A receiver's end.
#[derive(Clone, Debug)]
pub struct Inward {
    bytes: u64,
    taken: u64,
    /// What the sender was told of that.
    told: u64,
    /// Of the message that is being assembled.
    left: u64,
}

impl Inward {
    /// An empty landing.
    ///
    /// # Panics
    /// Where none has so many bytes.
    pub const fn new(bytes: u64) -> Self {
        assert!(is_landing(bytes), "a power of two within the limits");
        Self { bytes, taken: 0, told: 0, left: 0 }
    }

    /// A message of so many bytes begins.
    // spec: AM-15
    pub const fn begin(&mut self, total: u64) -> Result<(), Malformed> {
        if self.left > 0 || total == 0 {
            return Err(Malformed);
        }
        self.left = total;
        Ok(())
    }

    /// A piece has come, and is taken at once.
    // spec: AM-12, AM-15
    pub const fn take(&mut self, len: u64) -> Result<Piece, Malformed> {
        let offset = self.taken & (self.bytes - 1);
        let sound = len > 0 && len <= self.bytes / PART && len <= self.bytes - offset;
        if !sound || len > self.left {
            return Err(Malformed);
        }
        self.taken += len;
        self.left -= len;
        Ok(Piece { offset, len })
    }

    /// Bytes that the message still lacks.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// What the sender is to be told.
    // spec: AM-13
    pub const fn room_due(&self) -> Option<u64> {
        if self.taken - self.told < self.bytes / PART { None } else { Some(self.taken) }
    }

    /// The sender was told.
    pub const fn told(&mut self, taken: u64) {
        debug_assert!(self.told <= taken && taken <= self.taken, "what is told was taken");
        self.told = taken;
    }
}

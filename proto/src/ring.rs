//! A ring of bytes: where the pieces lie that its writer copies in and its reader copies out.
//!
//! Both count bytes from the beginning of time. A position tells its place, which is itself modulo
//! the ring's length, and its turn.
//!
//! The system provides the memory of a ring page by page, when it is accessed. So the writer uses
//! only a part of the ring, from its beginning on, which is narrow at first and doubles. A piece
//! that does not fit there begins one turn later. The reader takes pieces at the positions that it
//! is told.
//!
//! ```text
//!   place  0         used        not touched        length
//!          [ 1 ][ 2 ][ 3 ] ........................ |       4 does not fit behind 3:
//!          [ 4 ] .................................. |       it begins at the next multiple of
//!                                                           the length
//! ```
pub mod asking;
pub mod carried;

use crate::lane::Malformed;
use crate::limits::LINE;

/// Bytes of a ring that its writer uses at first.
// spec: ENV-42
pub const NARROW: u64 = 1 << 16;

/// A writer's end.
#[derive(Clone, Debug)]
pub struct Writer {
    len: u64,
    /// Bytes that are used at first, and now; none before the first piece.
    least: u64,
    used: u64,
    /// The end of the last piece.
    written: u64,
    /// Bytes taken by the reader, as far as is known.
    taken: u64,
    /// A piece that ends before has room, whatever else there is to be known.
    limit: u64,
    /// Whether the writer has begun anew since it uses this much.
    has_turned: bool,
}

impl Writer {
    /// The writer of an empty ring of `len` bytes, a power of two, that uses `least` of them at
    /// first.
    ///
    /// # Panics
    /// If the length is no power of two.
    pub const fn new(len: u64, least: u64) -> Self {
        assert!(len.is_power_of_two(), "places are positions modulo the length");
        let least = if least < len { least } else { len };
        Self { len, least, used: 0, written: 0, taken: 0, limit: 0, has_turned: false }
    }

    /// Invariants that hold between two steps, for all input of the reader.
    #[inline(always)]
    const fn check(&self) {
        debug_assert!(self.taken <= self.written, "only what was written is taken");
        debug_assert!(self.written - self.taken <= self.len, "what is not taken fits the ring");
        debug_assert!(self.used <= self.len, "no more is used than there is");
        debug_assert!(self.limit <= self.taken + self.len, "what has room overwrites nothing");
    }

    /// Bytes of the longest piece that may ever find room.
    pub const fn longest(&self) -> usize {
        self.len as usize / 2
    }

    /// Bytes of the ring.
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// The place of a position in the ring.
    pub const fn place(&self, at: u64) -> u64 {
        at & (self.len - 1)
    }

    /// Bytes that are used.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// The beginning of the next piece of `bytes` bytes, if no further look is needed. The piece
    /// found before must have been written.
    #[inline(always)]
    pub const fn next(&self, bytes: usize) -> Option<u64> {
        if self.written + padded(bytes) <= self.limit { Some(self.written) } else { None }
    }

    /// The beginning of the next piece of `bytes` bytes, given the count of the reader
    /// ([`Writer::on_taken`]). At the end of the part in use, a writer may ask by `may` to use
    /// twice as much. It asks if the reader has not taken the pieces at the beginning, or if the
    /// writer has been at this end before. It also asks if the piece is longer than half of the
    /// part. (It asks for its first part, too, and gets that in any case.)
    ///
    /// A piece of up to half of what is used at first finds room when all others were taken.
    // spec: ENV-11, ENV-13, ENV-42
    pub fn find(&mut self, bytes: usize, mut may: impl FnMut(u64) -> bool) -> Option<u64> {
        self.check();
        let bytes = padded(bytes);
        if self.used == 0 {
            may(self.least);
            self.used = self.least;
        }
        let start = self.written & !(self.len - 1);
        while self.written + bytes > start + self.used {
            let next = start + self.len;
            let fits = bytes <= self.used && self.has_room(next + bytes);
            let is_short = !fits || self.has_turned || bytes > self.used / 2;
            if is_short && self.used < self.len && may(2 * self.used) {
                (self.used, self.has_turned) = (2 * self.used, false);
            } else if fits {
                self.has_turned = true;
                self.limit = (next + self.used).min(self.taken + self.len);
                return Some(next);
            } else {
                return None;
            }
        }
        self.limit = (start + self.used).min(self.taken + self.len);
        self.check();
        self.has_room(self.written + bytes).then_some(self.written)
    }

    /// A piece was written where it was to begin: how far the writer is now.
    #[inline(always)]
    pub const fn wrote(&mut self, at: u64, bytes: usize) -> u64 {
        debug_assert!(at >= self.written, "pieces lie behind each other");
        self.written = at + padded(bytes);
        self.check();
        self.written
    }

    /// The reader says how much it has taken in all.
    ///
    /// # Errors
    /// [`Malformed`] for an impossible count, which changes nothing. If the writer goes on
    /// nevertheless, a reader that sends one harms only itself: it gets no more data.
    // spec: ENV-13, AM-13
    pub const fn on_taken(&mut self, taken: u64) -> Result<(), Malformed> {
        if taken < self.taken || taken > self.written {
            return Err(Malformed);
        }
        self.taken = taken;
        self.check();
        Ok(())
    }

    /// Whether the reader has taken what lay where something would end now.
    const fn has_room(&self, end: u64) -> bool {
        end - self.taken <= self.len
    }
}

/// A reader's end.
#[derive(Clone, Debug)]
pub struct Reader {
    len: u64,
    taken: u64,
}

impl Reader {
    /// The reader of an empty ring of `len` bytes, a power of two.
    pub const fn new(len: u64) -> Self {
        Self { len, taken: 0 }
    }

    /// Bytes of the ring.
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// Taken in all.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// The place of a position in the ring.
    pub const fn place(&self, at: u64) -> u64 {
        at & (self.len - 1)
    }

    /// The beginning of the next piece of `bytes` bytes, if its writer uses the whole ring: then
    /// the position need not be sent.
    // spec: ENV-11, AM-12
    pub const fn next(&self, bytes: usize) -> u64 {
        let turn = (self.taken | (self.len - 1)) + 1;
        if padded(bytes) <= turn - self.taken { self.taken } else { turn }
    }

    /// Whether a piece of `bytes` bytes can lie at a position.
    ///
    /// # Errors
    /// [`Malformed`] where there cannot.
    // spec: ENV-12
    pub fn check(&self, at: u64, bytes: usize) -> Result<(), Malformed> {
        let Self { len, taken } = *self;
        let ahead = at.checked_sub(taken).ok_or(Malformed)?;
        // In this order nothing overflows.
        let is_in_ring = at.is_multiple_of(LINE as u64)
            && bytes as u64 <= len
            && ahead <= len - padded(bytes)
            && (at & (len - 1)) + bytes as u64 <= len;
        if is_in_ring { Ok(()) } else { Err(Malformed) }
    }

    /// A checked piece was copied out; returns the count to report to the writer.
    // spec: ENV-13
    #[inline(always)]
    pub const fn take(&mut self, at: u64, bytes: usize) -> u64 {
        self.taken = at + padded(bytes);
        self.taken
    }
}

/// Pieces begin with a line.
const fn padded(bytes: usize) -> u64 {
    bytes.next_multiple_of(LINE) as u64
}

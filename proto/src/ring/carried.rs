//! A ring whose other end is on another host: what stands there for its reader, where it is
//! written, and for its writer, where it is read. What is passed on lies at both ends at the same
//! place.
use crate::lane::Malformed;
use crate::limits::LINE;

/// Stands for the reader: what has been written is passed on, byte for byte.
#[derive(Clone, Debug)]
pub struct Source {
    len: u64,
    passed: u64,
    /// By the reader, as it has said.
    taken: u64,
}

/// Stands for the writer: what was passed on lands where it was written there.
#[derive(Clone, Debug)]
pub struct Target {
    len: u64,
    come: u64,
}

/// Lines of so many bytes, modulo 2^32.
#[inline]
pub const fn lines_of(bytes: u64) -> u32 {
    (bytes / LINE as u64) as u32
}

impl Source {
    /// Of an empty ring of so many bytes, a power of two.
    pub const fn new(len: u64) -> Self {
        assert!(len.is_power_of_two(), "places are positions modulo the length");
        Self { len, passed: 0, taken: 0 }
    }

    /// What holds between two steps, whatever the reader says.
    #[inline]
    const fn check(&self) {
        debug_assert!(self.taken <= self.passed, "only what was passed on is taken");
        debug_assert!(self.passed - self.taken <= self.len, "what is not taken fits the ring");
    }

    /// Where in the ring the next bytes lie, and how many have yet to be passed on of those in one
    /// piece, where so many were written in all.
    #[inline]
    pub const fn left(&self, written: u64) -> (u64, usize) {
        debug_assert!(written >= self.passed, "only what was written is passed on");
        let place = self.passed & (self.len - 1);
        let (left, before_end) = (written - self.passed, self.len - place);
        (place, if left < before_end { left } else { before_end } as usize)
    }

    /// So many of them were passed on.
    #[inline]
    pub const fn pass(&mut self, bytes: usize) {
        self.passed += bytes as u64;
        self.check();
    }

    /// The reader has taken so many lines in all, modulo 2^32: how many bytes that are.
    ///
    /// # Errors
    /// [`Malformed`] where it says that it has taken what was not passed on, or less than before.
    // spec: WIRE-14
    pub const fn give_back(&mut self, lines: u32) -> Result<u64, Malformed> {
        let more = lines.wrapping_sub(lines_of(self.taken)) as u64 * LINE as u64;
        if more > self.passed - self.taken {
            return Err(Malformed);
        }
        self.taken += more;
        self.check();
        Ok(self.taken)
    }
}

impl Target {
    /// Of an empty ring of so many bytes, a power of two.
    pub const fn new(len: u64) -> Self {
        assert!(len.is_power_of_two(), "places are positions modulo the length");
        Self { len, come: 0 }
    }

    /// Lines of the ring.
    #[inline]
    pub const fn lines(&self) -> u32 {
        lines_of(self.len)
    }

    /// Where in the ring the next bytes are placed, and how many of them before its end; the others
    /// lie at its beginning. Its reader has taken so many in all.
    ///
    /// # Errors
    /// [`Malformed`] where there is no room for them: a writer knows what was taken.
    // spec: WIRE-14
    pub const fn place(&mut self, bytes: usize, taken: u64) -> Result<(u64, usize), Malformed> {
        let end = self.come + bytes as u64;
        // A peer may have named what it has not written: then more was taken than has come.
        if end.saturating_sub(taken) > self.len {
            return Err(Malformed);
        }
        let at = self.come & (self.len - 1);
        let before_end = self.len - at;
        self.come = end;
        debug_assert!(at < self.len, "a place lies in the ring");
        let first = if before_end < bytes as u64 { before_end as usize } else { bytes };
        Ok((at, first))
    }
}

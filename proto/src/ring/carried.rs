//! A ring whose other end is on another host. At the writing end a machine stands for its reader,
//! at the reading end one for its writer. Bytes lie at the same place at both ends.
use crate::lane::Malformed;
use crate::limits::LINE;

/// Stands for the reader: what has been written is passed on, byte for byte.
#[derive(Clone, Debug)]
pub struct Source {
    len: u64,
    passed: u64,
    /// Bytes taken by the reader, as last reported.
    taken: u64,
}

/// Stands for the writer: what was passed on lands where it was written there.
#[derive(Clone, Debug)]
pub struct Target {
    len: u64,
    come: u64,
}

/// Lines of `bytes` bytes, modulo 2^32.
#[inline]
pub const fn lines_of(bytes: u64) -> u32 {
    (bytes / LINE as u64) as u32
}

impl Source {
    /// The stand-in for the reader of an empty ring of `len` bytes, a power of two.
    pub const fn new(len: u64) -> Self {
        assert!(len.is_power_of_two(), "places are positions modulo the length");
        Self { len, passed: 0, taken: 0 }
    }

    /// Invariants that hold between two steps, for all input of the reader.
    #[inline]
    const fn check(&self) {
        debug_assert!(self.taken <= self.passed, "only what was passed on is taken");
        debug_assert!(self.passed - self.taken <= self.len, "what is not taken fits the ring");
    }

    /// The place of the next bytes in the ring, and the number of contiguous bytes that are still
    /// to be passed on, of `written` bytes in all.
    #[inline]
    pub const fn left(&self, written: u64) -> (u64, usize) {
        debug_assert!(written >= self.passed, "only what was written is passed on");
        let place = self.passed & (self.len - 1);
        let (left, before_end) = (written - self.passed, self.len - place);
        (place, if left < before_end { left } else { before_end } as usize)
    }

    /// `bytes` bytes were passed on.
    #[inline]
    pub const fn pass(&mut self, bytes: usize) {
        self.passed += bytes as u64;
        self.check();
    }

    /// The reader has taken `lines` lines in all, modulo 2^32. Returns that in bytes.
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
    /// The stand-in for the writer of an empty ring of `len` bytes, a power of two.
    pub const fn new(len: u64) -> Self {
        assert!(len.is_power_of_two(), "places are positions modulo the length");
        Self { len, come: 0 }
    }

    /// Lines of the ring.
    #[inline]
    pub const fn lines(&self) -> u32 {
        lines_of(self.len)
    }

    /// The place of the next bytes in the ring, and the number of them before its end; the others
    /// lie at its beginning. The reader has taken `taken` bytes in all.
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

//! Byte streams of sockets that two processes of one host share. Each direction of a connection
//! goes by the kernel's TCP or by a ring in shared memory, and changes between them at marked
//! positions.
//!
//! ```text
//!   position   0          a          b          c
//!   way        |  kernel  |   ring   |  kernel  |  ring ...
//!   segment         0          1          2         3
//! ```
//!
//! A direction begins with the kernel. The writer begins a segment and tells its position, its
//! mark, before it sends the first byte of it. The reader goes on to the next segment when it has
//! taken all bytes before the mark. So the way of a segment follows from its number.
//!
//! The reader says by [`Wants`] whether it looks at the ring. It may change its mind at any time.
//! Bytes in the ring that a reader will never look at go to the kernel: [`Outgoing::take_back`].
//!
//! An empty ring begins anew at its first byte, so that short messages touch few pages and lines:
//! `origin` is the position that lies there.
use crate::lane::Malformed;
use core::ops::Range;

pub mod far;
pub mod policy;
mod reason;

pub use self::reason::Reason;

/// Bytes of a ring.
pub const RING: u64 = 1 << 18;

/// Bytes of a small ring: the beginning of each one, which every connection may use. A process
/// writes a bounded number of large ones at a time.
pub const SMALL: u64 = 28 << 10;

/// Marks that a writer has room for. One less may be ahead of the reader.
pub const MARKS: usize = 4;

/// The part of a reader in a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// It looks at the ring before it sleeps, but nothing wakes it for the ring: bytes that are
    /// not in the ring yet go to the kernel.
    Kernel,
    /// As [`Self::Kernel`]; a writer that has put bytes into the ring meanwhile rings this bell.
    KernelBell(u16),
    /// It does not look at the ring. Within a host it may come back, until the writer has claimed
    /// what the ring has.
    Gone,
    /// It has gone, and the writer has claimed what the ring has: the reader never looks again.
    Claimed,
    /// It is awake, and looks at the ring before it sleeps.
    Looking,
    /// It sleeps, or may do so: the writer rings this bell.
    Bell(u16),
}

/// The number of [`Wants::Bell`] with bell 0, in front of [`Wants::KernelBell`]; those before have
/// none.
const FIRST_BELL: u32 = 4;

impl Wants {
    /// As a word in shared memory.
    pub const fn to_word(self) -> u32 {
        match self {
            Self::Kernel => 0,
            Self::Gone => 1,
            Self::Looking => 2,
            Self::Claimed => 3,
            Self::Bell(bell) => FIRST_BELL + 2 * bell as u32,
            Self::KernelBell(bell) => FIRST_BELL + 2 * bell as u32 + 1,
        }
    }

    /// The meaning of a peer's word. Numbers without a meaning count as [`Wants::Kernel`].
    pub const fn of_word(word: u32) -> Self {
        match word {
            1 => Self::Gone,
            2 => Self::Looking,
            3 => Self::Claimed,
            FIRST_BELL.. if (word - FIRST_BELL) / 2 <= u16::MAX as u32 => {
                let bell = ((word - FIRST_BELL) / 2) as u16;
                if word.is_multiple_of(2) { Self::Bell(bell) } else { Self::KernelBell(bell) }
            }
            _ => Self::Kernel,
        }
    }

    /// The bell that the reader hears, if it may sleep.
    pub const fn bell(self) -> Option<u16> {
        match self {
            Self::Bell(bell) | Self::KernelBell(bell) => Some(bell),
            Self::Kernel | Self::Gone | Self::Claimed | Self::Looking => None,
        }
    }

    /// Whether what the ring has is the writer's, or the writer may claim it.
    pub const fn is_gone(self) -> bool {
        matches!(self, Self::Gone | Self::Claimed)
    }

    /// Whether the reader looks at the ring by itself or when it is woken.
    pub const fn is_ring(self) -> bool {
        matches!(self, Self::Looking | Self::Bell(_))
    }
}

/// The words of a writer: how far a direction has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes that were written, by either way.
    pub tail: u64,
    /// The number of the segment that is written.
    pub segment: u32,
    /// The position at the ring's first byte.
    pub origin: u64,
    /// Where segment `n` ends, at `n % MARKS`, for the last ones that have ended.
    pub marks: [u64; MARKS],
}

impl Written {
    /// Where a segment ends, or has got to.
    fn end_of(&self, segment: u32) -> u64 {
        match segment == self.segment {
            true => self.tail,
            false => self.marks[segment as usize % MARKS],
        }
    }

    /// The bytes of the ring that a reader with these words has not taken, of one segment after the
    /// other. Either side's words may be lies: each part has at most [`RING`] bytes.
    fn in_ring(self, taken: Taken) -> impl Iterator<Item = Range<u64>> {
        let ahead = self.segment.wrapping_sub(taken.segment).min(MARKS as u32);
        let mut start = taken.head;
        let parts = (0..=ahead).map(move |i| {
            let segment = taken.segment.wrapping_add(i);
            let end = self.end_of(segment);
            (segment, core::mem::replace(&mut start, end)..end)
        });
        let of_ring = parts.filter(|(segment, part)| is_ring(*segment) && !part.is_empty());
        of_ring.map(|(_, part)| part.start..part.end.min(part.start.saturating_add(RING)))
    }
}

/// The words of a reader: how far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that were taken, by either way.
    pub head: u64,
    /// The number of the segment that is read.
    pub segment: u32,
}

/// Bytes of the ring, in one piece or wrapped around its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The place of the first byte in the ring.
    pub place: u64,
    /// Their number, at most [`RING`].
    pub len: u64,
}

impl Span {
    const fn at(position: u64, origin: u64, len: u64) -> Self {
        Self { place: position.wrapping_sub(origin) % RING, len }
    }
}

/// Whether the bytes of a segment go by the ring.
pub const fn is_ring(segment: u32) -> bool {
    segment % 2 == 1
}

/// The way of the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The kernel's.
    Kernel,
    /// The free part of the ring, which may be empty.
    Ring(Span),
    /// Neither: the reader has yet to come to the last mark.
    Wait,
}

/// The fate of bytes in the ring whose reader has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// These bytes of the ring go to the kernel, and all that follow.
    Span(Span),
    /// Bytes that are older are in the ring, and newer ones with the kernel: the stream is broken.
    Broken,
}

/// The writer's end of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// The words that the reader is told.
    pub written: Written,
    /// The reader has gone for good: all goes to the kernel.
    pub is_left: bool,
}

impl Outgoing {
    /// The way of the next bytes, `by_ring` where both ends want the ring. Begins a segment where
    /// the way changes.
    ///
    /// # Errors
    /// [`Malformed`] where the reader's words cannot be true.
    #[inline]
    pub fn way(&mut self, taken: Taken, by_ring: bool) -> Result<To, Malformed> {
        if self.is_left {
            return Ok(To::Kernel);
        }
        let ahead = self.ahead(taken)?;
        let written = &mut self.written;
        if by_ring != is_ring(written.segment) {
            if ahead as usize + 1 < MARKS {
                written.marks[written.segment as usize % MARKS] = written.tail;
                written.segment = written.segment.wrapping_add(1);
            } else if !by_ring {
                return Ok(To::Wait);
            }
        }
        if !is_ring(written.segment) {
            return Ok(To::Kernel);
        }
        if taken.head == written.tail {
            written.origin = written.tail;
        }
        // Bytes with the kernel that were not taken count as well: the reader comes to them first.
        let free = RING.saturating_sub(written.tail - taken.head);
        Ok(To::Ring(Span::at(written.tail, written.origin, free)))
    }

    /// Whether the last segment that has begun is one of the ring.
    #[inline]
    pub const fn is_in_ring(&self) -> bool {
        is_ring(self.written.segment)
    }

    /// How many segments the reader is behind.
    fn ahead(&self, taken: Taken) -> Result<u32, Malformed> {
        let ahead = self.written.segment.wrapping_sub(taken.segment);
        let is_true = (ahead as usize) < MARKS && taken.head <= self.written.tail;
        if is_true { Ok(ahead) } else { Err(Malformed) }
    }

    /// Counts bytes that were written by the way just told.
    #[inline]
    pub const fn wrote(&mut self, len: u64) {
        self.written.tail += len;
    }

    /// The bytes of the ring that the reader has not taken, of one segment after the other.
    ///
    /// # Errors
    /// [`Malformed`] where the reader's words cannot be true.
    fn untaken(&self, taken: Taken) -> Result<impl Iterator<Item = Range<u64>>, Malformed> {
        self.ahead(taken)?;
        let is_true = taken.head <= self.written.end_of(taken.segment);
        if is_true { Ok(self.written.in_ring(taken)) } else { Err(Malformed) }
    }

    /// The number of bytes in the ring that the reader has not taken, also before a mark.
    ///
    /// # Errors
    /// [`Malformed`] where the reader's words cannot be true.
    pub fn untaken_in_ring(&self, taken: Taken) -> Result<u64, Malformed> {
        Ok(self.untaken(taken)?.map(|part| part.end - part.start).sum())
    }

    /// The fate of the bytes in the ring, as the reader has gone with these words. From then
    /// on, all goes to the kernel.
    ///
    /// # Errors
    /// [`Malformed`] where the reader's words cannot be true.
    pub fn take_back(&mut self, taken: Taken) -> Result<TakenBack, Malformed> {
        let Written { tail, origin, .. } = self.written;
        let first = self.untaken(taken)?.next();
        let is_new = !core::mem::replace(&mut self.is_left, true);
        let Some(Range { start, end }) = first.filter(|_| is_new) else {
            return Ok(TakenBack::Span(Span::default()));
        };
        // Behind the ring's bytes there may be no others: the kernel would pass them on first.
        let is_last = end == tail;
        let span = Span::at(start, origin, end - start);
        Ok(if is_last { TakenBack::Span(span) } else { TakenBack::Broken })
    }
}

/// Where the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the kernel: at most this number of its bytes belong to this segment.
    Kernel(u64),
    /// In the ring. No bytes: none has come yet.
    Ring(Span),
}

/// The reader's end of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incoming {
    /// The words that the writer is told.
    pub taken: Taken,
}

impl Incoming {
    /// Where the next bytes are. Goes on to the next segment at a mark.
    ///
    /// The writer's `tail` must have been read before its other words.
    ///
    /// # Errors
    /// [`Malformed`] where the writer's words cannot be true.
    #[inline]
    pub fn way(&mut self, written: &Written) -> Result<From, Malformed> {
        let Taken { mut head, mut segment } = self.taken;
        let ahead = written.segment.wrapping_sub(segment);
        if ahead as usize >= MARKS {
            return Err(Malformed);
        }
        let mut end = u64::MAX;
        for _ in 0..ahead {
            end = written.marks[segment as usize % MARKS];
            if head != end {
                break;
            }
            (segment, end) = (segment.wrapping_add(1), u64::MAX);
        }
        self.taken.segment = segment;
        if end < head {
            return Err(Malformed);
        }
        if !is_ring(segment) {
            return Ok(From::Kernel(end - head));
        }
        // A tail that is older than the mark: more is there than it tells.
        let len = written.tail.min(end).saturating_sub(head);
        if len > RING {
            return Err(Malformed);
        }
        head = head.wrapping_sub(written.origin);
        Ok(From::Ring(Span { place: head % RING, len }))
    }

    /// The number of bytes in the ring that were not taken, also behind marks.
    pub fn untaken_in_ring(&self, written: &Written) -> u64 {
        written.in_ring(self.taken).map(|part| part.end - part.start).sum::<u64>().min(RING)
    }

    /// Whether the ring has bytes that were not taken, and the kernel has later ones.
    pub fn has_gap(&self, written: &Written) -> bool {
        written.in_ring(self.taken).next().is_some_and(|part| part.end != written.tail)
    }

    /// Whether all that is written goes by the kernel, unless the writer begins another segment.
    /// Behind [`Self::way`].
    pub const fn is_settled(&self, written: &Written) -> bool {
        written.segment == self.taken.segment && !is_ring(written.segment)
    }

    /// Counts bytes that were taken by the way just told.
    #[inline]
    pub const fn took(&mut self, len: u64) {
        self.taken.head += len;
    }
}

#[cfg(test)]
mod tests;

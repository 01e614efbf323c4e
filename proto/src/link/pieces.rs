//! Pieces: how a frame goes that is longer than its path takes.
//!
//! A piece is a frame of its own, with a header and a packet number. It has the number and the
//! channel of the frame that it is a part of. Its payload says which part:
//!
//! ```text
//!          63                    32 31             16 15             0
//!          +-----------------------+-----------------+----------------+
//!  head    | CRC of the payload    | its length      |     offset     |   of the frame's payload
//!          +-----------------------+-----------------+----------------+
//!          |  bytes of the payload from the offset on                 |
//!          +----------------------------------------------------------+
//! ```
//!
//! The receiver puts them together in the buffer that the frame has a credit for. A frame that is
//! sent again may come in other pieces, or whole; what has come of it before still holds.
use super::frame::{Digest, HEADER_BYTES, PAYLOAD_MAX};
use crate::lane::Malformed;

/// Bytes of a piece before its part.
pub const PIECE_HEAD_BYTES: usize = 8;
/// Parts begin at a multiple of this, and all but the last are as many times as long.
// spec: FRAME-11
pub const UNIT: usize = 8;

/// The head of a piece: the digest of its frame, and the offset of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Of the frame's whole payload.
    pub whole: Digest,
    /// Where the part begins in it.
    pub offset: u16,
}

impl Piece {
    /// The bytes before the part.
    // spec: FRAME-11
    pub const fn encode(&self) -> [u8; PIECE_HEAD_BYTES] {
        let Self { whole: Digest { len, crc }, offset } = *self;
        (offset as u64 | (len as u64) << 16 | (crc as u64) << 32).to_le_bytes()
    }

    /// Reads a piece, and its part. Total.
    // spec: FRAME-11
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (head, part) = payload.split_first_chunk().ok_or(Malformed)?;
        let word = u64::from_le_bytes(*head);
        let whole = Digest { len: (word >> 16) as u16, crc: (word >> 32) as u32 };
        let (piece, len) = (Self { whole, offset: word as u16 }, usize::from(whole.len));
        let (start, end) = (usize::from(piece.offset), usize::from(piece.offset) + part.len());
        let is_last = end == len;
        let is_aligned = start.is_multiple_of(UNIT) && (is_last || end.is_multiple_of(UNIT));
        let is_part = !part.is_empty() && end <= len && len <= PAYLOAD_MAX;
        if is_part && is_aligned { Ok((piece, part)) } else { Err(Malformed) }
    }
}

/// The parts of a payload in pieces that are frames of at most `frame_max` bytes: where each begins
/// and how long it is.
pub fn parts(payload_len: u16, frame_max: u16) -> impl Iterator<Item = (u16, u16)> {
    let room = usize::from(frame_max).saturating_sub(HEADER_BYTES + PIECE_HEAD_BYTES);
    let step = (room - room % UNIT).max(UNIT);
    let len = usize::from(payload_len);
    (0..len).step_by(step).map(move |at| (at as u16, step.min(len - at) as u16))
}

/// Words of the marks for a payload of `len` bytes.
pub const fn mark_words(payload_len: u16) -> usize {
    (payload_len as usize).div_ceil(UNIT).div_ceil(u64::BITS as usize)
}

/// Which parts of a frame's payload have come. The owner keeps the bytes, and one bit for each unit
/// of them.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    whole: Digest,
    /// Units that have not come.
    missing: u16,
}

impl Parts {
    /// Of a frame of which nothing has come.
    pub const fn new(whole: Digest) -> Self {
        Self { whole, missing: (whole.len as usize).div_ceil(UNIT) as u16 }
    }

    /// Of what frame.
    pub const fn whole(&self) -> Digest {
        self.whole
    }

    /// A part of `len` bytes has come. Whether the frame is whole now.
    ///
    /// # Errors
    /// [`Malformed`], and nothing changes, where it is of another payload than those before: a
    /// frame keeps its own.
    // spec: FRAME-12
    pub fn add(&mut self, piece: &Piece, len: usize, marks: &mut [u64]) -> Result<bool, Malformed> {
        if piece.whole != self.whole {
            return Err(Malformed);
        }
        let first = usize::from(piece.offset) / UNIT;
        let units = (usize::from(piece.offset) + len).div_ceil(UNIT);
        for unit in first..units {
            let mark = marks.get_mut(unit / u64::BITS as usize).ok_or(Malformed)?;
            let bit = 1 << (unit % u64::BITS as usize);
            self.missing -= u16::from(*mark & bit == 0);
            *mark |= bit;
        }
        if cfg!(debug_assertions) {
            let marked: u32 = marks.iter().map(|mark| mark.count_ones()).sum();
            let all = u32::from(self.whole.len).div_ceil(UNIT as u32);
            debug_assert!(marked + u32::from(self.missing) == all, "a unit has come or is missing");
        }
        Ok(self.missing == 0)
    }
}

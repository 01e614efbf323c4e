//! Frames that come in pieces, until they are whole.
//!
//! Only frames that have a credit are put together, so that they take no more than the buffers that
//! were promised for them.
use super::frame::{Channel, Flags, Header, Kind};
use super::pieces::{Parts, Piece, mark_words};
use crate::lane::Malformed;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;

/// The frames of a link of which not all pieces have come.
#[derive(Debug, Default)]
pub struct Assembly {
    /// By channel and number.
    frames: BTreeMap<(usize, u32), Partial>,
}

/// A frame that has come in pieces: the header as it would have come with it, and its payload.
pub type Whole = (Header, Box<[u8]>);

/// One of them.
#[derive(Debug)]
struct Partial {
    parts: Parts,
    flags: Flags,
    marks: Box<[u64]>,
    bytes: Box<[u8]>,
}

impl Partial {
    fn new(piece: &Piece, flags: Flags) -> Self {
        let len = piece.whole.len;
        let marks = vec![0; mark_words(len)].into_boxed_slice();
        let bytes = vec![0; usize::from(len)].into_boxed_slice();
        Self { parts: Parts::new(piece.whole), flags, marks, bytes }
    }
}

impl Assembly {
    /// Whether nothing has come in pieces.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Forgets all frames but those of which that is so.
    #[cold]
    pub fn keep_those(&mut self, mut is_wanted: impl FnMut(Channel, u32) -> bool) {
        self.frames.retain(|(channel, seq), _| is_wanted(Channel::ALL[*channel], *seq));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.frames.clear();
    }

    /// A piece has come of a frame whose payload has at most `room` bytes. Returns the whole frame
    /// if this was the last piece, as if it had come with the header of this piece.
    ///
    /// # Errors
    /// [`Malformed`] where it is no piece, or one of another frame than those before.
    // spec: FRAME-11, FRAME-12
    pub fn add(
        &mut self,
        header: &Header,
        payload: &[u8],
        room: usize,
    ) -> Result<Option<Whole>, Malformed> {
        let (piece, part) = Piece::parse(payload)?;
        if usize::from(piece.whole.len) > room {
            return Err(Malformed);
        }
        let flags = header.flags & Flags::EARLY;
        let name = (header.channel.index(), header.seq);
        let partial = self.frames.entry(name).or_insert_with(|| Partial::new(&piece, flags));
        if partial.flags != flags {
            return Err(Malformed);
        }
        let is_whole = partial.parts.add(&piece, part.len(), &mut partial.marks)?;
        partial.bytes[usize::from(piece.offset)..][..part.len()].copy_from_slice(part);
        if !is_whole {
            return Ok(None);
        }
        let header = Header { kind: Kind::Data, payload: piece.whole, ..*header };
        Ok(self.frames.remove(&name).map(|partial| (header, partial.bytes)))
    }
}

//! Frames that come in pieces, until they are whole.
//!
//! Only frames that have a credit are put together, so that they take no more than the buffers that
//! were promised for them.
use ayre_proto::lane::Malformed;
use ayre_proto::link::frame::{Channel, Flags, Header, Kind};
use ayre_proto::link::pieces::{Parts, Piece, mark_words};
use std::collections::BTreeMap;

/// The frames of a link of which not all pieces have come.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// By channel and number.
    frames: BTreeMap<(usize, u32), Partial>,
}

/// A frame that has come in pieces: the header as it would have come with it, and its payload.
pub(super) type Whole = (Header, Box<[u8]>);

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
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Forgets all frames but those of which that is so.
    #[cold]
    pub(super) fn keep_those(&mut self, mut is_wanted: impl FnMut(Channel, u32) -> bool) {
        self.frames.retain(|(channel, seq), _| is_wanted(Channel::ALL[*channel], *seq));
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
    }

    /// A piece has come of a frame whose payload has at most `room` bytes: the whole frame, if this
    /// was all that it lacked, as if it had come with the header of this piece.
    ///
    /// # Errors
    /// [`Malformed`] where it is no piece, or one of another frame than those before.
    // spec: FRAME-11, FRAME-12
    pub(super) fn add(
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::link::fuzzed::NOTHING;
    use ayre_proto::link::frame::Digest;

    const ROOM: usize = 1024;

    /// A piece of a frame whose payload is so many zeros.
    fn piece(seq: u32, (offset, len): (u16, usize), (total, crc): (u16, u32)) -> (Header, Vec<u8>) {
        let whole = Digest { len: total, crc };
        let payload = [&Piece { whole, offset }.encode()[..], &vec![0; len]].concat();
        let digest = Digest { len: payload.len() as u16, crc: 0 };
        let header = Header { kind: Kind::Piece, seq, payload: digest, ..NOTHING };
        (header, payload)
    }

    fn add(
        assembly: &mut Assembly,
        (header, payload): &(Header, Vec<u8>),
    ) -> Option<Option<Whole>> {
        assembly.add(header, payload, ROOM).ok()
    }

    // spec: FRAME-12
    #[test]
    fn a_frame_is_whole_once_all_of_it_has_come() {
        let mut assembly = Assembly::default();
        for part in [(512, 512), (0, 8), (512, 512), (0, 256)] {
            assert_eq!(add(&mut assembly, &piece(7, part, (1024, 9))), Some(None));
        }
        let (header, bytes) =
            add(&mut assembly, &piece(7, (256, 256), (1024, 9))).unwrap().unwrap();
        let whole = Digest { len: 1024, crc: 9 };
        assert_eq!((header.kind, header.seq, header.payload), (Kind::Data, 7, whole));
        assert!(bytes.len() == 1024 && assembly.is_empty());
    }

    // spec: FRAME-11, FRAME-12
    #[test]
    fn pieces_that_contradict_each_other_or_are_too_long_are_malformed() {
        let mut assembly = Assembly::default();
        assert_eq!(add(&mut assembly, &piece(7, (0, 8), (1032, 9))), None, "no frame is so long");
        assert!(assembly.is_empty());
        assert_eq!(add(&mut assembly, &piece(7, (0, 8), (1024, 9))), Some(None));
        assert_eq!(add(&mut assembly, &piece(7, (8, 8), (1024, 8))), None);
        assert_eq!(add(&mut assembly, &piece(7, (8, 8), (1016, 9))), None);
        let (mut header, payload) = piece(7, (8, 8), (1024, 9));
        header.flags = Flags::EARLY;
        assert_eq!(add(&mut assembly, &(header, payload)), None);
    }

    #[test]
    fn what_is_not_wanted_any_more_is_forgotten() {
        let mut assembly = Assembly::default();
        for seq in 0..8 {
            add(&mut assembly, &piece(seq, (0, 8), (1024, 9)));
        }
        assembly.keep_those(|channel, seq| channel == Channel::Posted && seq == 5);
        assert_eq!(assembly.frames.len(), 1);
    }
}

//! A ring of bytes from one port to another, for data that is too long for a lane.
//!
//! The writer copies a piece in and names its place in a record of the lane; the reader copies it
//! out. A piece is always contiguous. `proto::ring` decides the places, and how much of a ring is
//! used: the pages of the rest are never accessed.
//!
//! The record that names a piece makes its bytes visible (LANE-R1).
mod carried;

pub(crate) use self::carried::{RingSource, RingTarget};
use super::map::Mapping;
use super::word::Word;
use crate::sync::Ordering;
use crate::tuning::Share;
use ayre_proto::lane::Malformed;
use ayre_proto::ring::{NARROW, Reader, Writer};
use std::sync::Arc;

/// The memory of a ring in a mapping.
#[derive(Debug)]
pub(crate) struct RingMemory {
    mapping: Arc<Mapping>,
    start: u64,
    len: u64,
    /// Bytes that the reader has taken.
    cursor: Word,
    /// Bytes that the writer has written. For a reader on another host, the carrier passes them on.
    written: Word,
}

impl RingMemory {
    pub(crate) fn new(
        mapping: &Arc<Mapping>,
        (start, len): (u64, u32),
        (cursor, written): (Word, Word),
    ) -> Self {
        assert!(len.is_power_of_two(), "places are positions modulo the length");
        Self { mapping: mapping.clone(), start, len: u64::from(len), cursor, written }
    }

    /// A sender for a reader of this host. The ring uses as much memory as its traffic needs,
    /// within a budget.
    // spec: ENV-42
    pub(crate) fn sender(self, share: Share) -> RingSender {
        RingSender { writer: Writer::new(self.len, NARROW), memory: self, share }
    }

    /// A sender for a reader of another host, to which the whole ring is passed on, gaps included.
    /// The carrier accounts for the memory.
    pub(crate) fn sender_of_all(self) -> RingSender {
        RingSender { writer: Writer::new(self.len, self.len), memory: self, share: Share::none() }
    }

    pub(crate) fn receiver(self) -> RingReceiver {
        RingReceiver { reader: Reader::new(self.len), memory: self }
    }

    fn place(&self, position: u64) -> u64 {
        position & (self.len - 1)
    }
}

/// The writer's side of a ring.
#[derive(Debug)]
pub(crate) struct RingSender {
    writer: Writer,
    memory: RingMemory,
    /// The ring's share of the process's budget.
    share: Share,
}

impl RingSender {
    /// The length of the longest piece for which there can be room, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.writer.longest()
    }

    /// Copies a piece in, if there is room, and returns its place.
    pub(crate) fn write(&mut self, piece: &[u8]) -> Option<u64> {
        self.write_by(piece.len(), |mapping, offset| mapping.write(offset, piece))
    }

    /// Has `copy` write a piece of this length, if there is room, and returns its place.
    #[inline(always)]
    pub(crate) fn write_by(&mut self, len: usize, copy: impl FnOnce(&Mapping, u64)) -> Option<u64> {
        let at = match self.writer.next(len) {
            Some(at) => at,
            None => self.find(len)?,
        };
        copy(&self.memory.mapping, self.memory.start + self.memory.place(at));
        // Relaxed: the carrier has seen the record that names the piece (LANE-R1).
        self.memory.written.store(self.writer.wrote(at, len), Ordering::Relaxed);
        Some(at)
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, len: usize) -> Option<u64> {
        // PIPE-A1: the reader has copied out what it counts (PIPE-R1).
        let taken = self.memory.cursor.load(Ordering::Acquire);
        // A hostile reader only cuts itself off.
        let _ = self.writer.on_taken(taken);
        self.writer.find(len, |bytes| self.share.widen(bytes))
    }
}

/// The reader's side of a ring.
#[derive(Debug)]
pub(crate) struct RingReceiver {
    reader: Reader,
    memory: RingMemory,
}

impl RingReceiver {
    /// Copies the piece at `at` into `into`, at most as much as fits. It must be the oldest piece
    /// that was not taken, and has `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] where no such piece can exist.
    pub(crate) fn take(&mut self, at: u64, len: usize, into: &mut [u8]) -> Result<(), Malformed> {
        let count = len.min(into.len());
        self.take_by(at, len, |mapping, offset| mapping.read(offset, &mut into[..count]))
    }

    /// Has `copy` read the piece at `at`, which has `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] where no such piece can exist.
    #[inline(always)]
    pub(crate) fn take_by(
        &mut self,
        at: u64,
        len: usize,
        copy: impl FnOnce(&Mapping, u64),
    ) -> Result<(), Malformed> {
        self.check(at, len)?;
        copy(&self.memory.mapping, self.memory.start + self.memory.place(at));
        // PIPE-R1: our copies of those bytes are done; the writer may reuse their place.
        self.memory.cursor.store(self.reader.take(at, len), Ordering::Release);
        Ok(())
    }

    /// Checks that the piece can exist.
    ///
    /// # Errors
    /// [`Malformed`] where it cannot.
    // spec: ENV-12
    pub(crate) fn check(&self, at: u64, len: usize) -> Result<(), Malformed> {
        self.reader.check(at, len)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const LEN: u32 = 1024;

    fn pair() -> (RingSender, RingReceiver, Word) {
        let mapping = Arc::new(Mapping::of_words(vec![0; LEN as usize / 8 + 8]));
        let (cursor, written) = (Word::new(&mapping, 0), Word::new(&mapping, 8));
        let end = || RingMemory::new(&mapping, (64, LEN), (cursor.clone(), written.clone()));
        (end().sender_of_all(), end().receiver(), cursor.clone())
    }

    proptest! {
        /// Pieces come out unchanged and in order, and only room that was given back is used.
        #[test]
        fn pieces_come_out_as_they_went_in(
            steps in prop::collection::vec((0..513_usize, any::<bool>()), 1..200)
        ) {
            let (mut sender, mut receiver, _) = pair();
            let mut under_way = VecDeque::new();
            for (index, (len, takes)) in steps.into_iter().enumerate() {
                let piece = vec![index as u8; len];
                match sender.write(&piece) {
                    Some(at) => under_way.push_back((at, piece)),
                    None => prop_assert!(!under_way.is_empty(), "an empty ring has room for half"),
                }
                if takes && let Some((at, piece)) = under_way.pop_front() {
                    let mut into = vec![0; piece.len()];
                    prop_assert_eq!(receiver.take(at, piece.len(), &mut into), Ok(()));
                    prop_assert_eq!(into, piece);
                }
            }
            for (at, piece) in under_way {
                let mut into = vec![0; piece.len()];
                prop_assert_eq!(receiver.take(at, piece.len(), &mut into), Ok(()));
                prop_assert_eq!(into, piece);
            }
        }

        /// Nothing outside the ring is read, whatever a peer names.
        #[test]
        fn places_that_cannot_be_are_refused(
            at in prop_oneof![any::<u64>(), 0..4096_u64, u64::MAX - 99..],
            len in prop_oneof![any::<usize>(), 0..2048_usize],
            taken in 0..5_u64
        ) {
            let (_, mut receiver, _) = pair();
            receiver.reader.take(0, taken as usize * 192);
            if receiver.check(at, len).is_ok() {
                let place = at % u64::from(LEN);
                prop_assert!(at >= taken * 192 && at - taken * 192 < u64::from(LEN));
                prop_assert!(place + len as u64 <= u64::from(LEN));
            }
        }
    }

    // spec: ENV-11
    #[test]
    fn a_piece_never_wraps() {
        let (mut sender, mut receiver, _) = pair();
        let first = sender.write(&[1; 500]).unwrap();
        let second = sender.write(&[2; 400]).unwrap();
        assert_eq!((first, second), (0, 512));
        assert_eq!(sender.write(&[3; 300]), None, "64 bytes are left");
        receiver.take(first, 500, &mut []).unwrap();
        assert_eq!(sender.write(&[3; 300]), Some(1024), "the beginning, one round later");
    }

    #[test]
    fn a_count_that_cannot_be_gives_no_room() {
        let (mut sender, _, cursor) = pair();
        // PIPE-R1: as a reader, honest or not.
        let say = |taken| cursor.store(taken, Ordering::Release);
        sender.write(&[1; 512]).unwrap();
        sender.write(&[1; 512]).unwrap();
        for wrong in [1025, u64::MAX, 1 << 63] {
            say(wrong);
            assert_eq!(sender.write(&[1; 64]), None, "{wrong}");
        }
        say(512);
        assert_eq!(sender.write(&[1; 64]), Some(1024));
        say(0);
        assert_eq!(sender.write(&[1; 448]), Some(1088), "what was given back stays given");
    }
}

//! A ring between two hosts: its carrier's sides, which stand for the reader on the writer's host,
//! and for the writer on the reader's host.
use super::RingMemory;
use crate::sync::Ordering;
use crate::tuning::{Rings, Share};
use ayre_proto::lane::Malformed;
use ayre_proto::ring::carried::{Source, Target, lines_of};

/// Stands for the reader: passes the written bytes on, one by one.
#[derive(Debug)]
pub(crate) struct RingSource {
    memory: RingMemory,
    machine: Source,
    _share: Share,
}

/// Stands for the writer: puts the bytes at the place that they had there.
#[derive(Debug)]
pub(crate) struct RingTarget {
    memory: RingMemory,
    machine: Target,
    _share: Share,
}

impl RingMemory {
    pub(crate) fn source(self) -> RingSource {
        let (machine, _share) = (Source::new(self.len), self.share());
        RingSource { memory: self, machine, _share }
    }

    pub(crate) fn target(self) -> RingTarget {
        let (machine, _share) = (Target::new(self.len), self.share());
        RingTarget { memory: self, machine, _share }
    }

    /// The whole ring comes into use: bytes have the same place at both sides.
    // spec: LIM-5
    fn share(&self) -> Share {
        Share::taken(Rings::of_process(), self.len)
    }
}

impl RingSource {
    /// The number of contiguous bytes that have yet to be passed on. They include all that the
    /// records seen by the caller name.
    pub(crate) fn left(&self) -> usize {
        self.next().1
    }

    fn next(&self) -> (u64, usize) {
        // Relaxed: the record was published after it (LANE-R1).
        self.machine.left(self.memory.written.load(Ordering::Relaxed))
    }

    /// Copies out the next bytes, at most [`Self::left`].
    pub(crate) fn pass(&mut self, into: &mut [u8]) {
        let (place, _) = self.next();
        self.memory.mapping.read(self.memory.start + place, into);
        self.machine.pass(into.len());
    }

    /// Records that the reader has taken `lines` lines in all, modulo 2^32.
    ///
    /// # Errors
    /// [`Malformed`] where that exceeds the lines passed on, or is less than before.
    pub(crate) fn give_back(&mut self, lines: u32) -> Result<(), Malformed> {
        let taken = self.machine.give_back(lines)?;
        // PIPE-R1: the reader's copies are done.
        self.memory.cursor.store(taken, Ordering::Release);
        Ok(())
    }
}

impl RingTarget {
    /// Places the next bytes.
    ///
    /// # Errors
    /// [`Malformed`] where there is no room for them: a correct writer knows the room.
    pub(crate) fn place(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let Self { memory, machine, .. } = self;
        // PIPE-A1: the reader has copied out what it counts.
        let taken = memory.cursor.load(Ordering::Acquire);
        let (at, before_end) = machine.place(bytes.len(), taken)?;
        let (first, rest) = bytes.split_at(before_end);
        memory.mapping.write(memory.start + at, first);
        memory.mapping.write(memory.start, rest);
        Ok(())
    }

    /// Lines that the reader has taken in all, modulo 2^32.
    pub(crate) fn given_back(&self) -> u32 {
        // PIPE-A1: as the writer would read it.
        lines_of(self.memory.cursor.load(Ordering::Acquire))
    }

    /// The length of the ring in lines.
    pub(crate) fn lines(&self) -> u32 {
        self.machine.lines()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{RingReceiver, RingSender};
    use super::*;
    use crate::mem::map::Mapping;
    use crate::mem::word::Word;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    const LEN: u32 = 1024;

    fn memory() -> impl Fn() -> RingMemory {
        let mapping = Arc::new(Mapping::of_words(vec![0; LEN as usize / 8 + 8]));
        let word = |at| Word::new(&mapping, at);
        let words = (word(0), word(8));
        move || RingMemory::new(&mapping, (64, LEN), words.clone())
    }

    /// A ring between two hosts.
    fn carried() -> (RingSender, RingSource, RingTarget, RingReceiver) {
        let (here, there) = (memory(), memory());
        (here().sender_of_all(), here().source(), there().target(), there().receiver())
    }

    fn pass_all(source: &mut RingSource, target: &mut RingTarget, longest: usize) {
        while source.left() > 0 {
            let mut bytes = vec![0; source.left().min(longest)];
            source.pass(&mut bytes);
            assert_eq!(target.place(&bytes), Ok(()), "who writes knows what was taken");
        }
    }

    proptest! {
        /// Pieces come out on the other host unchanged, however the carrier cuts them, and however
        /// late the writer learns what was taken.
        #[test]
        fn a_ring_on_two_hosts_is_one_ring(
            steps in prop::collection::vec((0..513_usize, 1..200_usize, any::<u8>()), 1..200)
        ) {
            let (mut sender, mut source, mut target, mut receiver) = carried();
            let mut under_way = VecDeque::new();
            for (index, (len, longest, what)) in steps.into_iter().enumerate() {
                let piece = vec![index as u8; len];
                if let Some(at) = sender.write(&piece) {
                    under_way.push_back((at, piece));
                    pass_all(&mut source, &mut target, longest);
                }
                if what % 2 == 0 && let Some((at, piece)) = under_way.pop_front() {
                    let mut into = vec![0; piece.len()];
                    prop_assert_eq!(receiver.take(at, piece.len(), &mut into), Ok(()));
                    prop_assert_eq!(into, piece);
                }
                if what % 3 == 0 {
                    prop_assert_eq!(source.give_back(target.given_back()), Ok(()));
                }
            }
        }
    }

    // spec: WIRE-14
    #[test]
    fn ring_bytes_beyond_the_room_are_malformed_and_ignored() {
        let (mut sender, mut source, mut target, mut receiver) = carried();
        let at = sender.write(&[5; 500]).unwrap();
        pass_all(&mut source, &mut target, 100);
        assert_eq!(target.place(&[1; 513]), Err(Malformed));
        let mut into = [0; 500];
        receiver.take(at, 500, &mut into).unwrap();
        assert_eq!(into, [5; 500]);
        assert_eq!(target.place(&[1; 1024]), Ok(()), "all of it was taken");
        assert_eq!(target.place(&[1]), Err(Malformed));
    }

    // spec: WIRE-14
    #[test]
    fn lines_that_were_not_passed_on_are_not_given_back() {
        let (mut sender, mut source, mut target, _) = carried();
        sender.write(&[5; 500]).unwrap();
        assert_eq!(source.give_back(1), Err(Malformed), "nothing was");
        pass_all(&mut source, &mut target, 100);
        assert_eq!(source.give_back(9), Err(Malformed));
        assert_eq!(source.give_back(8), Ok(()));
        assert_eq!(source.give_back(7), Err(Malformed), "it was given back before");
        assert_eq!(source.give_back(8), Ok(()));
    }

    #[test]
    fn a_name_of_absent_bytes_yields_only_the_peers_own_bytes() {
        let (_, _, mut target, mut receiver) = carried();
        let mut into = [9; 64];
        receiver.take(512, 64, &mut into).unwrap();
        assert_eq!(into, [0; 64]);
        assert_eq!(target.place(&[1; 64]), Ok(()));
    }
}

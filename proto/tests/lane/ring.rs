//! Rings of bytes: both ends over plain memory, against a queue of pieces.
use ayre_proto::lane::Malformed;
use ayre_proto::ring::carried::{Source, Target};
use ayre_proto::ring::{NARROW, Reader, Writer};
use proptest::prelude::*;
use std::collections::VecDeque;

/// A ring in plain memory, and what must be in it.
struct Scene {
    writer: Writer,
    reader: Reader,
    bytes: Vec<u8>,
    /// Place, bytes, and what they are.
    under_way: VecDeque<(u64, usize, u8)>,
    /// The count of bytes that the reader has taken, and the count that it has reported.
    taken: u64,
    said: u64,
    /// Bytes of the ring that were ever touched.
    touched: u64,
    count: u8,
}

impl Scene {
    fn new(len: u64, least: u64) -> Self {
        Self {
            writer: Writer::new(len, least),
            reader: Reader::new(len),
            bytes: vec![0; len as usize],
            under_way: VecDeque::new(),
            taken: 0,
            said: 0,
            touched: 0,
            count: 0,
        }
    }

    /// Writes a piece, if there is room; the writer uses more where it may.
    fn write(&mut self, len: usize, may: impl FnMut(u64) -> bool) -> bool {
        let found = self.writer.next(len).or_else(|| {
            let is_heard = self.writer.on_taken(self.said).is_ok();
            assert!(is_heard || self.said != self.taken, "a count that can be is heard");
            self.writer.find(len, may)
        });
        let Some(at) = found else { return false };
        let place = at as usize % self.bytes.len();
        self.count = self.count.wrapping_add(1);
        self.bytes[place..][..len].fill(self.count);
        self.under_way.push_back((at, len, self.count));
        self.writer.wrote(at, len);
        self.touched = self.touched.max((place + len) as u64);
        true
    }

    /// Takes the oldest piece: it is as it was written.
    fn take(&mut self) {
        let Some((at, len, what)) = self.under_way.pop_front() else { return };
        assert_eq!(self.reader.check(at, len), Ok(()));
        let place = at as usize % self.bytes.len();
        assert!(self.bytes[place..][..len].iter().all(|byte| *byte == what), "{len} at {at}");
        self.taken = self.reader.take(at, len);
    }

    fn say(&mut self) {
        self.said = self.taken;
    }

    /// Writes and takes pieces, one at a time.
    fn pass(&mut self, pieces: usize, len: usize) {
        for _ in 0..pieces {
            assert!(self.write(len, |_| true));
            self.take();
            self.say();
        }
    }
}

/// The rule for a ring of which all is used: where the next piece begins, if there is room.
fn place_in_all(len: u64, (written, taken): (u64, u64), bytes: usize) -> Option<u64> {
    let (bytes, left) = (bytes.next_multiple_of(64) as u64, len - written % len);
    let at = if bytes <= left { written } else { written + left };
    (at + bytes - taken <= len).then_some(at)
}

const LEN: u64 = 1 << 12;

proptest! {
    /// Pieces are written and taken at random, the writer hears of it late, and may or may not use
    /// more. No piece lies where another one does, or beyond the used part. A reader that takes
    /// everything makes room.
    // spec: ENV-11, ENV-12, ENV-42
    #[test]
    fn pieces_come_out_as_they_went_in_whatever_is_used(
        least in prop_oneof![Just(256_u64), Just(1024), Just(LEN)],
        steps in prop::collection::vec((0..600_usize, 0..4_u8, any::<bool>(), 0..4_u8), 1..300)
    ) {
        let mut scene = Scene::new(LEN, least);
        for (len, takes, says, mays) in steps {
            let before = scene.writer.used();
            let mut asked = before;
            let has_room = scene.write(len, |bytes| {
                asked = bytes;
                mays == 0
            });
            let used = scene.writer.used();
            let is_first = before == 0 && used >= least;
            prop_assert!(used == before || is_first || (used == asked && mays == 0));
            prop_assert!(used <= LEN && scene.touched <= used);
            if !has_room && scene.said == scene.taken && scene.under_way.is_empty() {
                prop_assert!(len as u64 > used / 2, "{len} of {used} bytes");
            }
            (0..takes).for_each(|_| scene.take());
            if says {
                scene.say();
            }
        }
        while !scene.under_way.is_empty() {
            scene.take();
        }
    }

    /// A ring of which all is used from the beginning is as it was before there were others.
    // spec: ENV-11
    #[test]
    fn the_short_way_and_the_long_one_give_the_same_place(
        steps in prop::collection::vec((0..2049_usize, 0..3_u8), 1..200)
    ) {
        let mut scene = Scene::new(LEN, LEN);
        let mut written = 0;
        for (len, takes) in steps {
            let expected = place_in_all(LEN, (written, scene.taken), len);
            let has_room = scene.write(len, |_| false);
            prop_assert_eq!(has_room, expected.is_some());
            if let Some(at) = expected {
                prop_assert_eq!(scene.under_way.back().map(|piece| piece.0), Some(at));
                written = at + len.next_multiple_of(64) as u64;
            }
            (0..takes).for_each(|_| scene.take());
            scene.say();
        }
    }

    /// For any input of the peer, nothing outside the ring is read.
    // spec: ENV-12
    #[test]
    fn places_that_cannot_be_are_refused(
        at in prop_oneof![any::<u64>(), 0..4 * LEN, u64::MAX - 99..],
        len in prop_oneof![any::<usize>(), 0..2 * LEN as usize],
        taken in 0..LEN as usize
    ) {
        let mut reader = Reader::new(LEN);
        let taken = reader.take(0, taken);
        if reader.check(at, len).is_ok() {
            prop_assert!(at >= taken && at - taken < LEN && at % 64 == 0);
            prop_assert!(at % LEN + len as u64 <= LEN);
        }
    }
}

/// Wide rings are so long by default.
const WIDE: u64 = 1 << 21;

// spec: ENV-42
#[test]
fn a_ring_is_used_from_the_first_piece_on_and_narrowly() {
    let mut scene = Scene::new(WIDE, NARROW);
    assert_eq!(scene.writer.used(), 0);
    scene.pass(1, 1);
    assert_eq!((scene.writer.used(), scene.touched), (NARROW, 1));
    scene.pass(15, 8192);
    assert_eq!((scene.writer.used(), scene.touched), (NARROW, NARROW), "it has begun anew once");
    assert_eq!(Scene::new(1 << 12, NARROW).writer.longest(), 1 << 11);
}

/// As much of it is used as half of what has gone through, whether the reader lags or not.
// spec: ENV-42
#[test]
fn a_ring_widens_with_its_traffic() {
    let mut scene = Scene::new(WIDE, NARROW);
    let mut widths = Vec::new();
    for through in 1..=1024_u64 {
        scene.pass(1, 4096);
        let used = scene.writer.used();
        assert!(used <= NARROW.max(4096 * through), "{used} after {through} pages");
        if widths.last() != Some(&used) {
            widths.push(used);
        }
    }
    assert_eq!(widths, [1, 2, 4, 8, 16, 32].map(|times| times * NARROW));
    scene.pass(512, 4096);
    assert_eq!((scene.writer.used(), scene.touched), (WIDE, WIDE));
    scene.pass(10_000, 4096);
    assert_eq!(scene.writer.used(), WIDE, "and no further");
}

// spec: ENV-42
#[test]
fn a_ring_that_its_reader_leaves_full_widens_at_once() {
    let mut scene = Scene::new(WIDE, NARROW);
    for piece in 1..=WIDE / 4096 {
        assert!(scene.write(4096, |_| true));
        assert!(scene.writer.used() < NARROW.max(2 * 4096 * piece) + 1, "no sooner than it is");
    }
    assert!(!scene.write(1, |_| true), "it is full");
    scene.take();
    scene.say();
    assert!(scene.write(4096, |_| true), "the beginning, one turn later");
}

// spec: ENV-42
#[test]
fn a_piece_longer_than_half_the_used_ring_widens_it() {
    let mut scene = Scene::new(WIDE, NARROW);
    scene.pass(1, 64);
    assert!(!scene.write(NARROW as usize, |_| false), "its own place and the gap before its end");
    assert!(scene.write(NARROW as usize, |_| true));
    assert_eq!(scene.writer.used(), 2 * NARROW);
}

// spec: ENV-42, LIM-5
#[test]
fn a_ring_that_may_not_widen_keeps_its_length() {
    let mut scene = Scene::new(WIDE, NARROW);
    for piece in 0..10_000_usize {
        assert!(scene.write(1 + piece * 64 % (NARROW as usize / 2), |_| false));
        scene.take();
        scene.say();
    }
    assert_eq!(scene.writer.used(), NARROW);
    assert!(scene.touched <= NARROW);
}

// spec: ENV-13
#[test]
fn a_count_that_cannot_be_gives_no_room() {
    let mut scene = Scene::new(LEN, LEN);
    assert!(scene.write(2048, |_| false) && scene.write(2048, |_| false));
    for wrong in [LEN + 1, u64::MAX, 1 << 63] {
        scene.said = wrong;
        assert!(!scene.write(64, |_| false), "{wrong}");
    }
    assert_eq!(scene.reader.check(64, LEN as usize), Err(Malformed), "more than the ring");
    scene.said = 2048;
    assert!(scene.write(64, |_| false));
    scene.said = 0;
    assert!(scene.write(1024, |_| false), "what was given back stays given");
}

// spec: WIRE-14
#[test]
fn bytes_beyond_the_room_are_malformed_and_ignored() {
    let mut target = Target::new(1024);
    assert_eq!(target.place(512, 0), Ok((0, 512)));
    assert_eq!(target.place(513, 0), Err(Malformed));
    assert_eq!(target.place(1000, 512), Ok((512, 512)), "the others lie at the beginning");
    assert_eq!(target.place(1, 512 - 24 + 23), Ok((488, 1)));
    assert_eq!(target.place(1, 0), Err(Malformed), "nothing more was taken");
    assert_eq!(target.place(1024, u64::MAX), Ok((489, 535)), "a reader may take what has not come");
}

// spec: WIRE-14
#[test]
fn lines_that_were_not_passed_on_are_not_given_back() {
    let mut source = Source::new(1024);
    assert_eq!(source.give_back(1), Err(Malformed), "nothing was");
    assert_eq!(source.left(960), (0, 960));
    source.pass(512);
    assert_eq!(source.left(960), (512, 448));
    assert_eq!(source.give_back(9), Err(Malformed));
    assert_eq!(source.give_back(8), Ok(512));
    assert_eq!(source.give_back(7), Err(Malformed), "it was given back before");
    assert_eq!(source.give_back(8), Ok(512));
    source.pass(512);
    assert_eq!(source.left(1536), (0, 512), "the beginning, one round later");
}

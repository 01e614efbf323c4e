//! The stream limit for messages longer than a line: a ring of slots, copied in and copied out.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::super::side::shared::{Form, LINE, RawShared, layout};
use super::super::side::spin::{spin_slowly_until, spin_until};

/// Longer messages travel in pieces of `piece` bytes, so that both ranks copy at the same time,
/// through `ring` bytes of slots. Two rings are fast, each for other sizes. One is tiny: its slots
/// pass from first-level cache to first-level cache. The other one is larger than the private
/// caches: its slots were written back to the shared cache before they are read. In between, dirty
/// lines move slowly.
struct Dimensions {
    ring: usize,
    piece: usize,
}

impl Dimensions {
    const fn of(form: Form) -> Self {
        match form {
            Form::Compact => Self { ring: 16 << 10, piece: 2 << 10 },
            Form::Wide => Self { ring: layout::SLOTS_BYTES, piece: 16 << 10 },
        }
    }
}

/// Where this rank stands in the rings that it writes and reads, for both forms.
#[derive(Default)]
pub(super) struct SlotRings {
    produced: [Cursor; 2],
    consumed: [Cursor; 2],
    source: Buffer,
    sink: Buffer,
}

impl SlotRings {
    /// Makes buffers for messages of `size` bytes.
    pub(super) fn prepare(&mut self, size: usize) {
        self.source = Buffer::new(size);
        self.sink = Buffer::new(size);
    }

    /// Streams `count` messages from rank 0 to rank 1, or both ways at once.
    pub(super) fn run(&mut self, side: &Side<'_>, form: Form, count: u64, two_way: bool) {
        let size = self.source.len();
        let out = Slots::new(side.shared(), side.rank(), form, size);
        let back = Slots::new(side.shared(), side.other(), form, size);
        let produced = &mut self.produced[form as usize];
        let consumed = &mut self.consumed[form as usize];
        let mut left = count * size.div_ceil(out.piece) as u64;
        while left > 0 {
            // Bursts where both ways are in use, so that neither rank waits for a piece that is
            // only just being written, and both empty one ring before they fill the other.
            let burst = if two_way { left.min(out.quarter()) } else { left };
            if two_way || side.measures() {
                out.produce(produced, &self.source, burst);
            }
            if two_way || !side.measures() {
                match form {
                    Form::Compact => back.consume::<16>(consumed, &mut self.sink, burst),
                    Form::Wide => back.consume::<32>(consumed, &mut self.sink, burst),
                }
            }
            left -= burst;
        }
        // All that this rank sent has been copied out.
        spin_until(|| out.cursor.load(Acquire) == produced.sequence);
    }
}

/// The last piece's sequence number, the consumer's cursor as last seen or published, and where in
/// the message the next piece lies.
#[derive(Default)]
struct Cursor {
    sequence: u64,
    published: u64,
    offset: usize,
}

/// One direction: slots of a sequence line with the payload behind it, and the consumer's cursor.
struct Slots<'a> {
    shared: &'a RawShared,
    start: usize,
    piece: usize,
    slot: usize,
    count: u64,
    cursor: &'a AtomicU64,
}

impl<'a> Slots<'a> {
    fn new(shared: &'a RawShared, producer: usize, form: Form, size: usize) -> Self {
        let Dimensions { ring, piece } = Dimensions::of(form);
        let slot = LINE + size.min(piece).next_multiple_of(LINE);
        Self {
            shared,
            start: layout::SLOTS[producer],
            piece,
            slot,
            // The largest power of two: a sequence number becomes an index by a mask.
            count: 1 << (ring / slot).ilog2(),
            cursor: shared.word(layout::CURSORS[producer] + (2 + form as usize) * 2 * LINE),
        }
    }

    fn quarter(&self) -> u64 {
        self.count / 4
    }

    #[inline(always)]
    fn offset(&self, sequence: u64) -> usize {
        self.start + (sequence & (self.count - 1)) as usize * self.slot
    }

    fn produce(&self, at: &mut Cursor, source: &[u8], pieces: u64) {
        for sequence in at.sequence + 1..=at.sequence + pieces {
            if sequence - at.published > self.count {
                spin_until(|| {
                    // Acquire: pairs with the consumer's Release: it has read the slot to be
                    // reused.
                    at.published = self.cursor.load(Acquire);
                    sequence - at.published <= self.count
                });
            }
            let end = source.len().min(at.offset + self.piece);
            let piece = &source[at.offset..end];
            at.offset = if end == source.len() { 0 } else { end };
            let slot = self.offset(sequence);
            self.shared.bytes(slot + LINE, piece.len()).write(black_box(piece));
            // Release: the payload is visible to whoever sees the sequence number.
            self.shared.word(slot).store(sequence, Release);
        }
        at.sequence += pieces;
    }

    /// Takes the next pieces, with `PAUSES` pauses between two looks at a missing one. A consumer
    /// that looks less often lets a wide ring fill to a level where it is fast (measured).
    fn consume<const PAUSES: u32>(&self, at: &mut Cursor, sink: &mut [u8], pieces: u64) {
        for sequence in at.sequence + 1..=at.sequence + pieces {
            let end = sink.len().min(at.offset + self.piece);
            let piece = &mut sink[at.offset..end];
            let slot = self.offset(sequence);
            let number = self.shared.word(slot);
            // Acquire: pairs with the producer's Release, so the payload is there.
            spin_slowly_until::<PAUSES>(|| number.load(Acquire) == sequence);
            self.shared.bytes(slot + LINE, piece.len()).read(piece);
            black_box(piece);
            at.offset = if end == sink.len() { 0 } else { end };
            if sequence - at.published >= self.quarter() {
                // Release: the slots up to here have been read and may be written again.
                self.cursor.store(sequence, Release);
                at.published = sequence;
            }
        }
        at.sequence += pieces;
        at.published = at.sequence;
        // Release: as above.
        self.cursor.store(at.sequence, Release);
    }
}

//! The put limit: write into memory of the target, which polls the last word of it.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::super::side::shared::{LINE, Line, SharedBytes, layout};
use super::super::side::spin::spin_until;
use super::by_words;
use crate::perf::case::{Case, Metric};

/// A put there, then one back. Nothing is copied out: the data lie where the target wants them.
#[derive(Default)]
pub(super) struct Put {
    sequence: u64,
    source: Buffer,
}

impl Case for Put {
    fn name(&self) -> &'static str {
        "raw-put"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8, 32, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn operations(&self) -> u64 {
        2
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.source = Buffer::new(size.next_multiple_of(8) - 8);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, size: usize, iterations: u64) -> Result<Duration> {
        let first = self.sequence + 1;
        self.sequence += iterations;
        let sequences = first..=self.sequence;
        let start = Instant::now();
        if size <= LINE {
            // Rank r owns area r, and the other rank writes it.
            let target = side.shared().line(layout::PUT[side.other()]);
            let own = side.shared().line(layout::PUT[side.rank()]);
            by_words!(
                size.div_ceil(8).max(1),
                [1 2 3 4 5 6 7 8],
                short(target, own, sequences, side.measures())
            );
        } else {
            let words = size.div_ceil(8);
            let target = Long::new(side, side.other(), words);
            let own = Long::new(side, side.rank(), words);
            long(target, own.last, &self.source, sequences, side.measures());
        }
        Ok(start.elapsed())
    }
}

#[inline(never)]
fn short<const WORDS: usize>(
    target: &Line,
    own: &Line,
    sequences: impl Iterator<Item = u64>,
    serves: bool,
) {
    let source = [0xa5; WORDS];
    for sequence in sequences {
        if serves {
            put(target, &source, sequence);
        }
        // Acquire: pairs with the Release in `put`, so the words before are there.
        spin_until(|| own.words[WORDS - 1].load(Acquire) == sequence);
        if !serves {
            put(target, &source, sequence);
        }
    }
}

#[inline(always)]
fn put<const WORDS: usize>(target: &Line, source: &[u64; WORDS], sequence: u64) {
    for (word, shared) in black_box(source).iter().zip(&target.words[..WORDS - 1]) {
        shared.store(*word, Relaxed);
    }
    // Release: the words before are visible to whoever sees the last one.
    target.words[WORDS - 1].store(sequence, Release);
}

/// The bytes before the last word, and the last word.
#[derive(Clone, Copy)]
struct Long<'a> {
    bytes: SharedBytes<'a>,
    last: &'a AtomicU64,
}

impl<'a> Long<'a> {
    fn new(side: &Side<'a>, rank: usize, words: usize) -> Self {
        let lines = side.shared().lines(layout::BULK[rank] + LINE, words.div_ceil(8));
        let last = words - 1;
        Self {
            bytes: side.shared().bytes(layout::BULK[rank] + LINE, last * 8),
            last: &lines[last / 8].words[last % 8],
        }
    }
}

#[inline(never)]
fn long(
    target: Long<'_>,
    own: &AtomicU64,
    source: &[u8],
    sequences: impl Iterator<Item = u64>,
    serves: bool,
) {
    for sequence in sequences {
        if serves {
            target.bytes.write(black_box(source));
            // Release: the bytes are visible to whoever sees the last word.
            target.last.store(sequence, Release);
        }
        // Acquire: pairs with the Release of the other rank, so the bytes are there.
        spin_until(|| own.load(Acquire) == sequence);
        if !serves {
            target.bytes.write(black_box(source));
            // Release: as above.
            target.last.store(sequence, Release);
        }
    }
}

//! The latency limit: a message there and back through two lines, the same ones each time.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::super::side::shared::{LINE, Line, SharedBytes, layout};
use super::super::side::spin::spin_until;
use super::by_words;
use crate::perf::case::{Case, Metric};

/// The largest payload that shares a line with its sequence number.
const SHORT: usize = 56;

/// Up to 56 bytes travel in one line with their sequence number; more lie in the lines behind it.
#[derive(Default)]
pub(super) struct PingPong {
    sequence: u64,
    buffer: Buffer,
}

impl Case for PingPong {
    fn name(&self) -> &'static str {
        "raw-pingpong"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8, 32, 56, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn operations(&self) -> u64 {
        2
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.buffer = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, size: usize, iterations: u64) -> Result<Duration> {
        let first = self.sequence + 1;
        self.sequence += iterations;
        let sequences = first..=self.sequence;
        let start = Instant::now();
        if size <= SHORT {
            let lines = Lines {
                out: side.shared().line(layout::PINGPONG[side.rank()]),
                back: side.shared().line(layout::PINGPONG[side.other()]),
            };
            by_words!(
                size.div_ceil(8).max(1),
                [1 2 3 4 5 6 7],
                short(lines, sequences, side.measures())
            );
        } else {
            let ends = [side.rank(), side.other()].map(|rank| Long {
                line: side.shared().line(layout::BULK[rank]),
                payload: side.shared().bytes(layout::BULK[rank] + LINE, size),
            });
            long(ends, &mut self.buffer, sequences, side.measures());
        }
        Ok(start.elapsed())
    }
}

/// The line that this rank writes and the one that it reads.
#[derive(Clone, Copy)]
struct Lines<'a> {
    out: &'a Line,
    back: &'a Line,
}

#[inline(never)]
fn short<const WORDS: usize>(lines: Lines<'_>, sequences: impl Iterator<Item = u64>, serves: bool) {
    let source = [0xa5; WORDS];
    let mut sink = [0; WORDS];
    for sequence in sequences {
        if serves {
            send(lines.out, black_box(&source), sequence);
        }
        // Acquire: pairs with the Release in `send`, so the payload is there.
        spin_until(|| lines.back.words[0].load(Acquire) == sequence);
        for (word, shared) in sink.iter_mut().zip(&lines.back.words[1..]) {
            *word = shared.load(Relaxed);
        }
        black_box(&mut sink);
        if !serves {
            send(lines.out, black_box(&source), sequence);
        }
    }
}

#[inline(always)]
fn send<const WORDS: usize>(line: &Line, payload: &[u64; WORDS], sequence: u64) {
    for (word, shared) in payload.iter().zip(&line.words[1..]) {
        shared.store(*word, Relaxed);
    }
    // Release: the payload is visible to whoever sees the sequence number.
    line.words[0].store(sequence, Release);
}

/// A sequence number and the payload behind it.
#[derive(Clone, Copy)]
struct Long<'a> {
    line: &'a Line,
    payload: SharedBytes<'a>,
}

#[inline(never)]
fn long(
    [out, back]: [Long<'_>; 2],
    buffer: &mut [u8],
    sequences: impl Iterator<Item = u64>,
    serves: bool,
) {
    for sequence in sequences {
        if serves {
            out.payload.write(buffer);
            // Release: the payload is visible to whoever sees the sequence number.
            out.line.words[0].store(sequence, Release);
        }
        // Acquire: pairs with the Release of the other rank, so the payload is there.
        spin_until(|| back.line.words[0].load(Acquire) == sequence);
        back.payload.read(buffer);
        black_box(&mut *buffer);
        if !serves {
            out.payload.write(buffer);
            // Release: as above.
            out.line.words[0].store(sequence, Release);
        }
    }
}

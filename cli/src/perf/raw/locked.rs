//! The throughput of many producers and one consumer with one ring behind one lock, the usual way.
//! It is not a limit, but the obvious alternative.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::shared::{LINE, RawShared, layout};
use super::super::side::spin::spin_until;
use crate::perf::case::{Case, Metric};

/// Lines of the ring.
const LINES: u64 = 128;
/// Words of a line that a record has.
const WORDS: usize = 7;

/// All ranks but the first append as many records each under the lock, and the first one takes what
/// there is, under the same.
pub(super) struct Locked {
    producers: u64,
    words: usize,
}

impl Locked {
    pub(super) fn new(ranks: usize) -> Self {
        Self { producers: ranks as u64 - 1, words: 1 }
    }
}

/// The lock, the tail, the head, each on lines of its own; then the ring.
#[derive(Clone, Copy)]
struct Queue<'a>(&'a RawShared);

impl Queue<'_> {
    fn locked<R>(self, work: impl FnOnce() -> R) -> R {
        let lock = self.0.word(layout::LOCKED);
        spin_until(|| {
            lock.load(Relaxed) == 0 && lock.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
        });
        let result = work();
        lock.store(0, Release);
        result
    }

    /// False where it is full.
    fn append(self, words: usize) -> bool {
        let [tail, head] = [1, 2].map(|line| self.0.word(layout::LOCKED + 2 * line * LINE));
        self.locked(|| {
            let at = tail.load(Relaxed);
            if at - head.load(Relaxed) == LINES {
                return false;
            }
            let record = self.0.line(layout::LOCKED_RING + (at % LINES) as usize * LINE);
            record.words[..words].iter().for_each(|word| word.store(black_box(at), Relaxed));
            tail.store(at + 1, Relaxed);
            true
        })
    }

    /// How many it has taken.
    fn take(self, words: usize) -> u64 {
        let [tail, head] = [1, 2].map(|line| self.0.word(layout::LOCKED + 2 * line * LINE));
        self.locked(|| {
            let (from, to) = (head.load(Relaxed), tail.load(Relaxed));
            for at in from..to {
                let record = self.0.line(layout::LOCKED_RING + (at % LINES) as usize * LINE);
                record.words[..words].iter().for_each(|word| {
                    black_box(word.load(Relaxed));
                });
            }
            head.store(to, Relaxed);
            to - from
        })
    }
}

impl Case for Locked {
    fn name(&self) -> &'static str {
        "raw-locked-queue"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8, 32, 56]
    }

    fn metric(&self) -> Metric {
        Metric::Rate
    }

    fn operations(&self) -> u64 {
        self.producers
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.words = size.div_ceil(8).clamp(1, WORDS);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let (queue, words) = (Queue(side.shared()), self.words);
        let start = Instant::now();
        if side.measures() {
            let mut left = iterations * self.producers;
            spin_until(|| {
                left -= queue.take(words);
                left == 0
            });
        } else {
            for _ in 0..iterations {
                spin_until(|| queue.append(words));
            }
        }
        Ok(start.elapsed())
    }
}

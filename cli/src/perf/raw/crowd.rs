//! The limits of many ranks at once, which may be more than there are cores: a barrier, and a line
//! from everybody to everybody.

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::shared::{LINE, layout};
use crate::perf::case::{Case, Metric};

/// Arrivals on lines where each rank has a core; one counter and one futex where not.
pub(super) struct Barrier;

impl Case for Barrier {
    fn name(&self) -> &'static str {
        "raw-barrier"
    }

    fn sizes(&self) -> &'static [usize] {
        &[0]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..iterations {
            side.barrier();
        }
        Ok(start.elapsed())
    }
}

/// Each rank writes a word for each other one, all meet, each reads what was written for it. An
/// operation is one word.
pub(super) struct AllToAll {
    ranks: usize,
    rounds: u64,
}

impl AllToAll {
    pub(super) fn new(ranks: usize) -> Self {
        Self { ranks, rounds: 0 }
    }
}

impl Case for AllToAll {
    fn name(&self) -> &'static str {
        "raw-all-to-all"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn operations(&self) -> u64 {
        (self.ranks * (self.ranks - 1)) as u64
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let (own, ranks) = (side.rank(), self.ranks);
        let start = Instant::now();
        for _ in 0..iterations {
            self.rounds += 1;
            // Whoever is still reading the last round's words finds them as they were.
            let area = layout::ALL_TO_ALL + self.rounds as usize % 2 * layout::ALL_TO_ALL_BYTES;
            let word = |from: usize, to: usize| {
                side.shared().word(area + (from * layout::MAX_RANKS + to) * LINE)
            };
            for other in (0..ranks).filter(|other| *other != own) {
                // Relaxed: the barrier publishes it.
                word(own, other).store(self.rounds, Relaxed);
            }
            side.barrier();
            for other in (0..ranks).filter(|other| *other != own) {
                black_box(word(other, own).load(Relaxed));
            }
        }
        Ok(start.elapsed())
    }
}

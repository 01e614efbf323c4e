//! The limits of waiting asleep: a sleeper that is woken and answers, and a token that goes round.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::shared::{LINE, layout};
use super::super::side::spin::{let_fall_asleep, spin_until};
use super::super::side::{Side, sleep};
use crate::perf::case::{Case, Metric};

/// Rank 1 sleeps. Rank 0 waits until that is so, wakes it, and waits awake for its answer; from the
/// wake to the answer is the operation.
#[derive(Default)]
pub(super) struct Wake {
    round: u32,
}

impl Case for Wake {
    fn name(&self) -> &'static str {
        "raw-wake"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let [answer, call] = [0, 1].map(|rank| side.shared().half_word(layout::token(rank)));
        let mut time = Duration::ZERO;
        for _ in 0..iterations {
            self.round = self.round.wrapping_add(1);
            if side.measures() {
                let_fall_asleep();
                let start = Instant::now();
                sleep::open(call, self.round);
                // Acquire: pairs with the Release of rank 1.
                spin_until(|| answer.load(Acquire) == self.round);
                time += start.elapsed();
            } else {
                sleep::until(call, self.round);
                // Release: rank 0 goes on when it sees this.
                answer.store(self.round, Release);
            }
        }
        Ok(time)
    }
}

/// A token goes round, from rank to rank; an operation is one hop. Ranks wait awake where each has
/// a core, else asleep.
pub(super) struct Token {
    ranks: usize,
    round: u32,
}

impl Token {
    pub(super) fn new(ranks: usize) -> Self {
        Self { ranks, round: 0 }
    }
}

impl Case for Token {
    fn name(&self) -> &'static str {
        "raw-token"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn operations(&self) -> u64 {
        self.ranks as u64
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let own = side.shared().half_word(layout::token(side.rank()) + LINE);
        let next = side.shared().half_word(layout::token((side.rank() + 1) % self.ranks) + LINE);
        let pass = |round| match side.is_crowded() {
            true => sleep::open(next, round),
            // Release: whoever has the token sees what its holders did.
            false => next.store(round, Release),
        };
        let start = Instant::now();
        for _ in 0..iterations {
            self.round = self.round.wrapping_add(1);
            if side.measures() {
                pass(self.round);
            }
            match side.is_crowded() {
                true => sleep::until(own, self.round),
                // Acquire: pairs with the Release above.
                false => spin_until(|| own.load(Acquire) == self.round),
            }
            if !side.measures() {
                pass(self.round);
            }
        }
        Ok(start.elapsed())
    }
}

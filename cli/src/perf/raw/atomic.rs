//! The atomic limit: fetch-and-add on one line.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::shared::layout;
use crate::perf::case::{Case, Metric};

/// Fetch-and-add by one rank alone, or by both on the same line.
pub(super) struct Atomic {
    two_way: bool,
}

impl Atomic {
    pub(super) fn one_way() -> Self {
        Self { two_way: false }
    }

    pub(super) fn two_way() -> Self {
        Self { two_way: true }
    }
}

impl Case for Atomic {
    fn name(&self) -> &'static str {
        if self.two_way { "raw-atomic-two-way" } else { "raw-atomic" }
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let counter = side.shared().word(layout::ATOMIC);
        let start = Instant::now();
        if side.measures() || self.two_way {
            let mut operand = 0;
            for _ in 0..iterations {
                // Each waits for the one before, as operations whose result is used do. Relaxed:
                // nothing else is published; the instruction is the same for every ordering.
                operand = counter.fetch_add(operand | 1, Relaxed) & 1;
            }
            std::hint::black_box(operand);
        }
        Ok(start.elapsed())
    }
}

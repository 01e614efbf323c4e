//! The limit of a poll that finds nothing: one look at a line that nobody writes.

use std::hint::black_box;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::shared::layout;
use crate::perf::case::{Case, Metric};

/// By rank 0 alone.
pub(super) struct Load;

impl Case for Load {
    fn name(&self) -> &'static str {
        "raw-load"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let word = side.shared().word(layout::ATOMIC);
        let start = Instant::now();
        if side.measures() {
            for _ in 0..iterations {
                // Acquire: as a poll must, to see what a status word stands for.
                black_box(word.load(Acquire));
            }
        }
        Ok(start.elapsed())
    }
}

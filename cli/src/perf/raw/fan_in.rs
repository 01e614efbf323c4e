//! The rate limit of many producers and one consumer: a ring of lines for each producer.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::lines::{Cursor, Ring, receive, send};
use crate::perf::case::{Case, Metric};

/// All ranks but the first send as many messages each to the first one, which takes a burst from
/// each in turn.
pub(super) struct FanIn {
    produced: Cursor,
    /// By producer.
    consumed: Vec<Cursor>,
    message: Vec<u64>,
}

impl FanIn {
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            produced: Cursor::default(),
            consumed: vec![Cursor::default(); ranks - 1],
            message: Vec::new(),
        }
    }
}

impl Case for FanIn {
    fn name(&self) -> &'static str {
        "raw-fan-in"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8, 56]
    }

    fn metric(&self) -> Metric {
        Metric::Rate
    }

    fn operations(&self) -> u64 {
        self.consumed.len() as u64
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.message = vec![0xa5; size.div_ceil(8).max(1)];
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        if side.measures() {
            let mut left = iterations;
            while left > 0 {
                let burst = left.min(Ring::fan_in(side, 1).quarter());
                for (index, cursor) in self.consumed.iter_mut().enumerate() {
                    let ring = Ring::fan_in(side, 1 + index);
                    receive(ring, cursor, &mut self.message, burst);
                }
                left -= burst;
            }
        } else {
            let ring = Ring::fan_in(side, side.rank());
            send(ring, &mut self.produced, &self.message, iterations);
        }
        Ok(start.elapsed())
    }
}

//! The bandwidth limit of puts and gets: one copy between private memory and the shared mapping.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::super::side::shared::{LARGEST, LINE, layout};
use crate::perf::case::{Case, Metric};

/// The same source copied to the same destination again and again: as hot as the size allows.
pub(super) struct Memcpy {
    way: Way,
    private: Buffer,
}

/// Between which kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From private into shared memory.
    In,
    /// From private into shared memory by both ranks at once, each into memory of its own.
    InByBoth,
    /// From shared into private memory.
    Out,
    /// From shared to shared memory.
    Across,
}

impl Memcpy {
    pub(super) fn new(way: Way) -> Self {
        Self { way, private: Buffer::default() }
    }

    fn copy(&mut self, side: &Side<'_>, size: usize) {
        let [own, other] = [side.rank(), side.other()]
            .map(|rank| side.shared().bytes(layout::BULK[rank] + LINE, size));
        match self.way {
            Way::In | Way::InByBoth => own.write(black_box(&*self.private)),
            Way::Out => own.read(black_box(&mut *self.private)),
            Way::Across => own.copy_to(black_box(other)),
        }
    }
}

impl Case for Memcpy {
    fn name(&self) -> &'static str {
        match self.way {
            Way::In => "raw-memcpy",
            Way::InByBoth => "raw-memcpy-two-way",
            Way::Out => "raw-memcpy-out",
            Way::Across => "raw-memcpy-shared",
        }
    }

    fn sizes(&self) -> &'static [usize] {
        &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, LARGEST]
    }

    fn metric(&self) -> Metric {
        Metric::Bandwidth
    }

    fn operations(&self) -> u64 {
        if self.way == Way::InByBoth { 2 } else { 1 }
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.private = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        if side.measures() || self.way == Way::InByBoth {
            for _ in 0..iterations {
                self.copy(side, size);
            }
        }
        if self.way == Way::InByBoth {
            // The slower of the two counts.
            side.barrier();
        }
        Ok(start.elapsed())
    }
}

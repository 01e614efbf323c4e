//! The bandwidth limit of a put: one copy from private memory into the shared mapping.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::RawKind;
use super::Side;
use super::buffer::Buffer;
use super::shared::{LARGEST, LINE, layout};
use crate::perf::case::{Case, Metric, Path};

/// The same source copied to the same destination again and again: as hot as the size allows.
pub(super) struct Memcpy {
    two_way: bool,
    source: Buffer,
}

impl Memcpy {
    pub(super) fn one_way() -> Self {
        Self { two_way: false, source: Buffer::default() }
    }

    pub(super) fn two_way() -> Self {
        Self { two_way: true, source: Buffer::default() }
    }
}

impl Case for Memcpy {
    fn name(&self) -> &'static str {
        if self.two_way { "raw-memcpy-two-way" } else { "raw-memcpy" }
    }

    fn path(&self) -> Path {
        Path::Raw
    }

    fn sizes(&self) -> &'static [usize] {
        &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, LARGEST]
    }

    fn metric(&self) -> Metric {
        Metric::Bandwidth
    }

    fn raw(&self, _size: usize) -> Option<RawKind> {
        None
    }

    fn operations(&self) -> u64 {
        if self.two_way { 2 } else { 1 }
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.source = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, size: usize, iterations: u64) -> Result<Duration> {
        let destination = side.shared().bytes(layout::BULK[side.rank()] + LINE, size);
        let start = Instant::now();
        if side.measures() || self.two_way {
            for _ in 0..iterations {
                destination.write(black_box(&*self.source));
            }
        }
        if self.two_way {
            // The slower of the two counts.
            side.barrier();
        }
        Ok(start.elapsed())
    }
}

//! One-sided operations: rank 0 performs them, and rank 1's program has no part in them.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use ayre::Port;

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::super::side::buffer::Buffer;
use super::pair::Pair;
use super::{Label, labelled, poll_until};

/// An operation `perform`, which says whether there was room for it, with a local buffer.
pub(crate) struct OneSided<F> {
    label: Label,
    pair: Rc<Pair>,
    perform: F,
    buffer: Buffer,
    /// Both ranks perform it at the same time, on the same word.
    contended: bool,
}

impl<F: FnMut(&mut Port, &mut [u8]) -> Result<bool>> OneSided<F> {
    /// By rank 0.
    pub(crate) fn new(label: Label, pair: &Rc<Pair>, perform: F) -> Self {
        Self { label, pair: pair.clone(), perform, buffer: Buffer::default(), contended: false }
    }

    /// By both ranks, each of which can do without the other's progress.
    pub(crate) fn contended(label: Label, pair: &Rc<Pair>, perform: F) -> Self {
        Self { contended: true, ..Self::new(label, pair, perform) }
    }
}

impl<F: FnMut(&mut Port, &mut [u8]) -> Result<bool>> Case for OneSided<F> {
    labelled!();

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.buffer = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        if side.measures() || self.contended {
            let port = &mut *self.pair.port();
            for _ in 0..iterations {
                poll_until(|| (self.perform)(port, &mut self.buffer))?;
            }
            if self.label.path == Path::Mediated {
                port.flush(self.pair.other.peer)?;
            }
        }
        let time = start.elapsed();
        if self.label.path == Path::Mediated {
            self.pair.serve(side);
        }
        Ok(time)
    }
}

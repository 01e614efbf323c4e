//! Messages that follow each other at once, as many under way as the library lets be.

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::case::{Case, Metric};
use super::super::ops::pair::Pair;
use super::super::ops::poll_until;
use super::super::side::Side;
use super::super::side::buffer::Buffer;

/// From rank 0 to rank 1. Where there is no room, rank 0 has to make progress: nothing leaves its
/// host otherwise.
pub(super) struct Flood {
    pair: Rc<Pair>,
    buffer: Buffer,
}

impl Flood {
    pub(super) fn new(pair: &Rc<Pair>) -> Self {
        Self { pair: pair.clone(), buffer: Buffer::default() }
    }

    fn send(&mut self, count: u64) -> Result<()> {
        let port = &mut *self.pair.port();
        for _ in 0..count {
            port.send_wait(self.pair.other.peer, 0, black_box(&self.buffer))?;
        }
        Ok(())
    }

    fn receive(&mut self, count: u64) -> Result<()> {
        let port = &mut *self.pair.port();
        for _ in 0..count {
            poll_until(|| Ok(port.try_recv(&mut self.buffer)?.is_some()))?;
            black_box(&mut *self.buffer);
        }
        Ok(())
    }
}

impl Case for Flood {
    fn name(&self) -> &'static str {
        "message-rate"
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Rate
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.buffer = Buffer::new(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let start = Instant::now();
        match side.measures() {
            true => self.send(iterations)?,
            false => self.receive(iterations)?,
        }
        // All that was sent has been received.
        self.pair.serve(side);
        Ok(start.elapsed())
    }
}

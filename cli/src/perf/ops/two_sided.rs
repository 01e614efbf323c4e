//! Cases in which one rank sends and the other receives: there and back, in a stream, and from a
//! rank to itself.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use ayre::Port;

use super::super::case::RawKind;
use super::super::case::{Case, Metric, Path};
use super::super::side::Side;
use super::carrier::Carrier;
use super::pair::Pair;
use super::{Label, labelled, poll_until};

/// There and back: the latency of one way is half of it.
pub(crate) struct PingPong<C> {
    pub(crate) label: Label,
    pub(crate) pair: Rc<Pair>,
    pub(crate) carrier: C,
}

impl<C: Carrier> Case for PingPong<C> {
    labelled!();

    fn operations(&self) -> u64 {
        2
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.carrier.prepare(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let (port, carrier) = (&mut *self.pair.port(), &mut self.carrier);
        let start = Instant::now();
        for _ in 0..iterations {
            if side.measures() {
                poll_until(|| carrier.try_send(port))?;
            }
            poll_until(|| carrier.try_receive(port))?;
            if !side.measures() {
                poll_until(|| carrier.try_send(port))?;
            }
        }
        Ok(start.elapsed())
    }
}

/// Sends that follow each other at once, from rank 0 to rank 1 or both ways at the same time.
pub(crate) struct Stream<C> {
    pub(crate) label: Label,
    pub(crate) pair: Rc<Pair>,
    pub(crate) carrier: C,
    pub(crate) two_way: bool,
}

/// How many a rank sends before it looks what has come, where both send.
const BURST: u64 = 16;

impl<C: Carrier> Stream<C> {
    fn send(&mut self, port: &mut Port, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| poll_until(|| self.carrier.try_send(port)))
    }

    fn receive(&mut self, port: &mut Port, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| poll_until(|| self.carrier.try_receive(port)))
    }

    fn both(&mut self, port: &mut Port, count: u64) -> Result<()> {
        let (mut sent, mut received) = (0, 0);
        poll_until(|| {
            let until = count.min(sent + BURST);
            while sent < until && self.carrier.try_send(port)? {
                sent += 1;
            }
            while received < count && self.carrier.try_receive(port)? {
                received += 1;
            }
            Ok(sent == count && received == count)
        })
    }
}

impl<C: Carrier> Case for Stream<C> {
    labelled!();

    fn operations(&self) -> u64 {
        if self.two_way { 2 } else { 1 }
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.carrier.prepare(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let pair = self.pair.clone();
        let start = Instant::now();
        {
            let port = &mut *pair.port();
            match (self.two_way, side.measures()) {
                (true, _) => self.both(port, iterations)?,
                (false, true) => self.send(port, iterations)?,
                (false, false) => self.receive(port, iterations)?,
            }
        }
        // All that was sent has been received.
        pair.serve(side);
        Ok(start.elapsed())
    }
}

/// A rank that sends to itself.
pub(crate) struct Loopback<C> {
    pub(crate) label: Label,
    pub(crate) pair: Rc<Pair>,
    pub(crate) carrier: C,
}

impl<C: Carrier> Case for Loopback<C> {
    labelled!();

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.carrier.prepare(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let (port, carrier) = (&mut *self.pair.port(), &mut self.carrier);
        let start = Instant::now();
        if side.measures() {
            for _ in 0..iterations {
                poll_until(|| carrier.try_send(port))?;
                poll_until(|| carrier.try_receive(port))?;
            }
        }
        Ok(start.elapsed())
    }
}

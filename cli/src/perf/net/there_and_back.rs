//! There and back between two ports: the latency of one way is half of it.

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ayre::{Port, PostOptions};

use super::super::case::{Case, Metric};
use super::super::ops::carrier::Carrier;
use super::super::ops::pair::{Pair, good, place};
use super::super::ops::{poll_until, posted};
use super::super::side::Side;
use super::super::side::spin::spin_until;

/// The message that goes there and back, and the way to wait for it.
pub(super) trait Way {
    /// Makes ready for `size` bytes.
    fn prepare(&mut self, _size: usize) {}

    /// Sends once.
    fn send(&mut self, port: &mut Port) -> Result<()>;

    /// Waits until it has come, and reads it.
    fn receive(&mut self, port: &mut Port) -> Result<()>;
}

/// Polled for.
pub(super) struct Awake<C>(pub(super) C);

impl<C: Carrier> Way for Awake<C> {
    fn prepare(&mut self, size: usize) {
        self.0.prepare(size);
    }

    #[inline(always)]
    fn send(&mut self, port: &mut Port) -> Result<()> {
        poll_until(|| self.0.try_send(port))
    }

    #[inline(always)]
    fn receive(&mut self, port: &mut Port) -> Result<()> {
        poll_until(|| self.0.try_receive(port))
    }
}

/// A message of eight bytes; who waits for it sleeps.
pub(super) struct MessageToSleeper(pub(super) Rc<Pair>);

impl Way for MessageToSleeper {
    fn send(&mut self, port: &mut Port) -> Result<()> {
        Ok(port.send_wait(self.0.other.peer, 0, black_box(&[0xa5; 8]))?)
    }

    fn receive(&mut self, port: &mut Port) -> Result<()> {
        let mut sink = [0; 8];
        port.recv(&mut sink, None)?;
        black_box(&mut sink);
        Ok(())
    }
}

/// A put of eight bytes and its notification; who waits for that sleeps.
pub(super) struct PutToSleeper(pub(super) Rc<Pair>);

impl Way for PutToSleeper {
    fn send(&mut self, port: &mut Port) -> Result<()> {
        let (to, at, bytes) = (&self.0.other.memory, place::BULK as u64, black_box(&[0xa5; 8]));
        poll_until(|| posted(port.put(to, at, bytes, PostOptions::new().completer())))
    }

    fn receive(&mut self, port: &mut Port) -> Result<()> {
        good(&port.wait_notification(None).context("the other rank has gone")?)?;
        let mut sink = [0; 8];
        self.0.region.read(place::BULK, &mut sink);
        black_box(&mut sink);
        Ok(())
    }
}

/// The case.
pub(super) struct ThereAndBack<W> {
    pub(super) name: &'static str,
    pub(super) pair: Rc<Pair>,
    pub(super) way: W,
}

impl<W: Way> Case for ThereAndBack<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> &'static [usize] {
        &[8]
    }

    fn metric(&self) -> Metric {
        Metric::Latency
    }

    fn operations(&self) -> u64 {
        2
    }

    fn prepare(&mut self, _side: &Side<'_>, size: usize) -> Result<()> {
        self.way.prepare(size);
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        let (port, way) = (&mut *self.pair.port(), &mut self.way);
        let start = Instant::now();
        for _ in 0..iterations {
            if side.measures() {
                way.send(port)?;
            }
            way.receive(port)?;
            if !side.measures() {
                way.send(port)?;
            }
        }
        let time = start.elapsed();
        // The last one may not have left yet: it does with progress. No notification may be taken
        // meanwhile, since the other rank may have gone on already.
        let round = side.arrive();
        spin_until(|| {
            port.progress();
            side.all_arrived(round)
        });
        Ok(time)
    }
}

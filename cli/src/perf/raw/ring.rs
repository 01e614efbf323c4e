//! The rate limit: a stream of messages through a ring with one producer and one consumer.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::side::Side;
use super::super::side::shared::Form;
use super::lines::LineRings;
use super::slots::SlotRings;
use crate::perf::case::{Case, Metric};

/// Up to this size messages are tried in rings of lines, and from the other size on in slots.
const LONGEST_IN_LINES: usize = 4 << 10;
const SHORTEST_IN_SLOTS: usize = 57;

/// The carrier of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Lines(Form),
    Slots(Form),
}

impl Carrier {
    const ALL: [Self; 4] = [
        Self::Lines(Form::Compact),
        Self::Lines(Form::Wide),
        Self::Slots(Form::Compact),
        Self::Slots(Form::Wide),
    ];

    fn carries(self, size: usize) -> bool {
        match self {
            Self::Lines(_) => size <= LONGEST_IN_LINES,
            Self::Slots(_) => size >= SHORTEST_IN_SLOTS,
        }
    }
}

/// All rings between two ranks: one set for all cases, so that sequence numbers never come again.
#[derive(Default)]
pub(super) struct Rings {
    lines: LineRings,
    slots: SlotRings,
}

impl Rings {
    fn prepare(&mut self, size: usize) {
        self.lines.prepare(size);
        self.slots.prepare(size);
    }
}

/// A stream of messages, by the fastest ring known here for their size.
pub(super) struct Messages {
    two_way: bool,
    carrier: Carrier,
    rings: Rc<RefCell<Rings>>,
}

impl Messages {
    pub(super) fn one_way(rings: &Rc<RefCell<Rings>>) -> Self {
        Self { two_way: false, carrier: Carrier::ALL[0], rings: rings.clone() }
    }

    pub(super) fn two_way(rings: &Rc<RefCell<Rings>>) -> Self {
        Self { two_way: true, ..Self::one_way(rings) }
    }

    fn time(&mut self, side: &Side<'_>, count: u64) -> Duration {
        let mut rings = self.rings.borrow_mut();
        let start = Instant::now();
        match self.carrier {
            Carrier::Lines(form) => rings.lines.run(side, form, count, self.two_way),
            Carrier::Slots(form) => rings.slots.run(side, form, count, self.two_way),
        }
        start.elapsed()
    }

    /// The median time of some trials, on rank 0's clock, in nanoseconds. Not the shortest: some
    /// carriers are fast at times only, when the ranks happen to keep a distance.
    fn trial(&mut self, side: &Side<'_>, carrier: Carrier, count: u64) -> u64 {
        self.carrier = carrier;
        let mut trials = [0; 5];
        for trial in &mut trials {
            side.barrier();
            *trial = self.time(side, count).as_nanos() as u64;
        }
        trials.sort_unstable();
        side.agree(trials[trials.len() / 2])
    }
}

impl Case for Messages {
    fn name(&self) -> &'static str {
        if self.two_way { "raw-ring-two-way" } else { "raw-ring" }
    }

    fn sizes(&self) -> &'static [usize] {
        &[8, 32, 56, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20]
    }

    fn metric(&self) -> Metric {
        Metric::Rate
    }

    fn operations(&self) -> u64 {
        if self.two_way { 2 } else { 1 }
    }

    /// Which carrier is the fastest depends on the processor's caches and prefetchers, and on a
    /// virtual machine on where its processors are just now: tries them.
    fn prepare(&mut self, side: &Side<'_>, size: usize) -> Result<()> {
        self.rings.borrow_mut().prepare(size);
        let count = ((8 << 20) / size.max(1 << 10) as u64).max(1);
        let carriers = Carrier::ALL.into_iter().filter(|carrier| carrier.carries(size));
        let fastest = carriers.min_by_key(|&carrier| self.trial(side, carrier, count));
        self.carrier = fastest.expect("every size has a carrier");
        Ok(())
    }

    fn run(&mut self, side: &Side<'_>, _size: usize, iterations: u64) -> Result<Duration> {
        Ok(self.time(side, iterations))
    }
}

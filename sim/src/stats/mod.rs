//! Results: means with their confidence, percentiles, and where the time went.
mod batches;
mod line;
mod ranks;

use crate::packet::Packet;
use crate::random::mix;
use crate::time::Time;
pub(crate) use batches::student;
pub use batches::{Batches, Interval, across};
use hdrhistogram::Histogram;
pub use line::{Line, fit};
pub use ranks::{by_chance, spearman};

/// The time of packets by where it went. The parts of a packet sum to its delay exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// In the queue of the source.
    pub queued: u128,
    /// For outputs and credits in the network.
    pub waited: u128,
    /// On wires and in the pipelines of routers, and the passing of the packet itself.
    pub moved: u128,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Tally {
    delivered: u64,
    bytes: u128,
    hops: u128,
    delay: u128,
    parts: Parts,
    batches: Batches,
    histogram: Histogram<u64>,
    first: Time,
    last: Time,
    course: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self::new(Time::ZERO)
    }
}

impl Tally {
    /// Results from a time on.
    pub(crate) fn new(start: Time) -> Self {
        Self {
            delivered: 0,
            bytes: 0,
            hops: 0,
            delay: 0,
            parts: Parts::default(),
            batches: Batches::new(start),
            histogram: Histogram::new_with_bounds(1, Time::END.0, 3).expect("sound bounds"),
            first: Time::NEVER,
            last: Time::ZERO,
            course: 0,
        }
    }

    /// A packet was delivered at `at`.
    #[inline]
    pub(crate) fn record(&mut self, packet: &Packet, at: Time) {
        let delay = at - packet.born;
        self.delivered += 1;
        self.bytes += u128::from(packet.bytes);
        self.hops += u128::from(packet.hops);
        self.delay += u128::from(delay.0);
        self.parts.queued += u128::from(packet.queued.0);
        self.parts.waited += u128::from(packet.waited.0);
        self.parts.moved += u128::from((delay - packet.queued - packet.waited).0);
        self.batches.add(at, delay.0);
        self.histogram.saturating_record(delay.0);
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        let pair = u64::from(packet.source) << 32 | u64::from(packet.target);
        self.course = self.course.wrapping_add(mix(at.0 ^ mix(packet.born.0 ^ mix(pair))));
    }

    /// Adds the results of another part of the network, with the same start. The sum
    /// does not depend on which part delivered a packet.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.bytes += other.bytes;
        self.hops += other.hops;
        self.delay += other.delay;
        self.parts.queued += other.parts.queued;
        self.parts.waited += other.parts.waited;
        self.parts.moved += other.parts.moved;
        self.batches.merge(&other.batches);
        self.histogram.add(&other.histogram).expect("both have the bounds of all tallies");
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.course = self.course.wrapping_add(other.course);
    }

    /// Packets delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes delivered.
    pub fn bytes(&self) -> u128 {
        self.bytes
    }

    /// Links that packets passed between routers, in the mean.
    pub fn mean_hops(&self) -> f64 {
        self.hops as f64 / self.delivered as f64
    }

    /// The mean delay from birth to delivery, in picoseconds, with its 95 % confidence interval.
    pub fn delay(&self) -> Interval {
        self.batches.interval()
    }

    /// The sum of all delays, in picoseconds.
    pub fn total_delay(&self) -> u128 {
        self.delay
    }

    /// Where the time went, summed over all packets, in picoseconds.
    pub fn parts(&self) -> Parts {
        self.parts
    }

    /// The delay that this share of packets did not exceed, within 0.1 %.
    pub fn quantile(&self, share: f64) -> Time {
        Time(self.histogram.value_at_quantile(share))
    }

    /// All delays, within 0.1 %.
    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// From the first delivery to the last one.
    pub fn span(&self) -> Time {
        if self.delivered == 0 { Time::ZERO } else { self.last - self.first }
    }

    pub(crate) fn course(&self) -> u64 {
        self.course
    }
}

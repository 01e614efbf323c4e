//! Round trips: how long they take, how long to wait for an answer, and the shortest one of late.
//!
//! The estimate and the retransmission timeout are those of RFC 6298, in integers. The smoothed
//! round trip is kept eightfold and its variation fourfold: the gains of 1/8 and 1/4 are shifts,
//! and the term of four variations is there already.
//!
//! ```text
//!   sample --> smoothed += (sample - smoothed) / 8
//!         '--> variation += (|sample - smoothed before| - variation) / 4
//!   timeout = (smoothed + 4 variation, within floor and ceiling) * 2^timeouts in a row, <= ceiling
//! ```
//!
//! RFC 6298 takes no sample from a retransmitted segment, because it cannot tell which of the
//! transmissions an acknowledgement is for (Karn). Here an acknowledgement echoes the stamp of one
//! transmission, and a retransmission has a stamp of its own. So every echo is a valid sample, and
//! the estimate goes on learning while frames are lost.
use crate::lane::Malformed;
use crate::limits::ROUND_TRIP_MAX;

/// For how long a short round trip is remembered: at least this, at most twice this.
///
/// Long enough to span moments without a queue, short enough to follow a change of the route.
pub const SHORTEST_WINDOW: u64 = 10_000_000_000;

/// The bounds of a retransmission timeout, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// At least this.
    pub floor: u64,
    /// This before the first sample.
    pub initial: u64,
    /// At most this, however often it has doubled.
    pub ceiling: u64,
}

impl Bounds {
    /// For hosts of one rack, a few tens of microseconds apart.
    ///
    /// The floor is several round trips, and twice the longest delay that congestion control aims
    /// at: a queue at its target never passes for a loss. The initial value covers a peer whose
    /// program is asleep when the first frame comes. The ceiling is how long a peer that returns
    /// may remain unnoticed.
    pub const RACK: Self = Self { floor: 200_000, initial: 10_000_000, ceiling: 1_000_000_000 };
}

/// The estimate of the round trip to one peer.
#[derive(Clone, Debug)]
pub struct Rtt {
    bounds: Bounds,
    estimate: Option<Estimate>,
    /// Timeouts since the last sample.
    doublings: u32,
    shortest: Shortest,
}

impl Rtt {
    /// Nothing learnt. The bounds are in order, and no longer than a round trip can be.
    pub const fn new(bounds: Bounds) -> Self {
        let Bounds { floor, initial, ceiling } = bounds;
        assert!(0 < floor && floor <= initial && initial <= ceiling, "bounds are in order");
        assert!(ceiling <= ROUND_TRIP_MAX, "a timeout is no longer than a round trip can be");
        Self { bounds, estimate: None, doublings: 0, shortest: Shortest::new() }
    }

    /// Asserts what holds between two steps.
    const fn check(&self) {
        let Bounds { floor, ceiling, .. } = self.bounds;
        debug_assert!(self.doublings < u32::BITS, "a timeout is doubled as far as to the ceiling");
        debug_assert!(floor <= self.timeout(), "no answer comes before the floor");
        debug_assert!(self.timeout() <= ceiling, "a peer that returns is noticed");
        let is_known = self.shortest.present.is_some();
        debug_assert!(is_known == self.estimate.is_some(), "each sample is one of all averages");
    }

    /// Takes in a round trip: the time from a transmission's stamp to its echo, less the time for
    /// which the peer held that back. It has 32 bits, as a frame's stamps have. One of no time or
    /// of more than [`ROUND_TRIP_MAX`] cannot be; it is refused and changes nothing.
    // spec: RTT-1, RTT-2, RTT-5
    pub fn on_sample(&mut self, now: u64, sample: u64) -> Result<(), Malformed> {
        if sample == 0 || sample > ROUND_TRIP_MAX {
            return Err(Malformed);
        }
        self.estimate = Some(match self.estimate {
            None => Estimate::first(sample),
            Some(estimate) => estimate.after(sample),
        });
        self.doublings = 0;
        self.shortest.on_sample(now, sample);
        debug_assert!(self.shortest() <= Some(sample), "the shortest is no longer than a sample");
        self.check();
        Ok(())
    }

    /// Nothing came back in time: the next wait is twice as long.
    // spec: RTT-4
    pub const fn on_timeout(&mut self) {
        if self.timeout() < self.bounds.ceiling {
            self.doublings += 1;
        }
        self.check();
    }

    /// How long to wait for an answer before sending again.
    // spec: RTT-3, RTT-4
    pub const fn timeout(&self) -> u64 {
        let Bounds { floor, initial, ceiling } = self.bounds;
        let once = match self.estimate {
            None => initial,
            Some(estimate) => at_least(estimate.timeout(), floor),
        };
        // It is doubled no further than to the ceiling, 31 bits: the shift loses nothing.
        at_most(at_most(once, ceiling) << self.doublings, ceiling)
    }

    /// The smoothed round trip; none before the first sample.
    pub fn smoothed(&self) -> Option<u64> {
        self.estimate.map(|estimate| estimate.smoothed_8 / 8)
    }

    /// The smoothed distance of samples from the smoothed round trip.
    pub fn variation(&self) -> Option<u64> {
        self.estimate.map(|estimate| estimate.variation_4 / 4)
    }

    /// The shortest round trip of late, as of the last sample: what the way takes without queues.
    // spec: RTT-6
    pub fn shortest(&self) -> Option<u64> {
        self.shortest.get()
    }
}

const fn at_least(value: u64, bound: u64) -> u64 {
    if value < bound { bound } else { value }
}

const fn at_most(value: u64, bound: u64) -> u64 {
    if value > bound { bound } else { value }
}

/// The two averages of RFC 6298, each multiplied by the reciprocal of its gain. Rounding leaves
/// the smoothed round trip between the shortest and the longest sample.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    smoothed_8: u64,
    variation_4: u64,
}

impl Estimate {
    const fn first(sample: u64) -> Self {
        Self { smoothed_8: 8 * sample, variation_4: 2 * sample }
    }

    const fn after(self, sample: u64) -> Self {
        let smoothed = self.smoothed_8 / 8;
        let after = Self {
            smoothed_8: self.smoothed_8 - smoothed + sample,
            variation_4: self.variation_4 - self.variation_4 / 4 + smoothed.abs_diff(sample),
        };
        let now = after.smoothed_8 / 8;
        debug_assert!(at_most(smoothed, sample) <= now, "an average lies above the least");
        debug_assert!(now <= at_least(smoothed, sample), "an average lies below the most");
        after
    }

    const fn timeout(self) -> u64 {
        self.smoothed_8 / 8 + self.variation_4
    }
}

/// A minimum over time in two buckets: that of the present window and that of the one before.
#[derive(Clone, Debug)]
struct Shortest {
    /// When the present window began.
    began: u64,
    present: Option<u64>,
    before: Option<u64>,
}

impl Shortest {
    const fn new() -> Self {
        Self { began: 0, present: None, before: None }
    }

    fn on_sample(&mut self, now: u64, sample: u64) {
        let age = now.saturating_sub(self.began);
        if age >= SHORTEST_WINDOW {
            let is_next = age < 2 * SHORTEST_WINDOW;
            self.before = self.present.filter(|_| is_next);
            self.present = None;
            self.began = if is_next { self.began + SHORTEST_WINDOW } else { now };
        }
        self.present = Some(self.present.map_or(sample, |shortest| shortest.min(sample)));
    }

    fn get(&self) -> Option<u64> {
        [self.present, self.before].into_iter().flatten().min()
    }
}

//! Simulated time: whole picoseconds, and clocks whose edges are exact.
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a span of it, in picoseconds.
///
/// Ring entries and events keep times in 48 bits, so a run ends before [`Time::END`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);
    /// No run goes beyond this time: 2^48 ps, 281 seconds.
    pub const END: Self = Self(1 << 48);
    /// Later than any event.
    pub const NEVER: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos * 1_000)
    }

    /// In nanoseconds.
    pub fn nanos(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ps", self.0),
            1_000..1_000_000 => write!(f, "{:.3} ns", ps / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.3} us", ps / 1e6),
            _ => write!(f, "{:.3} ms", ps / 1e9),
        }
    }
}

/// A clock that ticks at a whole number of hertz, from time zero on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    hertz: u64,
}

const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

impl Clock {
    /// A clock of 1 Hz to 1 THz; `None` for any other rate.
    pub fn new(hertz: u64) -> Option<Self> {
        (1..=PICOS_PER_SECOND as u64).contains(&hertz).then_some(Self { hertz })
    }

    /// The time of an edge, rounded down to a picosecond. Errors do not add up: edge `n` is
    /// computed from `n`, and not from the edge before.
    pub fn edge(self, number: u64) -> Time {
        Time((u128::from(number) * PICOS_PER_SECOND / u128::from(self.hertz)) as u64)
    }

    /// The number of the first edge at `time` or later.
    pub fn edge_from(self, time: Time) -> u64 {
        let number =
            (u128::from(time.0) * u128::from(self.hertz)).div_ceil(PICOS_PER_SECOND) as u64;
        // The edge before can be at `time`, too, where its time was rounded down.
        if number > 0 && self.edge(number - 1) >= time { number - 1 } else { number }
    }

    /// The time of the first edge at `time` or later.
    pub fn align(self, time: Time) -> Time {
        self.edge(self.edge_from(time))
    }

    /// The end of `cycles` cycles that begin at the first edge at `time` or later.
    pub fn after(self, time: Time, cycles: u64) -> Time {
        self.edge(self.edge_from(time) + cycles)
    }

    /// The span of `cycles` cycles from time zero.
    pub fn span(self, cycles: u64) -> Time {
        self.edge(cycles)
    }
}

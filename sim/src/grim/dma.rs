//! Rates, and DMA transfers whose time is a start and a time for each byte.
use crate::time::Time;

/// Megabytes per second, which are bytes per microsecond.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

impl Rate {
    /// The time in which this number of bytes passes.
    pub fn span(self, bytes: u32) -> Time {
        Time((f64::from(bytes) / self.0 * 1e6) as u64)
    }

    /// The rate at which bytes pass in a time.
    pub fn of(bytes: u32, time: Time) -> Self {
        Self(f64::from(bytes) * 1e6 / time.0 as f64)
    }
}

/// A DMA engine with its bus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dma {
    /// The time of a transfer without bytes.
    pub start: Time,
    /// How fast bytes follow.
    pub rate: Rate,
}

impl Dma {
    /// The engine of which the times of a short and of a long transfer were measured.
    pub fn through(short: (u32, Time), long: (u32, Time)) -> Self {
        let rate = Rate::of(long.0 - short.0, long.1 - short.1);
        Self::from_least(short, rate)
    }

    /// The engine of which the time of a short transfer and the rate of long ones were measured.
    pub fn from_least(short: (u32, Time), rate: Rate) -> Self {
        Self { start: Time(short.1.0.saturating_sub(rate.span(short.0).0)), rate }
    }

    /// An engine whose start takes as many cycles of a bus that is `times` as fast.
    pub fn on_faster_bus(self, times: u64, rate: Rate) -> Self {
        Self { start: Time(self.start.0 / times), rate }
    }

    /// The time of a transfer.
    pub fn time(&self, bytes: u32) -> Time {
        self.start + self.rate.span(bytes)
    }

    /// The least transfer that reaches half of `rate`.
    pub fn half_at(&self, rate: Rate) -> f64 {
        let start = self.start.0 as f64 / 1e6;
        start / (2.0 / rate.0 - 1.0 / self.rate.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn an_engine_goes_through_both_measurements() {
        let (short, long) = ((32, Time::from_nanos(3 * US)), (65_536, Time::from_nanos(496 * US)));
        let dma = Dma::through(short, long);
        assert!(dma.time(short.0).0.abs_diff(short.1.0) < 10);
        assert!(dma.time(long.0).0.abs_diff(long.1.0) < 10);
    }

    #[test]
    fn half_of_the_rate_is_reached_where_the_bytes_take_as_long_as_the_start() {
        let dma = Dma { start: Time::from_nanos(2 * US), rate: Rate(100.0) };
        assert!((dma.half_at(dma.rate) - 200.0).abs() < 1e-9);
        let rate = Rate::of(200, dma.time(200));
        assert!((rate.0 - 50.0).abs() < 1e-6);
    }

    #[test]
    fn a_faster_bus_shortens_the_start() {
        let dma = Dma { start: Time::from_nanos(2 * US), rate: Rate(100.0) };
        let faster = dma.on_faster_bus(2, Rate(300.0));
        assert_eq!(faster.time(0), Time::from_nanos(US));
    }
}

//! Medians, percentiles and ratios of what was measured.

use hdrhistogram::Histogram;

/// The median; of an even number of values the mean of the middle two. None of no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + upper) / 2.0 } else { upper })
}

/// Times of an operation, each beside the time of its limit taken milliseconds before, in
/// nanoseconds.
#[derive(Default)]
pub(crate) struct Repetitions {
    operation: Vec<f64>,
    raw: Vec<f64>,
}

impl Repetitions {
    /// Adds one repetition.
    pub(crate) fn push(&mut self, operation: f64, raw: f64) {
        self.operation.push(operation);
        self.raw.push(raw);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.operation.len()
    }

    /// The operation's times.
    pub(crate) fn operation(&self) -> &[f64] {
        &self.operation
    }

    /// The median of `figure` of the operation's times.
    pub(crate) fn median_operation(&self, figure: impl Fn(f64) -> f64) -> Option<f64> {
        median(&self.operation.iter().map(|&time| figure(time)).collect::<Vec<_>>())
    }

    /// The median of `figure` of the limit's times.
    pub(crate) fn median_raw(&self, figure: impl Fn(f64) -> f64) -> Option<f64> {
        median(&self.raw.iter().map(|&time| figure(time)).collect::<Vec<_>>())
    }

    /// The median over the repetitions of the operation's figure divided by the limit's. It is
    /// steadier than the ratio of the medians: what slows the machine for a while slows both.
    pub(crate) fn median_ratio(&self, figure: impl Fn(f64) -> f64) -> Option<f64> {
        let pairs = self.operation.iter().zip(&self.raw);
        median(&pairs.map(|(&time, &raw)| figure(time) / figure(raw)).collect::<Vec<_>>())
    }
}

/// A histogram of times: three significant digits from a picosecond to a second.
pub(crate) struct Times(Histogram<u64>);

const PICOSECONDS: f64 = 1e3;

impl Times {
    /// No times yet.
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("the bounds are valid"))
    }

    /// Adds a time in nanoseconds; longer ones than a second count as a second.
    pub(crate) fn record(&mut self, nanoseconds: f64) {
        self.0.saturating_record((nanoseconds * PICOSECONDS) as u64);
    }

    /// How many times were added.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// The percentiles of what was added, in nanoseconds.
    pub(crate) fn percentiles(&self) -> Percentiles {
        let at = |quantile| self.0.value_at_quantile(quantile) as f64 / PICOSECONDS;
        Percentiles {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.0.max() as f64 / PICOSECONDS,
        }
    }
}

/// How the times are spread, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_empty_list_is_none() {
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_the_middle_two() {
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), Some(3.0));
    }

    #[test]
    fn ratios_are_taken_per_repetition() {
        let mut repetitions = Repetitions::default();
        // The second half of the run is three times slower, for both.
        for (operation, raw) in [(20.0, 10.0), (20.0, 10.0), (60.0, 30.0), (66.0, 30.0)] {
            repetitions.push(operation, raw);
        }
        assert_eq!(repetitions.len(), 4);
        assert_eq!(repetitions.median_ratio(|time| time), Some(2.0));
        assert_eq!(repetitions.median_operation(|time| time), Some(40.0));
        assert_eq!(repetitions.median_raw(|time| time), Some(20.0));
        // A rate is the inverse, and so is its ratio.
        assert_eq!(repetitions.median_ratio(|time| 1e3 / time), Some(0.5));
    }

    #[test]
    fn percentiles_keep_three_digits() {
        let mut times = Times::new();
        for nanosecond in 1..=1000 {
            times.record(f64::from(nanosecond));
        }
        assert_eq!(times.len(), 1000);
        let percentiles = times.percentiles();
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.002;
        assert!(near(percentiles.p50, 500.0), "{percentiles:?}");
        assert!(near(percentiles.p90, 900.0), "{percentiles:?}");
        assert!(near(percentiles.p99, 990.0), "{percentiles:?}");
        assert!(near(percentiles.p999, 999.0), "{percentiles:?}");
        assert!(near(percentiles.max, 1000.0), "{percentiles:?}");
    }

    #[test]
    fn times_below_a_nanosecond_and_above_a_second_are_kept() {
        let mut times = Times::new();
        times.record(0.25);
        times.record(5e9);
        let percentiles = times.percentiles();
        assert!((percentiles.p50 - 0.25).abs() < 0.01, "{percentiles:?}");
        assert!(percentiles.max >= 1e9 && percentiles.max < 2e9, "{percentiles:?}");
    }
}

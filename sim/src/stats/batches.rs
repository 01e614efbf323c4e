//! Confidence in a mean by the method of batch means.
//!
//! Delays that follow each other depend on each other, so the variance of single ones says little
//! about the mean. The means of long batches are nearly independent.
//!
//! A batch is a span of time, so it does not matter in which order values are added. When there
//! would be more than `MOST` batches, each two become one of double length.
//!
//! ```text
//!   start     start + 2^shift                     last, still open
//!     | n0, s0   |  n1, s1  |  n2, s2  |   ...   |  n, s
//! ```
//!
//! Batches have different numbers of values. So the mean is a ratio of two sums, and its variance
//! is that of a ratio: the squares of `s - mean * n` (Cochran 1977, chapter 6).
use crate::time::Time;

const MOST: usize = 64;
/// The length of the first batches: 1,024 ps.
const SHIFT: u32 = 10;

/// Sums of batches of equal length.
#[derive(Clone, Debug)]
pub struct Batches {
    start: Time,
    /// Binary logarithm of a batch's length in picoseconds.
    shift: u32,
    batches: Vec<Batch>,
}

/// The values of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Batch {
    count: u64,
    sum: u128,
}

impl Batch {
    fn join(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum }
    }
}

/// A mean, and how far the true one may be from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half of the width of the 95 % confidence interval; infinite if there are too few values.
    pub half_width: f64,
}

impl Batches {
    /// Batches from a time on.
    pub fn new(start: Time) -> Self {
        Self { start, shift: SHIFT, batches: Vec::with_capacity(MOST) }
    }

    /// Adds a value of this time, which is not before the start.
    #[inline]
    pub fn add(&mut self, at: Time, value: u64) {
        let number = ((at - self.start).0 >> self.shift) as usize;
        match self.batches.get_mut(number) {
            Some(batch) => {
                batch.count += 1;
                batch.sum += u128::from(value);
            }
            None => self.add_later(at, value),
        }
    }

    /// Adds a value behind the last batch.
    #[cold]
    fn add_later(&mut self, at: Time, value: u64) {
        while (at - self.start).0 >> self.shift >= MOST as u64 {
            self.fold();
        }
        let number = ((at - self.start).0 >> self.shift) as usize;
        self.batches.resize(number + 1, Batch::default());
        self.add(at, value);
    }

    /// Makes one batch of each two.
    fn fold(&mut self) {
        let pairs = self.batches.len().div_ceil(2);
        for number in 0..pairs {
            let second = self.batches.get(2 * number + 1).copied().unwrap_or_default();
            self.batches[number] = self.batches[2 * number].join(second);
        }
        self.batches.truncate(pairs);
        self.shift += 1;
    }

    /// Adds the values of other batches with the same start.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.shift < other.shift {
            self.fold();
        }
        while other.shift < self.shift {
            other.fold();
        }
        let most = self.batches.len().max(other.batches.len());
        self.batches.resize(most, Batch::default());
        for (batch, more) in self.batches.iter_mut().zip(other.batches) {
            *batch = batch.join(more);
        }
    }

    /// The mean of all values with its 95 % confidence interval.
    pub fn interval(&self) -> Interval {
        let all = self.batches.iter().fold(Batch::default(), |all, batch| all.join(*batch));
        let mean = all.sum as f64 / all.count as f64;
        // The last batch was cut short.
        let whole = &self.batches[..self.batches.len().saturating_sub(1)];
        let used = whole.iter().fold(Batch::default(), |all, batch| all.join(*batch));
        if whole.len() < 2 || used.count == 0 {
            return Interval { mean, half_width: f64::INFINITY };
        }
        let (batches, center) = (whole.len() as f64, used.sum as f64 / used.count as f64);
        let off = |batch: &Batch| (batch.sum as f64 - center * batch.count as f64).powi(2);
        let squares: f64 = whole.iter().map(off).sum();
        let error = (squares * batches / (batches - 1.0)).sqrt() / used.count as f64;
        Interval { mean, half_width: student(whole.len() - 1) * error }
    }
}
/// The mean of a quantity over runs with different seeds, and half of the width of its 95 %
/// confidence interval.
pub fn across(seeds: u64, run: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (1..=seeds).map(run).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    (mean, student(values.len() - 1) * error)
}

/// The 97.5 % quantile of Student's distribution, within 1 % from 3 degrees of freedom on.
pub(crate) fn student(freedom: usize) -> f64 {
    match freedom {
        1 => 12.706,
        2 => 4.303,
        more => {
            // The first two terms of its expansion in 1 / freedom about the normal quantile.
            let (z, n) = (1.959_964_f64, more as f64);
            z + (z.powi(3) + z) / (4.0 * n)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

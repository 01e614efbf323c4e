//! Confidence in a mean by the method of batch means.
//!
//! Delays that follow each other depend on each other, so the variance of single ones says little
//! about the mean. The means of long batches are nearly independent. The number of batches stays
//! between `LEAST` and `MOST`: when there are `MOST`, each two become one of double length.

const MOST: usize = 64;
const LEAST: usize = MOST / 2;

/// Sums of batches of equal length.
#[derive(Clone, Debug)]
pub struct Batches {
    sums: Vec<f64>,
    /// Values in a full batch.
    length: u64,
    open_sum: f64,
    open: u64,
}

/// A mean, and how far the true one may be from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half of the width of the 95 % confidence interval; infinite if there are too few values.
    pub half_width: f64,
}

impl Default for Batches {
    fn default() -> Self {
        Self { sums: Vec::with_capacity(MOST), length: 1, open_sum: 0.0, open: 0 }
    }
}

impl Batches {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.open_sum += value;
        self.open += 1;
        if self.open == self.length {
            self.close();
        }
    }

    fn close(&mut self) {
        self.sums.push(self.open_sum);
        (self.open_sum, self.open) = (0.0, 0);
        if self.sums.len() == MOST {
            for pair in 0..LEAST {
                self.sums[pair] = self.sums[2 * pair] + self.sums[2 * pair + 1];
            }
            self.sums.truncate(LEAST);
            self.length *= 2;
        }
    }

    /// The mean of all values with its 95 % confidence interval.
    pub fn interval(&self) -> Interval {
        let batches = self.sums.len();
        let count = batches as u64 * self.length + self.open;
        let mean = (self.sums.iter().sum::<f64>() + self.open_sum) / count as f64;
        if batches < 2 {
            return Interval { mean, half_width: f64::INFINITY };
        }
        let length = self.length as f64;
        let center = self.sums.iter().sum::<f64>() / (batches as f64 * length);
        let squares: f64 = self.sums.iter().map(|sum| (sum / length - center).powi(2)).sum();
        let error = (squares / (batches as f64 - 1.0) / batches as f64).sqrt();
        Interval { mean, half_width: student(batches - 1) * error }
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

//! Correlation of ranks: whether one number tends to grow with another, however.
use crate::random::Random;

/// The rank of each value, from 1 on. Equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    for group in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let below = order.partition_point(|place| values[*place] < values[group[0]]);
        let mean = below as f64 + (group.len() + 1) as f64 / 2.0;
        group.iter().for_each(|place| ranks[*place] = mean);
    }
    ranks
}

/// Pearson's coefficient, or 0 where one of the two does not vary.
fn pearson(one: &[f64], other: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a, b) = (mean(one), mean(other));
    let [mut both, mut first, mut second] = [0.0; 3];
    for (x, y) in one.iter().zip(other) {
        both += (x - a) * (y - b);
        first += (x - a) * (x - a);
        second += (y - b) * (y - b);
    }
    if first * second > 0.0 { both / (first * second).sqrt() } else { 0.0 }
}

/// Spearman's coefficient: 1 if both always grow together, 0 if they have nothing to do with each
/// other.
pub fn spearman(one: &[f64], other: &[f64]) -> f64 {
    pearson(&ranks(one), &ranks(other))
}

/// The chance of a coefficient this far from 0 if the two had nothing to do with each other: the
/// share of `rounds` random orders that come as far.
pub fn by_chance(one: &[f64], other: &[f64], rounds: u32, seed: u64) -> f64 {
    let (one, mut other) = (ranks(one), ranks(other));
    let found = pearson(&one, &other).abs();
    let mut random = Random::new(seed, 0);
    let mut as_far = 1;
    for _ in 0..rounds {
        for last in (1..other.len()).rev() {
            other.swap(last, random.below(last as u32 + 1) as usize);
        }
        as_far += u32::from(pearson(&one, &other).abs() >= found);
    }
    f64::from(as_far) / f64::from(rounds + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_rank() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }

    #[test]
    fn any_growth_is_a_coefficient_of_one() {
        let one: Vec<_> = (1..50).map(f64::from).collect();
        let other: Vec<_> = one.iter().map(|x| x * x * x).collect();
        assert!((spearman(&one, &other) - 1.0).abs() < 1e-12);
        let falling: Vec<_> = one.iter().map(|x| -x).collect();
        assert!((spearman(&one, &falling) + 1.0).abs() < 1e-12);
        assert!(by_chance(&one, &other, 200, 1) < 0.01);
    }

    #[test]
    fn without_ties_it_is_the_sum_of_squared_differences() {
        // Spearman's own formula: 1 - 6 sum d^2 / n (n^2 - 1), here with d of 1, 1, 0, 1, 1.
        let (one, other) = ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 3.0, 5.0, 4.0]);
        assert!((spearman(&one, &other) - (1.0 - 6.0 * 4.0 / (5.0 * 24.0))).abs() < 1e-12);
    }

    #[test]
    fn of_unrelated_numbers_one_in_twenty_is_below_five_percent() {
        let mut random = Random::new(11, 0);
        let mut draw = || (0..30).map(|_| random.unit()).collect::<Vec<_>>();
        let below = (0..400).filter(|seed| by_chance(&draw(), &draw(), 99, *seed) <= 0.05).count();
        // 20 of 400, within four standard deviations of 4.4.
        assert!((3..=37).contains(&below), "{below}");
    }
}

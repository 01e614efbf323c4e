//! Figures of many numbers.

/// The number below which this share of the numbers is; of none, 0.
pub(super) fn quantile(numbers: &[f64], share: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

pub(super) fn median(numbers: &[f64]) -> f64 {
    quantile(numbers, 0.5)
}

pub(super) fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

/// Spearman's rank correlation: 1 where both grow together, -1 where one falls as the other grows,
/// 0 where one says nothing of the other.
pub(super) fn spearman(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (ranks(one), ranks(other));
    let (mid, of) = (mean(&one), mean(&other));
    let sum = |product: &dyn Fn(f64, f64) -> f64| -> f64 {
        one.iter().zip(&other).map(|(x, y)| product(x - mid, y - of)).sum()
    };
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    if spread > 0.0 { sum(&|x, y| x * y) / spread } else { 0.0 }
}

/// The place of each number among all, equal ones in the middle of their places.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..numbers.len()).collect();
    order.sort_by(|one, other| numbers[*one].total_cmp(&numbers[*other]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut first = 0;
    for equal in order.chunk_by(|one, other| numbers[*one] == numbers[*other]) {
        let rank = first as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|at| ranks[*at] = rank);
        first += equal.len();
    }
    ranks
}

/// Two limits that cut times into short, medium and long ones: halfway, as factors, between the
/// centres of three groups, each time being in the group whose centre is nearest.
pub(super) fn limits(times: &[f64]) -> [f64; 2] {
    let logs: Vec<_> = times.iter().map(|time| time.ln()).collect();
    let (least, most) = (quantile(&logs, 0.0), quantile(&logs, 1.0));
    let mut centres = [least, f64::midpoint(least, most), most];
    let between = |centres: [f64; 3]| {
        [f64::midpoint(centres[0], centres[1]), f64::midpoint(centres[1], centres[2])]
    };
    for _ in 0..100 {
        let limits = between(centres);
        let before = centres;
        for (class, centre) in centres.iter_mut().enumerate() {
            let own: Vec<_> =
                logs.iter().copied().filter(|log| class_of(*log, limits) == class).collect();
            if !own.is_empty() {
                *centre = mean(&own);
            }
        }
        if centres == before {
            break;
        }
    }
    between(centres).map(f64::exp)
}

/// 0 for a short time, 1 for a medium one, 2 for a long one.
pub(super) fn class_of(time: f64, [short, medium]: [f64; 2]) -> usize {
    usize::from(time > short) + usize::from(time > medium)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_sorted_numbers() {
        let numbers: Vec<_> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(
            [0.0, 0.5, 0.95, 1.0].map(|share| quantile(&numbers, share)),
            [0.0, 50.0, 95.0, 100.0]
        );
        assert_eq!((median(&[]), mean(&[]), mean(&[1.0, 2.0])), (0.0, 0.0, 1.5));
    }

    #[test]
    fn ranks_alone_count() {
        let one = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(spearman(&one, &[1.0, 10.0, 100.0, 1e9]), 1.0);
        assert_eq!(spearman(&one, &[0.0, -1.0, -2.0, -3.0]), -1.0);
        assert_eq!(spearman(&one, &[5.0; 4]), 0.0);
        // Ranks 0.5, 0.5, 2, 3: a covariance of 4.5 and spreads of 5 and 4.5.
        let tied = spearman(&one, &[1.0, 1.0, 2.0, 3.0]);
        assert!((tied - 4.5 / (5.0_f64 * 4.5).sqrt()).abs() < 1e-12, "{tied}");
    }

    #[test]
    fn classes_are_far_apart() {
        let times: Vec<_> = (0..900)
            .map(|at| 100.0 + f64::from(at % 10))
            .chain([2000.0, 2100.0, 1e6, 1.1e6])
            .collect();
        let limits = limits(&times);
        let classes = [105.0, 2050.0, 1e6].map(|time| class_of(time, limits));
        assert_eq!(classes, [0, 1, 2], "{limits:?}");
    }
}

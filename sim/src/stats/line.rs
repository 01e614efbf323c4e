//! Straight lines through points.

/// The line that fits points best, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Its value at zero.
    pub start: f64,
    /// Its gain for each step of one.
    pub slope: f64,
    /// The share of the points' variance that it explains, R^2.
    pub determination: f64,
}

/// Fits a line to points of which at least two differ in `x`, and in `y`.
pub fn fit(points: &[(f64, f64)]) -> Line {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        let (dx, dy) = (point.0 - x, point.1 - y);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    let slope = xy / xx;
    Line { start: y - slope * x, slope, determination: slope * xy / yy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_a_line_are_explained_wholly_and_others_in_part() {
        let line = fit(&[(0.0, 2.0), (1.0, 5.0), (4.0, 14.0)]);
        assert_eq!(line, Line { start: 2.0, slope: 3.0, determination: 1.0 });
        // Residuals of 1, -2 and 1 about a line of slope 3: 1 - 6 / (18 + 6).
        let bent = fit(&[(0.0, 1.0), (1.0, 1.0), (2.0, 7.0)]);
        assert!((bent.slope - 3.0).abs() < 1e-12 && (bent.determination - 0.75).abs() < 1e-12);
    }
}

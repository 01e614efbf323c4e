//! Slow calls, by which links are loaded during them.

use super::recording::Calls;
use super::stats::{mean, median, quantile};

/// Clusters at most.
const CLUSTERS_MAX: usize = 8;
/// Two calls further apart than this are of different clusters: a loaded link makes 1.
const APART: f64 = 0.7;

/// Calls during which the same links are loaded.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Their places.
    pub(super) calls: Vec<usize>,
    /// The columns that are loaded.
    pub(super) loaded: Vec<usize>,
}

/// Clusters of the slow calls, the one first that takes the most time. A load counts by how far it
/// exceeds what 95 % of the short calls have.
pub(super) fn clusters(calls: &Calls, short: &[usize], slow: &[usize]) -> Vec<Cluster> {
    let points = excesses(calls, short, slow);
    let mut centres = centres(&points);
    let mut of = vec![usize::MAX; points.len()];
    loop {
        let nearest: Vec<_> = points.iter().map(|point| nearest(point, &centres).0).collect();
        if nearest == of {
            break;
        }
        of = nearest;
        for (number, centre) in centres.iter_mut().enumerate() {
            let own = || points.iter().zip(&of).filter(|(_, of)| **of == number);
            for (column, at) in centre.iter_mut().enumerate().filter(|_| own().next().is_some()) {
                *at = mean(&own().map(|(point, _)| point[column]).collect::<Vec<_>>());
            }
        }
    }
    let cluster = |(number, centre): (usize, &Vec<f64>)| Cluster {
        calls: slow.iter().zip(&of).filter(|(_, of)| **of == number).map(|(at, _)| *at).collect(),
        loaded: (0..centre.len()).filter(|column| centre[*column] > 0.5).collect(),
    };
    let all = centres.iter().enumerate().map(cluster);
    let mut all: Vec<_> = all.filter(|cluster| !cluster.calls.is_empty()).collect();
    let time =
        |cluster: &Cluster| cluster.calls.iter().map(|at| calls.calls[*at].time).sum::<f64>();
    all.sort_by(|one, other| time(other).total_cmp(&time(one)));
    all
}

/// How much each load exceeds what is common, from 0 to 1.
fn excesses(calls: &Calls, short: &[usize], slow: &[usize]) -> Vec<Vec<f64>> {
    let mut points = vec![vec![]; slow.len()];
    for column in 0..calls.columns.len() {
        let of = |places: &[usize]| -> Vec<f64> {
            places.iter().map(|at| calls.calls[*at].loads[column]).collect()
        };
        let (common, slow) = (of(short), of(slow));
        let base = quantile(&common, 0.95);
        let beyond: Vec<_> =
            slow.iter().map(|load| load - base).filter(|load| *load > 0.0).collect();
        // What varies as it does anyway is no load.
        let unit = median(&beyond).max(2.0 * (base - median(&common))).max(1.0);
        for (point, load) in points.iter_mut().zip(slow) {
            point.push(((load - base) / unit).clamp(0.0, 1.0));
        }
    }
    points
}

/// Points that are far from each other: the first, then always the one farthest from those.
fn centres(points: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut centres: Vec<_> = points.first().cloned().into_iter().collect();
    while !centres.is_empty() && centres.len() < CLUSTERS_MAX {
        let distances = points.iter().map(|point| (nearest(point, &centres).1, point));
        match distances.max_by(|one, other| one.0.total_cmp(&other.0)) {
            Some((distance, point)) if distance > APART * APART => centres.push(point.clone()),
            _ => break,
        }
    }
    centres
}

/// The nearest centre, and the square of its distance.
fn nearest(point: &[f64], centres: &[Vec<f64>]) -> (usize, f64) {
    let distance = |centre: &Vec<f64>| -> f64 {
        point.iter().zip(centre).map(|(one, other)| (one - other).powi(2)).sum()
    };
    let distances = centres.iter().map(distance).enumerate();
    distances.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((0, f64::INFINITY))
}

//! How well loads of links foretell the time of a call.

use super::recording::{Call, Calls};
use super::stats::{class_of, limits, median, spearman};

/// Calls that are most alike, whose times foretell the one of a call.
const NEIGHBOURS: usize = 5;
/// Calls that are learned from at most: the last ones.
const LEARNED_MAX: usize = 4096;

/// How well it went with calls that nothing was learned from.
#[derive(Debug)]
pub(super) struct Accuracy {
    pub(super) learned: usize,
    pub(super) held_out: usize,
    /// Share of calls whose class, short, medium or long, was foretold.
    pub(super) classes: f64,
    /// The share of a guess that always names the most frequent class.
    pub(super) blind: f64,
    /// Half of the foretold times are wrong by less than this share of the true one.
    pub(super) error: f64,
}

/// Learns from the first three quarters of the calls, foretells the times of the others from those
/// loads that may be looked at.
pub(super) fn accuracy(calls: &Calls, may: impl Fn(&str) -> bool) -> Accuracy {
    let cut = calls.len() * 3 / 4;
    let learned = &calls.calls[cut.saturating_sub(LEARNED_MAX)..cut];
    let held_out = &calls.calls[cut..];
    let times: Vec<_> = learned.iter().map(|call| call.time).collect();
    let columns = (0..calls.columns.len()).filter(|at| may(&calls.columns[*at]));
    let scale = |column: usize| {
        let loads: Vec<_> = learned.iter().map(|call| call.loads[column]).collect();
        let most = loads.iter().fold(0.0_f64, |most, load| most.max(load.ln_1p()));
        // What says little of the time counts little.
        (column, if most > 0.0 { spearman(&loads, &times) / most } else { 0.0 })
    };
    let scales: Vec<_> = columns.map(scale).collect();
    let seen: Vec<_> = learned.iter().map(|call| Seen::new(call, &scales)).collect();
    let foretold = held_out.iter().map(|call| foretell(&Seen::new(call, &scales), &seen));
    let foretold: Vec<_> = foretold.collect();
    let limits = limits(&times);
    let right = held_out
        .iter()
        .zip(&foretold)
        .filter(|(call, foretold)| class_of(call.time, limits) == class_of(**foretold, limits));
    let count = |class| times.iter().filter(|time| class_of(**time, limits) == class).count();
    let usual = (0..3).max_by_key(|class| count(*class)).unwrap_or(0);
    let blind = held_out.iter().filter(|call| class_of(call.time, limits) == usual);
    let error = |(call, foretold): (&Call, &f64)| (foretold - call.time).abs() / call.time;
    let errors: Vec<_> = held_out.iter().zip(&foretold).map(error).collect();
    let share = |many: usize| many as f64 / held_out.len().max(1) as f64;
    Accuracy {
        learned: learned.len(),
        held_out: held_out.len(),
        classes: share(right.count()),
        blind: share(blind.count()),
        error: median(&errors),
    }
}

/// A call as it is compared with others.
struct Seen<'a> {
    call: &'a Call,
    /// Its loads, each by how much it says.
    loads: Vec<f64>,
}

impl<'a> Seen<'a> {
    fn new(call: &'a Call, scales: &[(usize, f64)]) -> Self {
        let loads = scales.iter().map(|(column, scale)| call.loads[*column].ln_1p() * scale);
        Self { call, loads: loads.collect() }
    }

    /// The square of how far another one is; another schedule is as far as a load that says all.
    fn distance(&self, other: &Seen<'_>) -> f64 {
        let schedule = if other.call.schedule == self.call.schedule { 0.0 } else { 1.0 };
        let loads = self.loads.iter().zip(&other.loads).map(|(one, other)| (one - other).powi(2));
        schedule + loads.sum::<f64>()
    }
}

/// The median time of the calls that are most alike.
fn foretell(call: &Seen<'_>, learned: &[Seen<'_>]) -> f64 {
    let distance = |one: &Seen<'_>| (call.distance(one), one.call.time);
    let mut near: Vec<_> = learned.iter().map(distance).collect();
    let many = NEIGHBOURS.min(near.len());
    if many < near.len() {
        near.select_nth_unstable_by(many, |one, other| one.0.total_cmp(&other.0));
    }
    median(&near[..many].iter().map(|(_, time)| *time).collect::<Vec<_>>())
}

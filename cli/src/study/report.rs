//! A study as text.

mod page;

use std::fmt::Write;

use super::cluster::{Cluster, clusters};
use super::predict::{Accuracy, accuracy};
use super::recording::{Calls, Kind, parts};
use super::stats::{class_of, limits, median, quantile, spearman};

/// Names of the classes of times.
const CLASSES: [&str; 3] = ["short", "medium", "long"];
/// Columns that are printed though they do not correlate.
const SHOWN: usize = 10;

/// The findings about calls of one kind.
pub(super) struct Study<'a> {
    calls: &'a Calls,
    limits: [f64; 2],
    /// Columns and their correlation with the time, the greatest first.
    ranked: Vec<(usize, f64)>,
    /// The least correlation that is not by chance.
    chance: f64,
    total: f64,
    clusters: Vec<Cluster>,
    from_all: Accuracy,
    from_before: Accuracy,
}

/// Which kinds of calls there are.
pub(super) fn kinds(all: &Calls) -> String {
    let mut text =
        format!("{:24} {:9} {:>7} {:>11} {:>11}\n", "", "", "calls", "median us", "95 % us");
    for summary in all.kinds() {
        for (schedule, times) in &summary.schedules {
            let (many, middle, most) = (times.len(), median(times), quantile(times, 0.95));
            let _ = writeln!(
                text,
                "{:24} {schedule:9} {many:7} {:11.1} {:11.1}",
                summary.kind.to_string(),
                middle / 1e3,
                most / 1e3
            );
        }
    }
    text
}

impl<'a> Study<'a> {
    pub(super) fn make(calls: &'a Calls) -> Self {
        let times = calls.times();
        let limits = limits(&times);
        let correlation = |at| (at, spearman(&calls.column(at), &times));
        let mut ranked: Vec<_> = (0..calls.columns.len()).map(correlation).collect();
        ranked.sort_by(|one, other| other.1.abs().total_cmp(&one.1.abs()));
        let is_sent =
            |at: &usize| parts(&calls.columns[*at]).is_some_and(|(what, _)| what == "sent");
        let sent: Vec<_> = (0..calls.columns.len()).filter(is_sent).collect();
        let traffic = calls.calls.iter().map(|call| sent.iter().map(|at| call.loads[*at]).sum());
        let total = spearman(&traffic.collect::<Vec<f64>>(), &times);
        let (short, slow): (Vec<_>, Vec<_>) =
            (0..calls.len()).partition(|at| class_of(times[*at], limits) == 0);
        let clusters = clusters(calls, &short, &slow);
        let is_before = |column: &str| parts(column).is_some_and(|(what, _)| what == "waiting");
        let (from_all, from_before) = (accuracy(calls, |_| true), accuracy(calls, is_before));
        let chance = 4.0 / (calls.len() as f64).sqrt();
        Self { calls, limits, ranked, chance, total, clusters, from_all, from_before }
    }

    pub(super) fn text(&self, kind: &Kind) -> String {
        let times = self.calls.times();
        let mut text = format!("\n{kind}: {} calls", times.len());
        if self.calls.left_out > 0 {
            let _ = write!(text, ", {} left out that not all have recorded", self.calls.left_out);
        }
        let (middle, most) = (median(&times), quantile(&times, 0.95));
        let tail: f64 = times.iter().filter(|time| **time > most).sum();
        let share = 100.0 * tail / times.iter().sum::<f64>();
        let _ = writeln!(
            text,
            "\nmedian {:.1} us, 95 % within {:.1} us; the others take {share:.0} % of the time",
            middle / 1e3,
            most / 1e3
        );
        let bounds = [self.limits[0], self.limits[1], quantile(&times, 1.0)];
        for (class, (name, bound)) in CLASSES.iter().zip(bounds).enumerate() {
            let many = times.iter().filter(|time| class_of(**time, self.limits) == class).count();
            let _ = writeln!(text, "  {name:6} {many:6} calls, up to {:.1} us", bound / 1e3);
        }
        if self.calls.columns.is_empty() {
            // As between members of one host, who have none.
            return text + "no link's load differs from call to call: no link is to blame\n";
        }
        text + &self.correlations() + &self.slow(&times) + &self.foretold()
    }

    fn correlations(&self) -> String {
        let mut text = format!(
            "correlation of loads with the time, by ranks (*: beyond chance, {:.3}):\n",
            self.chance
        );
        for (place, (column, correlation)) in self.ranked.iter().enumerate() {
            let is_sure = correlation.abs() > self.chance;
            if is_sure || place < SHOWN {
                let (mark, name) = (if is_sure { '*' } else { ' ' }, &self.calls.columns[*column]);
                let _ = writeln!(text, "{mark} {name:24} {correlation:6.3}");
            }
        }
        text + &format!("  {:24} {:6.3}\n", "all frames sent", self.total)
    }

    fn slow(&self, times: &[f64]) -> String {
        let mut text = "slow calls (not short), by the links that are loaded then:\n".to_owned();
        let total: f64 = times.iter().sum();
        for cluster in &self.clusters {
            let own: Vec<_> = cluster.calls.iter().map(|at| times[*at]).collect();
            let _ = writeln!(
                text,
                "  {:6} calls, median {:.1} us, {:.0} % of the time: {}",
                own.len(),
                median(&own) / 1e3,
                100.0 * own.iter().sum::<f64>() / total,
                self.names(cluster)
            );
        }
        text
    }

    fn names(&self, cluster: &Cluster) -> String {
        let names = cluster.loaded.iter().map(|at| self.calls.columns[*at].as_str());
        let names: Vec<_> = names.collect();
        if names.is_empty() { "no link in particular".to_owned() } else { names.join(" ") }
    }

    fn foretold(&self) -> String {
        let mut text = format!(
            "foretold for the last {} calls from the {} before:\n",
            self.from_all.held_out, self.from_all.learned
        );
        let from = [("all loads", &self.from_all), ("what waits before", &self.from_before)];
        for (name, accuracy) in from {
            let Accuracy { classes, blind, error, .. } = accuracy;
            let _ = writeln!(
                text,
                "  from {name:18} {:.1} % of classes right (blind: {:.1} %), half of the times \
                 within {:.1} %",
                100.0 * classes,
                100.0 * blind,
                100.0 * error
            );
        }
        text
    }
}

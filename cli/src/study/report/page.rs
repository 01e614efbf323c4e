//! A study as a page for a browser, or as files: what is printed of it, with charts.

use anyhow::Result;

use super::{CLASSES, SHOWN, Study};
use crate::page::{
    Axis, Bar, Bars, Chart, Drawing, Page, Plot, Series, Shown, Table, Unit, made_by,
};
use crate::study::cluster::Cluster;
use crate::study::predict::Accuracy;
use crate::study::recording::{Calls, Kind};
use crate::study::stats::{class_of, mean, median, quantile};

/// Short calls that are drawn at most; of more, every second one, and so on.
const SHORT_MAX: usize = 2000;
/// Correlations that are drawn at most.
const BARS_MAX: usize = 24;
/// Links that are drawn for each group of slow calls at most.
const LINKS_MAX: usize = 8;

/// Explanations for a reader who has never seen the page.
const READING: [&str; 4] = [
    "A call is one collective of a group, such as a sum over all members; it takes as long as its \
     slowest member.",
    "Calls are short, medium or long, cut where their times part. A few long ones may take most of \
     the time.",
    "A correlation tells whether calls are slower while a link has more to do: 1 is always, 0 is \
     never. Bars that end before the upright mark may be chance.",
    "sent:a>b is what member a sends to b during a call; waiting:a>b is what waits when it begins.",
];

impl Study<'_> {
    /// The page on calls of this kind, of all that were recorded.
    pub(in crate::study) fn page(&self, all: &Calls, kind: &Kind) -> Result<Page> {
        let mut page = Page::new(&format!("ayre study of {kind}"), &made_by());
        page.heading("How to read this");
        page.list(&READING);
        page.heading("Which calls there are");
        page.table(&kinds(all));
        page.heading("How long they took");
        page.charts(&[self.times()])?;
        if self.calls.columns.is_empty() {
            page.text("No link's load differs from call to call: no link is to blame.");
            return Ok(page);
        }
        page.heading("Which loads of links go with slow calls");
        page.charts(&[self.correlations_drawn()])?;
        page.heading("Slow calls, by the links that are loaded then");
        page.table(&self.slow_calls());
        page.charts(&self.loads_of_slow_calls())?;
        page.heading("How well loads foretell the time");
        page.table(&self.accuracies());
        Ok(page)
    }

    /// The charts of the page, each with a name for its file.
    pub(in crate::study) fn charts(&self) -> Vec<(String, Chart)> {
        let mut charts = vec![("times".to_owned(), self.times())];
        if !self.calls.columns.is_empty() {
            charts.push(("correlations".to_owned(), self.correlations_drawn()));
        }
        let groups = self.loads_of_slow_calls().into_iter().zip(1..);
        charts.extend(groups.map(|(chart, number)| (format!("slow-{number}"), chart)));
        charts
    }

    fn times(&self) -> Chart {
        let times = self.calls.times();
        let of_class = |class: usize| {
            let all = times.iter().enumerate();
            all.filter(move |(_, time)| class_of(**time, self.limits) == class)
        };
        let mut numbers = Table::new(["class", "calls", "up to", "share of the time"]);
        let total: f64 = times.iter().sum();
        let bounds = [self.limits[0], self.limits[1], quantile(&times, 1.0)];
        let mut series = vec![];
        for (class, (name, bound)) in CLASSES.iter().zip(bounds).enumerate() {
            let own: f64 = of_class(class).map(|(_, time)| time).sum();
            let many = of_class(class).count();
            let share = format!("{:.0} %", 100.0 * own / total);
            let bound = Unit::Nanoseconds.label(bound);
            numbers.lines.push(vec![(*name).to_owned(), many.to_string(), bound, share]);
            let step = if class == 0 { many.div_ceil(SHORT_MAX).max(1) } else { 1 };
            let points = of_class(class).step_by(step).map(|(at, time)| (at as f64, *time));
            let name = if step > 1 { format!("{name}, one in {step}") } else { (*name).to_owned() };
            series.push(Series { name, shown: Shown::Dots, points: points.collect() });
        }
        let x = Axis::new("call", Unit::Count);
        let y = Axis::new("time", Unit::Nanoseconds);
        let drawing = Drawing::Plot(Plot { x, y, series });
        Chart { title: "Time of each call".to_owned(), drawing, numbers }
    }

    fn correlations_drawn(&self) -> Chart {
        let mut numbers = Table::new(["load", "correlation", "beyond chance"]);
        let mut bars = vec![];
        for (place, (column, correlation)) in self.ranked.iter().enumerate() {
            let is_sure = correlation.abs() > self.chance;
            let (name, told) = (self.calls.columns[*column].clone(), format!("{correlation:.3}"));
            let sure = if is_sure { "yes" } else { "no" }.to_owned();
            numbers.lines.push(vec![name.clone(), told.clone(), sure]);
            if place < BARS_MAX && (is_sure || place < SHOWN) {
                bars.push(Bar { name, value: *correlation, told });
            }
        }
        let total = format!("{:.3}", self.total);
        numbers.lines.push(vec!["all frames sent".to_owned(), total, String::new()]);
        let axis = Axis::new("rank correlation with the time", Unit::Count);
        let mark = Some(("what chance may give".to_owned(), self.chance));
        let drawing = Drawing::Bars(Bars { axis, most: f64::INFINITY, mark, bars });
        Chart { title: "Correlation of loads with the time".to_owned(), drawing, numbers }
    }

    /// A chart for each group of slow calls.
    fn loads_of_slow_calls(&self) -> Vec<Chart> {
        let times = self.calls.times();
        let is_short = |at: &usize| class_of(times[*at], self.limits) == 0;
        let short: Vec<_> = (0..times.len()).filter(is_short).collect();
        let groups = self.clusters.iter().zip(1..);
        groups.map(|(cluster, number)| self.loads_of(cluster, number, &short)).collect()
    }

    /// The links whose load during the calls of a group exceeds that of short calls most.
    fn loads_of(&self, cluster: &Cluster, number: usize, short: &[usize]) -> Chart {
        let load = |column: usize, calls: &[usize]| {
            let loads = calls.iter().map(|at| self.calls.calls[*at].loads[column]);
            mean(&loads.collect::<Vec<_>>())
        };
        let link = |column| {
            let most = quantile(&self.calls.column(column), 0.99).max(1.0);
            let loads = [load(column, &cluster.calls), load(column, short)];
            (column, loads.map(|load| load / most), loads)
        };
        let mut links: Vec<_> = (0..self.calls.columns.len()).map(link).collect();
        let beyond = |[slow, short]: [f64; 2]| slow - short;
        links.sort_by(|one, other| beyond(other.1).total_cmp(&beyond(one.1)));
        links.truncate(LINKS_MAX);
        let mut numbers = Table::new(["load", "mean in these calls", "mean in short calls"]);
        let bar = |(column, [share, _], loads): (usize, [f64; 2], [f64; 2])| {
            let name = self.calls.columns[column].clone();
            let [slow, short] = loads.map(|load| Unit::Count.label(load));
            let told = format!("{slow} (short: {short})");
            numbers.lines.push(vec![name.clone(), slow, short]);
            Bar { name, value: share.min(1.0), told }
        };
        let bars = links.into_iter().map(bar).collect();
        let own: Vec<_> = cluster.calls.iter().map(|at| self.calls.calls[*at].time).collect();
        let (many, middle) = (own.len(), Unit::Nanoseconds.label(median(&own)));
        let title = format!("Loads of slow calls, group {number}: {many} calls, median {middle}");
        let axis = Axis::new("mean load / what 99 % of all calls stay below", Unit::Count);
        let drawing = Drawing::Bars(Bars { axis, most: 1.0, mark: None, bars });
        Chart { title, drawing, numbers }
    }

    fn slow_calls(&self) -> Table {
        let times = self.calls.times();
        let total: f64 = times.iter().sum();
        let mut table = Table::new(["calls", "median", "share of the time", "loaded links"]);
        for cluster in &self.clusters {
            let own: Vec<_> = cluster.calls.iter().map(|at| times[*at]).collect();
            table.lines.push(vec![
                own.len().to_string(),
                Unit::Nanoseconds.label(median(&own)),
                format!("{:.0} %", 100.0 * own.iter().sum::<f64>() / total),
                self.names(cluster),
            ]);
        }
        table
    }

    fn accuracies(&self) -> Table {
        let mut table =
            Table::new(["from", "classes right", "right by chance", "half of the times within"]);
        for (name, accuracy) in
            [("all loads", &self.from_all), ("what waits before", &self.from_before)]
        {
            let Accuracy { classes, blind, error, .. } = accuracy;
            let shares = [classes, blind, error].map(|share| format!("{:.1} %", 100.0 * share));
            table.lines.push([name.to_owned()].into_iter().chain(shares).collect());
        }
        table
    }
}

fn kinds(all: &Calls) -> Table {
    let mut table = Table::new(["call", "schedule", "calls", "median", "95 % within"]);
    for summary in all.kinds() {
        for (schedule, times) in &summary.schedules {
            let [middle, most] = [0.5, 0.95].map(|share| quantile(times, share));
            let [middle, most] = [middle, most].map(|time| Unit::Nanoseconds.label(time));
            let count = times.len().to_string();
            let (kind, schedule) = (summary.kind.to_string(), schedule.clone());
            table.lines.push(vec![kind, schedule, count, middle, most]);
        }
    }
    table
}

//! The page that `--report` writes: what was measured beside the machine's own limits, as charts.

use std::collections::BTreeSet;

use anyhow::Result;

use super::kept::Figure;
use super::languages::Languages;
use super::peers::{Compared, Comparison};
use super::report::{human_size, three_digits};
use crate::info;
use crate::page::{Axis, Bar, Bars, Chart, Drawing, Page, Plot, Series, Shown, Table, Unit};

/// Nanoseconds of a line's way up to which two cores are near each other.
const NEAR_NS: f64 = 150.0;

/// Ratios up to here are told apart by the lengths of their bars.
const RATIO_MAX: f64 = 10.0;

/// How the figures came about.
pub(super) struct Setting {
    /// The two ends of a measurement: two processes of this host, or two hosts.
    pub(super) between: &'static str,
    /// Whether addresses and interfaces of this machine belong to it.
    pub(super) is_network: bool,
    pub(super) bind: String,
}

/// Explanations for a reader who has never seen the page.
const READING: [&str; 5] = [
    "Each figure stands beside a limit of this very machine: the shortest program that does as \
     much without Ayre, measured by turns with it. The limit is the dashed grey line, and the \
     upright mark where there are bars.",
    "A latency is the time of one operation, most often of one way: lower is better, and no lower \
     than the limit. A bandwidth or a rate is how much goes in a second: higher is better.",
    "Both axes are logarithmic: each mark is several times the one before, so that small and large \
     sizes can be seen in one picture.",
    "A figure is the median of its repetitions. The 99th percentile in the tables is what all but \
     one in a hundred operations stay below.",
    "Only figures of one page are comparable: another run, another minute even, may find the \
     processors farther from each other.",
];

/// The page up to the figures.
pub(super) fn begun() -> Page {
    let mut page =
        Page::new(&format!("ayre perf on {}", info::host_name()), &crate::page::made_by());
    page.heading("How to read this");
    page.list(&READING);
    page
}

/// Adds the charts of all figures, and the figures themselves.
pub(super) fn add_figures(page: &mut Page, figures: &[Figure]) -> Result<()> {
    let is_raw = |figure: &&Figure| figure.path == "raw";
    // Limits are drawn beside what they limit, and alone only where they were asked for alone.
    let has_others = !figures.iter().all(|figure| is_raw(&figure));
    let drawn: Vec<_> = figures.iter().filter(|one| !(has_others && is_raw(one))).collect();
    let groups = groups(&drawn);
    let (swept, single): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| sizes(group).len() > 1);
    for (heading, metric) in
        [("Latency by size", "latency"), ("Bandwidth by size", "bandwidth"), ("Rates", "rate")]
    {
        let of_metric = swept.iter().filter(|group| group[0].metric == metric);
        let charts: Vec<_> = of_metric.map(|group| by_size(group)).collect();
        if !charts.is_empty() {
            page.heading(heading);
            page.charts(&charts)?;
        }
    }
    let single: Vec<_> = single.into_iter().flatten().collect();
    let charts: Vec<_> =
        [ratios(&single, true), ratios(&single, false)].into_iter().flatten().collect();
    if !charts.is_empty() {
        page.heading("Operations of one size");
        page.charts(&charts)?;
    }
    page.heading("All figures");
    page.folded(&format!("{} figures", figures.len()), &table(figures.iter()));
    Ok(())
}

/// Adds what other libraries have reached by turns with Ayre.
pub(super) fn add_comparison(page: &mut Page, comparison: &Comparison) -> Result<()> {
    page.heading("Beside other libraries");
    page.text(&format!(
        "Messages between two processes of this host: {} rounds in which each library's own tool \
         ran once, by turns with Ayre; the medians of the rounds. The tools do not count in quite \
         the same way, so that a few per cent tell nothing.",
        comparison.rounds
    ));
    let charts = [true, false].map(|is_latency| {
        let own: Vec<_> =
            comparison.series.iter().filter(|one| one.is_latency == is_latency).collect();
        (!own.is_empty()).then(|| beside(&own, is_latency))
    });
    page.charts(&charts.into_iter().flatten().collect::<Vec<_>>())?;
    page.facts(comparison.told.iter().map(|(name, told)| (name, told)));
    Ok(())
}

/// Adds the same program in all languages.
pub(super) fn add_languages(page: &mut Page, languages: &Languages) {
    page.heading("In three languages");
    page.text(&format!(
        "The same program in each language, as two processes of this host: {} rounds by turns, \
         and the medians. The last columns say how much longer an operation takes than in Rust.",
        languages.rounds
    ));
    page.table(&languages.table());
    page.facts(languages.absent.iter().map(|(name, why)| (name, why)));
}

/// The chart of latencies alone, as an SVG file.
pub(super) fn latency_file(comparison: &Comparison) -> Result<String> {
    let own: Vec<_> = comparison.series.iter().filter(|one| one.is_latency).collect();
    let of_machine = info::facts().into_iter().find(|(name, _)| *name == "processor");
    let machine = of_machine.map_or_else(String::new, |(_, told)| format!("{told}. "));
    let placement = placement(&comparison.figures);
    let placement = placement.map_or_else(String::new, |told| format!("Processors: {told}. "));
    let made_by = crate::page::made_by();
    beside(&own, true).file(&format!("{machine}{placement}{made_by}"))
}

/// The medians of that chart: a line for each size, a column for each library.
pub(super) fn latency_table(comparison: &Comparison) -> Table {
    let own: Vec<_> =
        comparison.series.iter().filter(|one| one.is_latency && !one.is_limit).collect();
    let sizes: BTreeSet<_> = own.iter().flat_map(|one| one.readings.keys().copied()).collect();
    let names = own.iter().map(|one| one.name.as_str());
    let mut table = Table::new(["one way"].into_iter().chain(names));
    for size in sizes {
        let time = |one: &&Compared| {
            let median = one.medians().find(|(of, _)| *of == size);
            median.map_or_else(String::new, |(_, time)| Unit::Nanoseconds.label(time))
        };
        let label = Unit::Bytes.label(size as f64);
        table.lines.push([label].into_iter().chain(own.iter().map(time)).collect());
    }
    table
}

/// Series of all libraries, and a table of them with the least and the greatest reading.
fn beside(compared: &[&Compared], is_latency: bool) -> Chart {
    let (title, name, unit) = match is_latency {
        true => ("Latency of a message", "time of one way", Unit::Nanoseconds),
        false => ("Bandwidth of messages in a row", "bytes a second", Unit::Bandwidth),
    };
    let mut numbers = Table::new(["series", "size", "median", "least", "greatest", "rounds"]);
    let mut series = vec![];
    // Limits last, so that the colours of the others do not depend on them.
    let by_kind = [false, true].map(|kind| compared.iter().filter(move |one| one.is_limit == kind));
    for one in by_kind.into_iter().flatten() {
        let points: Vec<_> = one.medians().map(|(size, value)| (size as f64, value)).collect();
        for ((size, value), readings) in one.medians().zip(one.readings.values()) {
            let least = readings.iter().copied().fold(f64::INFINITY, f64::min);
            let most = readings.iter().copied().fold(0.0, f64::max);
            let mut line = vec![one.name.clone(), Unit::Bytes.label(size as f64)];
            line.extend([value, least, most].map(|value| unit.label(value)));
            line.push(readings.len().to_string());
            numbers.lines.push(line);
        }
        let shown = if one.is_limit { Shown::Limit } else { Shown::Line };
        series.push(Series { name: one.name.clone(), shown, points });
    }
    let plot = Plot { x: Axis::new("bytes", Unit::Bytes), y: Axis::new(name, unit), series };
    Chart { title: title.to_owned(), drawing: Drawing::Plot(plot), numbers }
}

/// Adds what the figures were taken on.
pub(super) fn add_machine(page: &mut Page, setting: &Setting, figures: &[Figure]) {
    page.heading("Where this was measured");
    let placement = placement(figures).unwrap_or_else(|| "not measured in this run".to_owned());
    let mut facts = vec![
        ("between".to_owned(), setting.between.to_owned()),
        ("placement".to_owned(), placement),
        ("cores of the ranks".to_owned(), setting.bind.clone()),
    ];
    let of_network = |name: &str| name.starts_with("interface ") || name.starts_with("found by");
    let known = info::facts().into_iter();
    facts.extend(known.filter(|(name, _)| setting.is_network || !of_network(name)));
    page.facts(facts);
}

/// How far the two cores are from each other, by what a line of memory takes from one to the other.
fn placement(figures: &[Figure]) -> Option<String> {
    let of_line = |figure: &&Figure| figure.raw_op == "raw-pingpong" && figure.size == 8;
    let times = figures.iter().filter(of_line).map(|figure| figure.raw);
    let (least, most) = times
        .fold((f64::INFINITY, 0.0_f64), |(least, most), time| (least.min(time), most.max(time)));
    let verdict = match (least, most) {
        (_, most) if most <= 0.0 => return None,
        (_, most) if most <= NEAR_NS => "near each other",
        (least, _) if least > NEAR_NS => "far from each other",
        _ => "near in some minutes of this run and far in others",
    };
    let time = |ns| Unit::Nanoseconds.label(ns);
    Some(format!(
        "{verdict}: 8 bytes take {} to {} one way between the two cores (near is up to {})",
        time(least),
        time(most),
        time(NEAR_NS)
    ))
}

/// Figures that belong into one chart: of one operation beside one limit.
fn groups<'a>(figures: &[&'a Figure]) -> Vec<Vec<&'a Figure>> {
    let mut groups: Vec<Vec<&Figure>> = vec![];
    for &figure in figures {
        let same = |group: &&mut Vec<&Figure>| {
            let first = group[0];
            (&first.op, &first.raw_op, &first.metric)
                == (&figure.op, &figure.raw_op, &figure.metric)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    groups
}

/// The sizes that have a place on an axis of powers.
fn sizes(group: &[&Figure]) -> Vec<usize> {
    let mut sizes: Vec<_> = group.iter().map(|one| one.size).filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// One operation over its sizes: a line for each way of executing it, and the limit.
fn by_size(group: &[&Figure]) -> Chart {
    let first = group[0];
    let way = |figure: &Figure| (figure.path.clone(), figure.ranks);
    let mut ways: Vec<_> = group.iter().map(|figure| way(figure)).collect();
    ways.dedup();
    ways.sort();
    ways.dedup();
    let mut series = vec![];
    for one in &ways {
        let own = group.iter().filter(|figure| way(figure) == *one);
        let points = own.map(|figure| (figure.size as f64, figure.value)).collect();
        let ranks = if ways.len() > 1 { format!(", {} ranks", one.1) } else { String::new() };
        let name = format!("{}, {}{ranks}", first.op, one.0);
        series.push(Series { name, shown: Shown::Line, points });
    }
    if first.path != "raw" {
        let own = group.iter().filter(|figure| way(figure) == ways[0]);
        let points = own.map(|figure| (figure.size as f64, figure.raw)).collect();
        let name = format!("limit: {}", first.raw_op.trim_start_matches("raw-"));
        series.push(Series { name, shown: Shown::Limit, points });
    }
    let (name, unit) = axis_of(first);
    let plot = Plot { x: Axis::new("bytes", Unit::Bytes), y: Axis::new(name, unit), series };
    let path = if ways.len() == 1 { format!(", {}", ways[0].0) } else { String::new() };
    let title = format!("{}{path}", first.op);
    Chart { title, drawing: Drawing::Plot(plot), numbers: table(group.iter().copied()) }
}

fn axis_of(figure: &Figure) -> (&'static str, Unit) {
    match figure.metric.as_str() {
        "latency" => ("time of one operation", Unit::Nanoseconds),
        "bandwidth" => ("bytes a second", Unit::Bandwidth),
        _ => ("operations a second", Unit::Rate),
    }
}

/// Figures of one size only: how many times its limit each takes, or which share of its
/// limit each reaches.
fn ratios(figures: &[&Figure], are_latencies: bool) -> Option<Chart> {
    let is_drawn = |figure: &&&Figure| match figure.metric.as_str() {
        "latency" => are_latencies,
        "rate" | "bandwidth" => !are_latencies,
        _ => false,
    };
    let own: Vec<_> = figures.iter().filter(is_drawn).copied().collect();
    let bar = |figure: &&Figure| Bar {
        name: named(figure),
        value: figure.ratio,
        told: format!("{}, {} x", told(figure), three_digits(figure.ratio)),
    };
    let (title, axis) = match are_latencies {
        true => ("Times, in multiples of the limit: shorter is better", "time / limit"),
        false => ("Rates and bandwidths, as shares of the limit: longer is better", "rate / limit"),
    };
    let bars = Bars {
        axis: Axis::new(axis, Unit::Count),
        most: RATIO_MAX,
        mark: Some(("the limit of this machine".to_owned(), 1.0)),
        bars: own.iter().map(bar).collect(),
    };
    let numbers = table(own.iter().copied());
    (!own.is_empty()).then(|| Chart {
        title: title.to_owned(),
        drawing: Drawing::Bars(bars),
        numbers,
    })
}

fn named(figure: &Figure) -> String {
    let size = if figure.size > 0 {
        format!(", {}", Unit::Bytes.label(figure.size as f64))
    } else {
        String::new()
    };
    let ranks = if figure.ranks > 2 { format!(", {} ranks", figure.ranks) } else { String::new() };
    let path = if figure.path == "direct" { String::new() } else { format!(", {}", figure.path) };
    format!("{}{size}{path}{ranks}", figure.op)
}

/// A figure with its unit.
fn told(figure: &Figure) -> String {
    axis_of(figure).1.label(figure.value)
}

/// The figures as they are printed without a page.
fn table<'a>(figures: impl Iterator<Item = &'a Figure>) -> Table {
    let mut table = Table::new([
        "operation",
        "path",
        "ranks",
        "size",
        "value",
        "unit",
        "limit",
        "name of limit",
        "ratio",
        "p50 ns",
        "p99 ns",
        "max ns",
        "repetitions",
    ]);
    for figure in figures {
        table.lines.push(vec![
            figure.op.clone(),
            figure.path.clone(),
            figure.ranks.to_string(),
            human_size(figure.size),
            three_digits(figure.value),
            figure.unit.clone(),
            three_digits(figure.raw),
            figure.raw_op.trim_start_matches("raw-").to_owned(),
            format!("{:.2}", figure.ratio),
            three_digits(figure.p50_ns),
            three_digits(figure.p99_ns),
            three_digits(figure.max_ns),
            figure.repetitions.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(op: &str, size: usize, raw_op: &str, [value, raw]: [f64; 2]) -> Figure {
        Figure {
            op: op.to_owned(),
            path: "direct".to_owned(),
            size,
            ranks: 2,
            metric: "latency".to_owned(),
            unit: "ns".to_owned(),
            value,
            raw,
            raw_op: raw_op.to_owned(),
            ratio: value / raw,
            p50_ns: value,
            p99_ns: 2.0 * value,
            max_ns: 9.0 * value,
            repetitions: 31,
        }
    }

    #[test]
    fn operations_are_drawn_beside_their_limits() {
        let figures = [
            figure("put-latency", 8, "raw-put", [71.5, 64.0]),
            figure("put-latency", 64, "raw-put", [80.25, 66.0]),
            figure("fetch-add-latency", 8, "raw-atomic", [12.0, 10.0]),
            Figure { path: "raw".to_owned(), ..figure("raw-put", 8, "raw-put", [64.0, 64.0]) },
        ];
        let drawn: Vec<_> = figures.iter().collect();
        let groups = groups(&drawn);
        let sizes: Vec<_> = groups.iter().map(|group| group.len()).collect();
        assert_eq!(sizes, [2, 1, 1]);
        let chart = by_size(&groups[0]);
        let Drawing::Plot(plot) = &chart.drawing else { panic!("a plot") };
        let points: Vec<_> = plot.series.iter().map(|series| series.points.clone()).collect();
        assert_eq!(points, [[(8.0, 71.5), (64.0, 80.25)], [(8.0, 64.0), (64.0, 66.0)]]);
        assert_eq!(chart.numbers.lines[0][3..7], ["8", "71.5", "ns", "64.0"]);
        let chart = ratios(&drawn[2..3], true).unwrap();
        let Drawing::Bars(bars) = &chart.drawing else { panic!("bars") };
        assert_eq!((bars.bars.len(), bars.bars[0].value), (1, 1.2));
        assert!(ratios(&drawn[2..3], false).is_none());
        let mut page = begun();
        add_figures(&mut page, &figures).unwrap();
        let html = page.html();
        for told in
            ["put-latency, direct</figcaption>", "4 figures", "<td class=\"number\">80.2</td>"]
        {
            assert!(html.contains(told), "{told} in {html}");
        }
        assert!(!html.contains("raw-put, raw"));
    }

    #[test]
    fn libraries_are_beside_each_other_in_a_table() {
        let compared = |name: &str, is_limit, readings: &[(usize, f64)]| Compared {
            name: name.to_owned(),
            is_limit,
            is_latency: true,
            readings: readings.iter().map(|(size, time)| (*size, vec![*time])).collect(),
        };
        let series = vec![
            compared("Ayre", false, &[(8, 70.0)]),
            compared("limit", true, &[(8, 64.0)]),
            compared("UCX", false, &[(8, 180.0), (4096, 1200.0)]),
        ];
        let table = latency_table(&Comparison { series, ..Comparison::default() });
        assert_eq!(table.heads, ["one way", "Ayre", "UCX"]);
        assert_eq!(table.lines, [["8 B", "70 ns", "180 ns"], ["4 KiB", "", "1.2 us"]]);
    }

    #[test]
    fn cores_are_near_or_far() {
        let said = |times: &[f64]| {
            let of = |time: &f64| figure("message-latency", 8, "raw-pingpong", [90.0, *time]);
            placement(&times.iter().map(of).collect::<Vec<_>>())
        };
        assert_eq!(said(&[]), None);
        assert!(said(&[64.0, 80.0]).unwrap().starts_with("near each other: 8 bytes take 64 ns to"));
        assert!(said(&[300.0, 280.0]).unwrap().starts_with("far from each other: 8 bytes"));
        assert!(said(&[64.0, 280.0]).unwrap().starts_with("near in some minutes"));
    }
}

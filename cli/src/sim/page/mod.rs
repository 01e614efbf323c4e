//! Results as a page for a browser: curves over a sweep, and a closer look at some of its points.

mod curves;
mod interface;
mod look;

use anyhow::Result;
use ayre_sim::report::{Point, Results, Verdict};
use ayre_sim::scenario::KEYS;

use super::script;
use super::text::{self, given, parts, time, values};
use crate::page::{Axis, Chart, Drawing, Page, Stack, Stacks, Table, Unit, made_by};

/// Points whose time is drawn by its parts at most.
const STACKS_MAX: usize = 24;
/// Points that are looked at closely at most.
const LOOKS_MAX: usize = 6;

/// Explanations for a reader who has never seen the page.
const READING: [&str; 6] = [
    "Nodes make packets, which pass the links and routers of a network in simulated time. A delay \
     is the time from the making of a packet to the arrival of its last byte.",
    "A number with +- is a mean over several runs with seeds of their own: the true mean is within \
     that distance in 95 of 100 cases. In charts an upright stroke has its length.",
    "99 % is the delay that 99 of 100 packets do not exceed.",
    "Stable: the network carries the load. Unstable: packets wait for longer and longer, and their \
     delays say more about the length of the run than about the network. Deadlocked: packets wait \
     for each other in a ring.",
    "The time of a packet has three parts, which sum to its delay exactly: in the queue of its \
     source; waiting for outputs and for room inside of the network; and on the move.",
    "A link is busy while a packet passes it. A packet takes room in a queue from when it may ask \
     for an output until its tail has left. Loads of links and queues over time are those of the \
     first run of a point.",
];

/// The page of results.
pub(super) fn page(results: &Results) -> Result<Page> {
    let mut page = Page::new(&format!("ayre sim: {}", results.name), &made_by());
    let of_interfaces = results.points.iter().any(|point| point.interface.is_some());
    if !of_interfaces {
        page.text(&verdict(results));
    }
    page.heading("How to read this");
    page.list(if of_interfaces { &interface::READING[..] } else { &READING });
    page.heading("Results");
    page.table(&table(results));
    let notes = notes(&results.points);
    if !notes.is_empty() {
        page.list(&notes);
    }
    if of_interfaces {
        page.heading("Where the time goes, and how many in a row");
        page.charts(&interface::charts(&results.points))?;
    }
    for point in &results.points {
        let name = values(&point.swept);
        point.script.iter().for_each(|course| script::show(&mut page, course, &name));
    }
    let curves = curves::charts(&results.points);
    if !curves.is_empty() {
        page.heading("The points beside each other");
        page.charts(&curves)?;
    }
    let measured: Vec<_> = results.points.iter().filter(|point| point.packets > 0).collect();
    let stable: Vec<_> =
        measured.iter().copied().filter(|point| point.verdict == Verdict::Stable).collect();
    // The queues of others are as long as the run.
    let drawn = if stable.is_empty() { &measured } else { &stable };
    if !drawn.is_empty() {
        page.heading("Where the time goes");
        page.charts(&[stacks(drawn)])?;
    }
    for point in some(&measured, LOOKS_MAX) {
        let name = values(&point.swept);
        page.heading(&format!("A closer look{}", name));
        page.charts(&look::charts(point))?;
    }
    page.heading("Inputs");
    results.points.first().into_iter().for_each(|first| inputs(&mut page, first));
    Ok(page)
}

/// How it went, in a sentence or two.
fn verdict(results: &Results) -> String {
    let count =
        |verdict: Verdict| results.points.iter().filter(|point| point.verdict == verdict).count();
    let all = results.points.len();
    let found = [
        (count(Verdict::Stable), "stable"),
        (count(Verdict::Unstable), "unstable: the network does not carry the load"),
        (count(Verdict::Deadlocked), "deadlocked"),
        (count(Verdict::NotRun), "not measured"),
        (count(Verdict::Failed), "failed: the script did not do what it says"),
    ];
    let found: Vec<_> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} of {all} {what}"))
        .collect();
    let stopped = if results.complete { "" } else { " The run was stopped before its end." };
    format!("Points: {}.{stopped}", found.join("; "))
}

fn table(results: &Results) -> Table {
    let mut lines = text::table(&results.points).into_iter();
    let mut table = Table::new(lines.next().unwrap_or_default());
    table.lines = lines.collect();
    table
}

fn notes(points: &[Point]) -> Vec<String> {
    let all = points.iter().zip(1..).flat_map(|(point, number)| {
        let name = format!("Point {number}{}", values(&point.swept));
        point.notes.iter().map(move |note| format!("{name}: {note}."))
    });
    all.collect()
}

/// A bar for each point, made of the parts of its delay.
fn stacks(points: &[&Point]) -> Chart {
    let first = points.first().map(|point| parts(point).map(|(name, ..)| name.to_owned()));
    let names = first.map(Vec::from).unwrap_or_default();
    let heads = ["point".to_owned()].into_iter().chain(names.clone());
    let mut numbers = Table::new(heads.chain(["delay".to_owned(), "packets".to_owned()]));
    let drawn = some(points, STACKS_MAX);
    let longest = drawn.iter().map(|point| point.delay_ns.mean).fold(0.0, f64::max);
    let (size, unit) = curves::unit_of(longest);
    let mut stacks = vec![];
    for point in drawn {
        let name = match values(&point.swept).trim() {
            "" => "this point".to_owned(),
            swept => swept.trim_matches(['(', ')']).to_owned(),
        };
        let lengths = parts(point).map(|(_, ns, _)| ns);
        let told = Unit::Nanoseconds.label(lengths.iter().sum());
        let mut line = vec![name.clone()];
        line.extend(lengths.map(|ns| Unit::Nanoseconds.label(ns)));
        line.extend([time(point.delay_ns), point.packets.to_string()]);
        numbers.lines.push(line);
        let lengths = lengths.map(|ns| ns / size).to_vec();
        stacks.push(Stack { name, lengths, told });
    }
    let axis = Axis::new(&format!("mean delay, {unit}"), Unit::Count);
    let drawing = Drawing::Stacks(Stacks { axis, parts: names, stacks });
    let title = match points.iter().all(|point| point.verdict == Verdict::Stable) {
        true => "Mean delay of the stable points by its parts",
        false => "Mean delay by its parts",
    };
    Chart { title: title.to_owned(), drawing, numbers }
}

/// At most this number of them, as far from each other as can be, with the first and the last.
fn some<'a>(points: &[&'a Point], most: usize) -> Vec<&'a Point> {
    if points.len() <= most {
        return points.to_vec();
    }
    (0..most).map(|number| points[number * (points.len() - 1) / (most - 1)]).collect()
}

/// All parameters of a point.
fn inputs(page: &mut Page, point: &Point) {
    let mut table = Table::new(["parameter", "value", "", "meaning", "source of the default"]);
    let others: Vec<_> = given(point).map(|(name, _)| name).collect();
    for (name, value) in &point.settings {
        let key = KEYS.iter().find(|key| key.name == name);
        let is_swept = point.swept.iter().any(|(swept, _)| swept == name);
        let value = if is_swept { "several" } else { value };
        let told = if is_swept || others.contains(&name) { "given" } else { "default" };
        let meaning = key.map_or("", |key| key.meaning);
        let source = key.map_or("", |key| key.source);
        let cells = [name, value, told, meaning, source].map(str::to_owned);
        table.lines.push(cells.to_vec());
    }
    page.table(&table);
}

#[cfg(test)]
mod tests {
    use ayre_sim::report::LinkLoad;
    use ayre_sim::scenario::Scenario;
    use roxmltree::{Document, ParsingOptions};

    use super::*;

    fn results() -> Results {
        let text = "topology = 'mesh'\nsides = '3x2'\nload = [0.1, 0.2]\npackets = 300\n\
                    warmup = 10\nreplicas = 2\nchannels = [2, 3]";
        Scenario::from_toml(text).unwrap().run()
    }

    /// How many charts a page of these results has.
    fn charts(results: &Results) -> usize {
        let html = page(results).unwrap().html();
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&html, options).unwrap();
        document.descendants().filter(|node| node.tag_name().name() == "figure").count()
    }

    /// Files of results may have been changed by anybody.
    #[test]
    fn whatever_results_say_there_is_a_page_of_them() {
        let sound = results();
        // Curves, parts, and a closer look at each of four points.
        assert_eq!(charts(&sound), 4 + 1 + 4 * 6);
        for number in [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, -1.0, 0.0] {
            let mut wild = sound.clone();
            for (point, at) in wild.points.iter_mut().zip(0..) {
                point.delay_ns.mean = number;
                point.accepted.half_width = number;
                point.offered.mean = number;
                point.percentiles_ns.iter_mut().for_each(|(_, ns)| *ns = number);
                point.histogram.iter_mut().for_each(|bin| bin.to_ns = number);
                point.links.each.push(LinkLoad { from: 0, to: u32::MAX, busy: number });
                point.links.routers[1] = (number, number);
                point.windows.iter_mut().for_each(|window| {
                    (window.from_ns, window.queue_mean) = (number, number);
                });
                point.swept.truncate(at);
                point.parts.queued_ps = u64::MAX;
            }
            assert!(charts(&wild) > 0, "{number}");
            let _ = text::text(&wild);
        }
        let mut empty = sound.clone();
        for point in &mut empty.points {
            point.percentiles_ns.clear();
            point.histogram.clear();
            point.windows.clear();
            point.links.routers.clear();
        }
        charts(&empty);
        empty.points.clear();
        assert_eq!(charts(&empty), 0);
    }
}

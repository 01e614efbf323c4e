//! A closer look at a point: its delays, its links, and its course over time.

use ayre_sim::report::{LinkLoad, Point, Window};

use super::curves::unit_of;
use crate::page::{Axis, Bar, Bars, Chart, Drawing, Map, Plot, Series, Shown, Table, Unit, Way};
use crate::sim::numbers::percent;

/// Routers of a map at most.
const ROUTERS_MAX: usize = 4096;
/// Links in the table of a map at most.
const LINKS_MAX: usize = 20;

pub(super) fn charts(point: &Point) -> Vec<Chart> {
    let mut charts = vec![histogram(point), percentiles(point)];
    charts.extend(map(point));
    charts.extend(over_time(point));
    charts
}

fn histogram(point: &Point) -> Chart {
    let (size, unit) = unit_of(point.histogram.last().map_or(0.0, |bin| bin.to_ns));
    let mut numbers = Table::new(["from", "to", "packets"]);
    let mut points = vec![];
    for bin in &point.histogram {
        let share = 100.0 * bin.packets as f64 / point.packets.max(1) as f64;
        points.extend([(bin.from_ns / size, share), (bin.to_ns / size, share)]);
        let ends = [bin.from_ns, bin.to_ns].map(|ns| Unit::Nanoseconds.label(ns));
        numbers.lines.push(ends.into_iter().chain([bin.packets.to_string()]).collect());
    }
    let series = vec![Series { name: "packets".to_owned(), shown: Shown::Area, points }];
    let x = Axis::new(&format!("delay, {unit} (99.9 % of packets)"), Unit::Count);
    let y = Axis::new("of packets, %", Unit::Count);
    let drawing = Drawing::Plot(Plot { x, y, series });
    Chart { title: "How many packets have which delay".to_owned(), drawing, numbers }
}

fn percentiles(point: &Point) -> Chart {
    let longest = point.percentiles_ns.iter().map(|(_, ns)| *ns).fold(0.0, f64::max);
    let (size, unit) = unit_of(longest);
    let mut numbers = Table::new(["share", "delay"]);
    let bar = |(share, ns): &(f64, f64)| {
        let name = match *share < 1.0 {
            true => format!("{} of packets", percent(*share)),
            false => "all packets".to_owned(),
        };
        let told = Unit::Nanoseconds.label(*ns);
        numbers.lines.push(vec![name.clone(), told.clone()]);
        Bar { name, value: ns / size, told }
    };
    let bars = point.percentiles_ns.iter().map(bar).collect();
    let axis = Axis::new(&format!("delay, {unit}"), Unit::Count);
    let mean = Some(("mean".to_owned(), point.delay_ns.mean / size));
    let drawing = Drawing::Bars(Bars { axis, most: f64::INFINITY, mark: mean, bars });
    Chart { title: "Delay that a share of packets does not exceed".to_owned(), drawing, numbers }
}

/// Routers and links; none, if there are too many or none.
fn map(point: &Point) -> Option<Chart> {
    let links = &point.links;
    if links.each.is_empty() || !(1..=ROUTERS_MAX).contains(&links.routers.len()) {
        return None;
    }
    let way = |link: &LinkLoad| {
        let (from, to) = (link.from as usize, link.to as usize);
        Way { from, to, load: link.busy }
    };
    let ways = links.each.iter().map(way).collect();
    let mut busiest: Vec<_> = links.each.iter().collect();
    busiest.sort_by(|one, other| other.busy.total_cmp(&one.busy));
    let mut numbers = Table::new(["from router", "to router", "busy"]);
    for link in busiest.iter().take(LINKS_MAX) {
        let ends = [link.from, link.to].map(|router| router.to_string());
        numbers.lines.push(ends.into_iter().chain([percent(link.busy)]).collect());
    }
    let drawing = Drawing::Map(Map { places: links.routers.clone(), ways });
    Some(Chart { title: "How busy each link is".to_owned(), drawing, numbers })
}

/// Queues and links over time; none, if there is no more than one moment.
fn over_time(point: &Point) -> Vec<Chart> {
    let windows = &point.windows;
    let Some(last) = windows.last().filter(|_| windows.len() > 1) else { return vec![] };
    let (size, unit) = unit_of(last.from_ns);
    let x = Axis::new(&format!("since the beginning of the measurement, {unit}"), Unit::Count);
    let numbers = windows_table(windows);
    let series = |name: &str, shown, of: &dyn Fn(usize) -> f64| {
        let at = windows.iter().enumerate();
        let points = at.map(|(number, window)| (window.from_ns / size, of(number))).collect();
        Series { name: name.to_owned(), shown, points }
    };
    let backlog = |at: usize| windows[at].backlog as f64;
    let queues = Plot {
        x: x.clone(),
        y: Axis::new("packets", Unit::Count),
        series: vec![series("in queues and on links", Shown::Area, &backlog)],
    };
    let busy = [
        series("the busiest link", Shown::Area, &|at| 100.0 * windows[at].most),
        series("all links in the mean", Shown::Area, &|at| 100.0 * windows[at].mean),
    ];
    let y = Axis::new("busy, % of the time", Unit::Count);
    let links = Plot { x: x.clone(), y, series: busy.into() };
    let lengths = [
        series("the longest queue, at its longest", Shown::Area, &|at| {
            windows[at].queue_most as f64
        }),
        series("all queues in the mean", Shown::Area, &|at| windows[at].queue_mean),
    ];
    let y = Axis::new("bytes in a buffer", Unit::Count);
    let lengths = Plot { x, y, series: lengths.into() };
    let chart = |title: &str, plot, numbers| Chart {
        title: title.to_owned(),
        drawing: Drawing::Plot(plot),
        numbers,
    };
    vec![
        chart("Packets on their way over time", queues, numbers.clone()),
        chart("Links over time", links, numbers.clone()),
        chart("Queues of routers over time", lengths, numbers),
    ]
}

fn windows_table(windows: &[Window]) -> Table {
    let heads = ["from", "packets on their way", "busiest link", "mean", "longest queue", "mean"];
    let mut numbers = Table::new(heads);
    for window in windows {
        numbers.lines.push(vec![
            Unit::Nanoseconds.label(window.from_ns),
            window.backlog.to_string(),
            percent(window.most),
            percent(window.mean),
            format!("{} B", window.queue_most),
            format!("{:.1} B", window.queue_mean),
        ]);
    }
    numbers
}

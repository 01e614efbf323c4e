//! Single interfaces on a page: the parts of their time, and curves over a sweep.

use ayre_sim::report::{Interface, Point, part_names};

use super::curves::{Sweep, exactly, unit_of};
use super::{STACKS_MAX, some, values};
use crate::page::{Axis, Bar, Bars, Chart, Drawing, Stack, Stacks, Table, Unit};
use crate::sim::numbers::{bandwidth, percent, picos, rate};

/// Explanations for a reader who has never seen the page.
pub(super) const READING: [&str; 3] = [
    "A network interface does one operation alone, from a program's command to the program that \
     sees its end. The parts of its time are those of the units that it passes, and sum to it \
     exactly.",
    "Then it does many in a row. The rate is that of the unit that is kept longest by each of \
     them; a unit that is kept for all of the time is the bottleneck.",
    "No chance takes part, so there are no intervals.",
];

/// The charts of all points.
pub(super) fn charts(points: &[Point]) -> Vec<Chart> {
    let points: Vec<_> = points.iter().filter(|point| point.interface.is_some()).collect();
    let mut charts = vec![stacks(&points)];
    match Sweep::new(&points).filter(|_| points.len() > 1) {
        Some(sweep) => charts.extend(curves(&sweep)),
        None => charts.extend(points.iter().take(1).map(|point| units(point))),
    }
    charts
}

/// The interface of a point, or a number of it.
fn of(point: &Point, number: impl Fn(&Interface) -> f64) -> f64 {
    point.interface.as_ref().map_or(f64::NAN, number)
}

fn told(point: &Point, text: impl Fn(&Interface) -> String) -> String {
    point.interface.as_ref().map_or_else(String::new, text)
}

fn curves(sweep: &Sweep<'_>) -> [Chart; 3] {
    let latency = |point: &Point| exactly(of(point, |one| one.latency_ps as f64 / 1e3));
    let million = |point: &Point| exactly(of(point, |one| one.rate / 1e6));
    let giga = |point: &Point| exactly(of(point, |one| one.bandwidth / 1e9));
    [
        sweep.chart(
            "Latency of one alone",
            Axis::new("latency", Unit::Nanoseconds),
            &latency,
            &|point| told(point, |one| picos(one.latency_ps)),
        ),
        sweep.chart(
            "Bandwidth of many in a row",
            Axis::new("bandwidth", Unit::Bandwidth),
            &giga,
            &|point| told(point, bandwidth),
        ),
        sweep.chart(
            "Operations of many in a row",
            Axis::new("operations a second", Unit::Rate),
            &million,
            &|point| told(point, rate),
        ),
    ]
}

/// A bar for each point, made of the parts of its latency.
fn stacks(points: &[&Point]) -> Chart {
    let drawn: Vec<_> = some(points, STACKS_MAX);
    let names = part_names(drawn.iter().copied());
    let heads = ["point".to_owned()].into_iter().chain(names.clone());
    let mut numbers = Table::new(heads.chain(["latency".to_owned()]));
    let longest = drawn.iter().map(|point| of(point, |one| one.latency_ps as f64 / 1e3));
    let (size, unit) = unit_of(longest.fold(0.0, f64::max));
    let mut stacks = vec![];
    for point in drawn {
        let Some(interface) = &point.interface else { continue };
        let name = match values(&point.swept).trim() {
            "" => "this point".to_owned(),
            swept => swept.trim_matches(['(', ')']).to_owned(),
        };
        let parts: Vec<_> = names.iter().map(|name| interface.part_ps(name)).collect();
        let told = picos(interface.latency_ps);
        let cells = parts.iter().map(|ps| picos(*ps));
        let line = core::iter::once(name.clone()).chain(cells).chain([told.clone()]);
        numbers.lines.push(line.collect());
        let lengths = parts.iter().map(|ps| *ps as f64 / 1e3 / size).collect();
        stacks.push(Stack { name, lengths, told });
    }
    let axis = Axis::new(&format!("latency, {unit}"), Unit::Count);
    let drawing = Drawing::Stacks(Stacks { axis, parts: names, stacks });
    Chart { title: "Latency of one alone by its parts".to_owned(), drawing, numbers }
}

/// How long the stream of a point keeps each unit.
fn units(point: &Point) -> Chart {
    let mut numbers = Table::new(["where", "unit", "kept"]);
    let mut bars = vec![];
    for load in point.interface.iter().flat_map(|interface| &interface.units) {
        let told = percent(load.busy);
        numbers.lines.push(vec![load.place.clone(), load.unit.clone(), told.clone()]);
        if load.busy > 0.0 && bars.len() < STACKS_MAX {
            let name = format!("{}: {}", load.place, load.unit);
            bars.push(Bar { name, value: 100.0 * load.busy, told });
        }
    }
    let axis = Axis::new("kept, % of the time", Unit::Count);
    let drawing = Drawing::Bars(Bars { axis, most: f64::INFINITY, mark: None, bars });
    Chart { title: "How long many in a row keep each unit".to_owned(), drawing, numbers }
}

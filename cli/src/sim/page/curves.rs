//! Curves of a sweep: what becomes of delay, throughput and links as a parameter grows.

use std::path::Path;

use ayre_sim::report::{Estimate, Point};
use ayre_sim::scenario::units::{Rate, Span};
use ayre_sim::scenario::{KEYS, Kind, Value};

use crate::page::{Axis, Bar, Bars, Chart, Drawing, Plot, Series, Shown, Table, Unit};
use crate::sim::numbers::percent;
use crate::sim::text::{SHARES, share, time, within};

/// Curves in a chart at most.
const CURVES_MAX: usize = 8;
/// Points that are drawn as bars at most.
const BARS_MAX: usize = 24;

/// Charts that have all points of a sweep; none, if there is one point.
pub(super) fn charts(points: &[Point]) -> Vec<Chart> {
    let points: Vec<_> = points.iter().filter(|point| point.packets > 0).collect();
    if points.len() < 2 {
        return vec![];
    }
    match Sweep::new(&points) {
        Some(sweep) => sweep.charts(),
        None => vec![bars(&points)],
    }
}

/// Points along a parameter that is a number: one curve for each combination of the others.
pub(super) struct Sweep<'a> {
    x: Axis,
    curves: Vec<(String, Vec<(f64, &'a Point)>)>,
    /// Curves that are not drawn.
    left_out: usize,
}

impl<'a> Sweep<'a> {
    /// The load goes to the right if it is swept, or else the last parameter that is a number.
    pub(super) fn new(points: &[&'a Point]) -> Option<Self> {
        let swept = &points[0].swept;
        let is_number = |at: &usize| points.iter().all(|point| number(point, *at).is_some());
        let numbers: Vec<_> = (0..swept.len()).filter(is_number).collect();
        let load = numbers.iter().find(|at| swept[**at].0 == "load");
        let at = *load.or_else(|| numbers.last())?;
        let unit = number(points[0], at)?.1;
        // Nought has no place among powers.
        let is_above = points.iter().all(|p| number(p, at).is_some_and(|number| number.0 > 0.0));
        let axis = if is_above { unit.axis } else { Unit::Count };
        let mut curves: Vec<(String, Vec<_>)> = vec![];
        for point in points {
            let others = point.swept.iter().enumerate().filter(|(other, _)| *other != at);
            let name: Vec<_> = others.map(|(_, (name, value))| format!("{name} {value}")).collect();
            let name = name.join(", ");
            let x = number(point, at)?.0;
            match curves.iter_mut().find(|(other, _)| *other == name) {
                Some((_, curve)) => curve.push((x, *point)),
                None => curves.push((name, vec![(x, *point)])),
            }
        }
        curves.iter_mut().for_each(|(_, curve)| curve.sort_by(|a, b| a.0.total_cmp(&b.0)));
        let left_out = curves.len().saturating_sub(CURVES_MAX);
        curves.truncate(CURVES_MAX);
        let x = Axis::new(&format!("{}{}", swept[at].0, unit.name), axis);
        Some(Self { x, curves, left_out })
    }

    fn charts(&self) -> Vec<Chart> {
        let mut charts = vec![self.delay()];
        charts.extend(self.percentiles());
        charts.extend([self.throughput(), self.busiest()]);
        let all = self.curves.iter().flat_map(|(_, curve)| curve);
        if all.clone().all(|(_, point)| point.saturation.is_some()) {
            charts.push(self.saturation());
        }
        charts
    }

    fn delay(&self) -> Chart {
        let numbers = |point: &Point| time(point.delay_ns);
        let y = Axis::new("mean delay", Unit::Nanoseconds);
        self.chart("Mean delay", y, &|point| point.delay_ns, &numbers)
    }

    /// Of a single curve, or else of all curves that which 99 % stay below.
    fn percentiles(&self) -> Vec<Chart> {
        let of = |point: &Point, wanted| {
            let found = point.percentiles_ns.iter().find(|(share, _)| *share == wanted);
            found.map_or(f64::NAN, |(_, ns)| *ns)
        };
        let y = Axis::new("delay", Unit::Nanoseconds);
        let [(_, curve)] = &self.curves[..] else {
            let exact = |point: &Point| exactly(of(point, 0.99));
            let title = "Delay that 99 % of packets do not exceed";
            return vec![self.chart(title, y, &exact, &|point| within(point, 0.99))];
        };
        let mut numbers =
            Table::new([&*self.x.name].map(str::to_owned).into_iter().chain(SHARES.map(percent)));
        for (x, point) in curve {
            let mut line = vec![self.x.unit.label(*x)];
            line.extend(SHARES.map(|share| within(point, share)));
            numbers.lines.push(line);
        }
        let series = SHARES.map(|share| {
            let points = curve.iter().map(|(x, point)| (*x, of(point, share))).collect();
            Series { name: format!("{} of packets", percent(share)), shown: Shown::Line, points }
        });
        let drawing = Drawing::Plot(Plot { x: self.x.clone(), y, series: series.into() });
        let title = "Delay that a share of packets does not exceed".to_owned();
        vec![Chart { title, drawing, numbers }]
    }

    fn saturation(&self) -> Chart {
        let y = Axis::new("of each node's link, %", Unit::Count);
        let of = |point: &Point| point.saturation.unwrap_or_else(|| exactly(f64::NAN));
        let numbers = |point: &Point| share(of(point));
        self.chart("Greatest load that is carried", y, &|point| in_percent(of(point)), &numbers)
    }

    fn throughput(&self) -> Chart {
        let y = Axis::new("of each node's link, %", Unit::Count);
        let numbers = |point: &Point| {
            format!("{} of {} offered", share(point.accepted), percent(point.offered.mean))
        };
        let mut chart = self.chart("Throughput", y, &|point| in_percent(point.accepted), &numbers);
        if let (Drawing::Plot(plot), Some((_, first))) = (&mut chart.drawing, self.curves.first()) {
            // In thousandths, so that chance does not lengthen the axis.
            let offered = |point: &Point| (1e3 * point.offered.mean).round() / 10.0;
            let points = first.iter().map(|(x, point)| (*x, offered(point))).collect();
            let name = "all that is offered".to_owned();
            plot.series.push(Series { name, shown: Shown::Limit, points });
        }
        chart
    }

    fn busiest(&self) -> Chart {
        let y = Axis::new("busy, % of the time", Unit::Count);
        let busy = |point: &Point| exactly(100.0 * point.links.most);
        self.chart("The busiest link", y, &busy, &|point| percent(point.links.most))
    }

    /// A curve of a quantity with its intervals for each combination.
    pub(super) fn chart(
        &self,
        title: &str,
        y: Axis,
        of: &dyn Fn(&Point) -> Estimate,
        told: &dyn Fn(&Point) -> String,
    ) -> Chart {
        let mut numbers = Table::new([self.x.name.as_str(), "of", &y.name, "verdict"]);
        let mut series = vec![];
        for (name, curve) in &self.curves {
            let mut intervals = vec![];
            let mut points = vec![];
            for (x, point) in curve {
                let Estimate { mean, half_width } = of(point);
                points.push((*x, mean));
                if half_width.is_finite() && half_width > 0.0 && mean > half_width {
                    intervals.extend([(*x, mean - half_width), (*x, mean + half_width)]);
                }
                let verdict = point.verdict.word().to_owned();
                let line = vec![self.x.unit.label(*x), name.clone(), told(point), verdict];
                numbers.lines.push(line);
            }
            let shown = if name.is_empty() { y.name.clone() } else { name.clone() };
            series.push(Series { name: shown, shown: Shown::Line, points });
            series.push(Series { name: String::new(), shown: Shown::Intervals, points: intervals });
        }
        let title = match self.left_out {
            0 => title.to_owned(),
            more => format!("{title} ({more} more curves are in the table)"),
        };
        Chart { title, drawing: Drawing::Plot(Plot { x: self.x.clone(), y, series }), numbers }
    }
}

fn in_percent(Estimate { mean, half_width }: Estimate) -> Estimate {
    Estimate { mean: 100.0 * mean, half_width: 100.0 * half_width }
}

pub(super) fn exactly(mean: f64) -> Estimate {
    Estimate { mean, half_width: 0.0 }
}

/// How a parameter's numbers stand on an axis.
struct NumberUnit {
    /// Behind the parameter's name.
    name: &'static str,
    axis: Unit,
}

/// The value of a swept parameter, if it is a number.
fn number(point: &Point, at: usize) -> Option<(f64, NumberUnit)> {
    let (name, text) = point.swept.get(at)?;
    let key = KEYS.iter().find(|key| key.name == name)?;
    let unit = |name, axis| NumberUnit { name, axis };
    let size = match key.kind {
        Kind::Bytes { .. } => Unit::Bytes,
        // A file is not to be opened here.
        Kind::Topology => return None,
        _ => Unit::Count,
    };
    Some(match key.kind.read(text, Path::new("")).ok()? {
        Value::Number(number) => (number as f64, unit("", size)),
        Value::Share(share) => (100.0 * share, unit(", %", Unit::Count)),
        Value::Time(Span::Picos(picos)) => (picos as f64 / 1e3, unit("", Unit::Nanoseconds)),
        Value::Time(Span::Cycles(cycles)) => (cycles as f64, unit(", cycles", Unit::Count)),
        Value::Rate(Rate::Bits(bits)) => (bits as f64 / 1e9, unit(", Gb/s", Unit::Count)),
        Value::Rate(Rate::Phits(phits)) => (phits as f64 / 1e6, unit(", MHz", Unit::Count)),
        _ => return None,
    })
}

/// A bar for each point, where no swept parameter is a number.
fn bars(points: &[&Point]) -> Chart {
    let mut numbers = Table::new(["point", "mean delay", "verdict"]);
    let longest = points.iter().map(|point| point.delay_ns.mean).fold(0.0, f64::max);
    let (size, unit) = unit_of(longest);
    let mut bars = vec![];
    for point in points {
        let values: Vec<_> = point.swept.iter().map(|(_, value)| value.as_str()).collect();
        let (name, told) = (values.join(", "), time(point.delay_ns));
        numbers.lines.push(vec![name.clone(), told.clone(), point.verdict.word().to_owned()]);
        if bars.len() < BARS_MAX {
            bars.push(Bar { name, value: point.delay_ns.mean / size, told });
        }
    }
    let axis = Axis::new(&format!("mean delay, {unit}"), Unit::Count);
    let drawing = Drawing::Bars(Bars { axis, most: f64::INFINITY, mark: None, bars });
    Chart { title: "Mean delay".to_owned(), drawing, numbers }
}

/// The nanoseconds of the unit that this number of them is told in, and its name.
pub(super) fn unit_of(ns: f64) -> (f64, &'static str) {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    units.into_iter().find(|(size, _)| ns >= *size).unwrap_or((1.0, "ns"))
}

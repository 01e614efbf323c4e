//! Single network interfaces: their models in the list, and their results as text.

use std::fmt::Write;

use ayre_sim::interface::{MODELS, Model};
use ayre_sim::report::{Interface, Point, part_names};

use super::numbers::{bandwidth, percent, picos, rate};

/// Units in a line of a stream at most: those that are busiest.
const UNITS_MAX: usize = 4;

/// All models, a line for each.
pub(super) fn models() -> String {
    let mut text = "interfaces\n".to_owned();
    for Model { name, about, .. } in MODELS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name}: {about}");
    }
    text
}

/// A model with its operations.
pub(super) fn model(model: &Model) -> String {
    let Model { name, about, source, operations, .. } = model;
    let mut text = format!("{name}\n  {about}\n  source: {source}\n  operations\n");
    let width = operations.iter().map(|operation| operation.name.len()).max().unwrap_or(0);
    for operation in *operations {
        let (name, (least, most)) = (operation.name, operation.sizes);
        let _ = writeln!(text, "    {name:width$}  {}; {least} B to {most} B", operation.meaning);
    }
    text
}

/// The results of a point, as pairs of a name and what is told.
pub(super) fn detail(interface: &Interface) -> Vec<(&'static str, String)> {
    let mut told = vec![("latency", picos(interface.latency_ps))];
    for (number, (part, ps)) in interface.parts_ps.iter().enumerate() {
        let share = percent(*ps as f64 / interface.latency_ps.max(1) as f64);
        let name = if number == 0 { "of that" } else { "" };
        told.push((name, format!("{} ({share}) {part}", picos(*ps))));
    }
    let (rate, bandwidth) = (rate(interface), bandwidth(interface));
    told.push(("stream", format!("{rate} operations/s, {bandwidth}")));
    let mut units: Vec<_> = interface.units.iter().filter(|unit| unit.busy > 0.0).collect();
    units.sort_by(|one, other| other.busy.total_cmp(&one.busy));
    for (number, load) in units.into_iter().take(UNITS_MAX).enumerate() {
        let name = if number == 0 { "units" } else { "" };
        let busy = percent(load.busy);
        told.push((name, format!("{}: {} is kept for {busy} of the time", load.place, load.unit)));
    }
    told
}

/// A table with a line for each point, the parts of the latency last.
pub(super) fn lines(points: &[Point]) -> Vec<Vec<String>> {
    let swept = points.first().map_or(&[][..], |point| &point.swept);
    let names = swept.iter().map(|(name, _)| name.clone());
    let heads = ["latency", "operations/s", "bandwidth", "busiest unit"].map(str::to_owned);
    let parts = part_names(points);
    let mut lines: Vec<Vec<_>> = vec![names.chain(heads).chain(parts.clone()).collect()];
    for point in points {
        let mut line: Vec<_> = point.swept.iter().map(|(_, value)| value.clone()).collect();
        if let Some(interface) = &point.interface {
            let busiest = interface.busiest().map(|load| format!("{} {}", load.place, load.unit));
            line.extend([picos(interface.latency_ps), rate(interface), bandwidth(interface)]);
            line.push(busiest.unwrap_or_default());
            line.extend(parts.iter().map(|part| match interface.part_ps(part) {
                0 => String::new(),
                ps => picos(ps),
            }));
        }
        lines.push(line);
    }
    lines
}

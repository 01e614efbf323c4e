//! Results as text: one point with all that it gave, or a line for each of several.

use std::fmt::Write;

use ayre_sim::report::{Estimate, Point, Queue, Queues, Results};
use ayre_sim::scenario::KEYS;

use super::interface;
use super::numbers::percent;
use super::script;
use crate::info::tables::aligned;
use crate::page::Unit;

/// Shares of packets whose delay stands in the line of a point.
pub(super) const SHARES: [f64; 3] = [0.5, 0.99, 0.999];

/// All results, as they are printed.
pub(super) fn text(results: &Results) -> String {
    let mut text = format!("{}\n", results.name);
    if let [point] = &results.points[..] {
        text += &detail(point);
    } else {
        text += &aligned(&table(&results.points));
        for (number, point) in (1..).zip(&results.points) {
            for note in &point.notes {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "point {number}{}: {note}", values(&point.swept));
            }
        }
    }
    if !results.complete {
        text += "stopped: there would be more\n";
    }
    text
}

/// The values of a point by which it differs from others.
pub(super) fn values(swept: &[(String, String)]) -> String {
    let all: Vec<_> = swept.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

/// All that a point gave.
fn detail(point: &Point) -> String {
    let mut text = String::new();
    let mut tell = |name: &str, told: &str| {
        let _ = writeln!(text, "{name:11}  {told}");
    };
    for (number, (name, value)) in given(point).enumerate() {
        tell(if number == 0 { "given" } else { "" }, &format!("{name} = {value}"));
    }
    if let Some(interface) = &point.interface {
        interface::detail(interface).iter().for_each(|(name, told)| tell(name, told));
        return text;
    }
    tell("verdict", point.verdict.word());
    point.notes.iter().for_each(|note| tell("", note));
    for (number, line) in point.script.iter().flat_map(script::lines).enumerate() {
        tell(if number == 0 { "script" } else { "" }, &line);
    }
    if point.packets > 0 {
        tell("delay", &format!("{} (95 % confidence)", time(point.delay_ns)));
        for (share, ns) in &point.percentiles_ns {
            let of = if *share < 1.0 { percent(*share) } else { "all".to_owned() };
            tell("", &format!("{of} within {}", Unit::Nanoseconds.label(*ns)));
        }
        for (number, (part, ns, share)) in parts(point).into_iter().enumerate() {
            let told = format!("{} ({}) {part}", Unit::Nanoseconds.label(ns), percent(share));
            tell(if number == 0 { "of that" } else { "" }, &told);
        }
        let accepted = share(point.accepted);
        let offered = share(point.offered);
        tell("throughput", &format!("{accepted} of each node's link, {offered} offered"));
        tell("", &format!("{:.3} Gb/s to each node", point.gigabits));
        let [most, mean] = [point.links.most, point.links.mean].map(percent);
        tell(
            "links",
            &format!("the busiest is busy for {most} of the time, all for {mean} in the mean"),
        );
        tell("", &format!("{:.2} links for each packet", point.hops));
        queues(&point.queues).iter().for_each(|(name, told)| tell(name, told));
    }
    tell("measured", &format!("{} packets in {} replicas", point.packets, point.replicas));
    text
}

/// How long queues in the buffers behind links are.
fn queues(queues: &Queues) -> Vec<(&'static str, String)> {
    let Some(longest) = &queues.longest else { return vec![] };
    let Queue { router, port, channel, from, mean, most } = longest;
    let place = format!("router {router}, port {port} (from router {from}), channel {channel}");
    vec![
        ("queues", format!("{:.1} B in the mean, {} B at most", queues.mean, queues.most)),
        ("", format!("the longest: {place}: {mean:.1} B in the mean, {most} B at most")),
    ]
}

/// The parameters that do not have their default values.
pub(super) fn given(point: &Point) -> impl Iterator<Item = &(String, String)> {
    let of = |wanted: &str| {
        let setting = point.settings.iter().find(|(name, _)| name == wanted);
        setting.map_or("", |(_, value)| value)
    };
    point.settings.iter().filter(move |(name, value)| {
        let key = KEYS.iter().find(|key| key.name == name);
        key.is_none_or(|key| key.default.value(of) != value)
    })
}

/// Where the time went: nanoseconds of each packet in the mean, and the share of the delay.
pub(super) fn parts(point: &Point) -> [(&'static str, f64, f64); 3] {
    let means = point.parts.mean_ns(point.packets);
    let sum: f64 = means.iter().sum();
    let [queued, waited, moved] = means.map(|mean| (mean, mean / sum.max(f64::MIN_POSITIVE)));
    [
        ("in the queue of the source", queued.0, queued.1),
        ("waiting in the network", waited.0, waited.1),
        ("on the move", moved.0, moved.1),
    ]
}

/// A table with a line for each point, whatever its work was.
pub(super) fn table(points: &[Point]) -> Vec<Vec<String>> {
    let of_interfaces = points.iter().any(|point| point.interface.is_some());
    if of_interfaces { interface::lines(points) } else { lines(points) }
}

/// A table with a line for each point of a network.
fn lines(points: &[Point]) -> Vec<Vec<String>> {
    let swept = points.first().map_or(&[][..], |point| &point.swept);
    let names = swept.iter().map(|(name, _)| name.clone());
    let shares = SHARES.map(|share| format!("{} within", percent(share)));
    let heads = ["accepted", "queued", "waiting", "moving", "busiest link"].map(str::to_owned);
    let first = ["verdict".to_owned(), "delay".to_owned()];
    let mut lines = vec![names.chain(first).chain(shares).chain(heads).collect()];
    for point in points {
        let mut line: Vec<_> = point.swept.iter().map(|(_, value)| value.clone()).collect();
        line.push(point.verdict.word().to_owned());
        if point.packets > 0 {
            line.push(time(point.delay_ns));
            line.extend(SHARES.map(|share| within(point, share)));
            line.push(share(point.accepted));
            line.extend(parts(point).map(|(_, mean, _)| Unit::Nanoseconds.label(mean)));
            line.push(percent(point.links.most));
        }
        lines.push(line);
    }
    lines
}

/// The delay that this share of packets did not exceed.
pub(super) fn within(point: &Point, wanted: f64) -> String {
    let found = point.percentiles_ns.iter().find(|(share, _)| *share == wanted);
    found.map_or_else(String::new, |(_, ns)| Unit::Nanoseconds.label(*ns))
}

/// A delay with its interval, both in the unit that the mean asks for.
pub(super) fn time(Estimate { mean, half_width }: Estimate) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let (size, unit) = units.into_iter().find(|(size, _)| mean >= *size).unwrap_or((1.0, "ns"));
    estimate(Estimate { mean: mean / size, half_width: half_width / size }, unit)
}

/// A share with its interval.
pub(super) fn share(Estimate { mean, half_width }: Estimate) -> String {
    estimate(Estimate { mean: 100.0 * mean, half_width: 100.0 * half_width }, "%")
}

/// A number with as many decimals as its interval makes sense of: two digits of that.
fn estimate(Estimate { mean, half_width }: Estimate, unit: &str) -> String {
    let decimals = |first: f64| (first - half_width.log10().floor()).clamp(0.0, 4.0) as usize;
    if !half_width.is_finite() {
        return format!("{mean:.3} {unit} +- ?");
    }
    let decimals = if half_width > 0.0 { decimals(1.0) } else { 3 };
    format!("{mean:.decimals$} {unit} +- {half_width:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_their_intervals_allow() {
        let told = |mean, half_width| time(Estimate { mean, half_width });
        assert_eq!(told(4954.2, 31.4), "4.954 us +- 0.031");
        assert_eq!(told(4954.2, 3140.0), "5.0 us +- 3.1");
        assert_eq!(told(12.0, 0.0), "12.000 ns +- 0.000");
        assert_eq!(told(2e6, f64::INFINITY), "2.000 ms +- ?");
        assert_eq!(share(Estimate { mean: 0.5, half_width: 0.0123 }), "50.0 % +- 1.2");
    }
}

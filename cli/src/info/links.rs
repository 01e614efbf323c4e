//! `ayre info --links`: the links that this user's running processes have with other hosts.

use std::time::Duration;

use anyhow::Result;
use ayre::{LinkReport, LinkState, PathState, WireReport, WireReports, wire_reports};
use serde::Serialize;

/// How long a port may take to answer; its keeper looks several times in that time.
const PATIENCE: Duration = Duration::from_secs(1);

/// Heads of what every table of links begins with.
pub(crate) const WHO: [&str; 9] =
    ["process", "program", "rank", "peer", "link", "paths", "round trip", "window", "flying"];

/// What programs read.
#[derive(Serialize)]
struct Ports<'a> {
    ports: &'a [WireReport],
    silent: &'a [String],
}

/// The table, or JSON.
pub(super) fn text(is_json: bool) -> Result<String> {
    let seen = look()?;
    if is_json {
        let ports = Ports { ports: &seen.reports, silent: &seen.silent };
        return Ok(serde_json::to_string_pretty(&ports)? + "\n");
    }
    Ok(table(&seen) + &remarks(&seen))
}

/// All ports of this user that are open to other hosts.
pub(crate) fn look() -> Result<WireReports> {
    Ok(wire_reports(PATIENCE)?)
}

/// What is to be said besides the links.
pub(crate) fn remarks(seen: &WireReports) -> String {
    let mut text = String::new();
    if seen.reports.is_empty() {
        text += "no process of this user has a port open to other hosts\n";
    }
    for name in &seen.silent {
        text += &format!("no answer: {name}\n");
    }
    text
}

fn table(seen: &WireReports) -> String {
    let counts = ["sent", "again", "credit"];
    let mut lines = vec![WHO.iter().chain(&counts).map(|head| (*head).to_owned()).collect()];
    for port in &seen.reports {
        for link in &port.links {
            let counts = [link.sent.to_string(), again(link).to_string(), credit(link)];
            lines.push(who(port, link).into_iter().chain(counts).collect());
        }
    }
    if lines.len() > 1 { aligned(&lines) } else { String::new() }
}

/// What every table of links begins with.
pub(crate) fn who(port: &WireReport, link: &LinkReport) -> [String; WHO.len()] {
    [
        port.process.to_string(),
        port.program.clone(),
        port.number.to_string(),
        link.peer.to_string(),
        state(link),
        paths(link),
        link.round_trip_ns.map_or_else(|| "-".to_owned(), time),
        format!("{:.1}", link.window),
        link.in_flight.to_string(),
    ]
}

/// Frames that were sent again, for whatever reason.
pub(crate) fn again(link: &LinkReport) -> u64 {
    let again = link.again;
    again.overtaken + again.asked_for + again.timed_out + again.resynced
}

/// New frames that may be sent, by channel.
pub(crate) fn credit(link: &LinkReport) -> String {
    let rooms: Vec<_> = link.credit.iter().map(|credit| credit.room.to_string()).collect();
    rooms.join("/")
}

fn state(link: &LinkReport) -> String {
    let state = match link.state {
        LinkState::Opening => "opening",
        LinkState::Open => "open",
        LinkState::Closing => "closing",
        _ => "closed",
    };
    let protection = if link.is_sealed { "sealed" } else { "plain" };
    format!("{state}, {protection}")
}

fn paths(link: &LinkReport) -> String {
    let count = |state| link.paths.iter().filter(|path| path.state == state).count();
    let counts =
        [("live", PathState::Live), ("suspect", PathState::Suspect), ("dead", PathState::Dead)]
            .map(|(name, state)| (name, count(state)));
    let told: Vec<_> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    told.join(", ")
}

/// Nanoseconds as people read them.
fn time(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// Lines of cells, each column as wide as its longest cell.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let widths = widths(lines);
    let mut text = String::new();
    for line in lines {
        let cells: Vec<_> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Characters of the longest cell of each column.
pub(crate) fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    (0..columns).map(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let line = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = aligned(&[line(["a", "head"]), line(["long", "b"])]);
        assert_eq!(text, "a     head\nlong  b\n");
    }

    #[test]
    fn times_have_units() {
        assert_eq!((time(1500), time(25_000_000)), ("1.5 us".to_owned(), "25.0 ms".to_owned()));
    }
}

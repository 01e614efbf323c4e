//! `ayre info --links`: the links that this user's running processes have with other hosts.

use std::time::Duration;

use anyhow::Result;
use ayre::network::{WireReport, WireReports, wire_reports};
use serde::Serialize;

use super::tables::{Tables, again, number};

/// The longest time for a port's answer; its progress thread looks several times in that time.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The output for programs.
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
    Ok(wire_reports(TIMEOUT)?)
}

/// Remarks besides the links.
pub(crate) fn remarks(seen: &WireReports) -> String {
    let mut text = String::new();
    if seen.reports.is_empty() {
        text += "no process of this user has a port open to other hosts\n";
    }
    for port in &seen.reports {
        for link in &port.links {
            if let Some(why) = &link.detour {
                text += &format!(
                    "process {}: {} is on this host, and reached over the network: {why}\n",
                    port.process, link.peer
                );
            }
        }
    }
    for name in &seen.silent {
        text += &format!("no answer: {name}\n");
    }
    text
}

fn table(seen: &WireReports) -> String {
    Tables::of(seen, &["sent", "again"], |_, link| vec![number(link.sent), number(again(link))])
        .text()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    // spec: WIRE-8
    #[test]
    fn why_a_neighbour_goes_by_link_is_told() {
        let link = |peer: usize, detour: Option<&str>| {
            json!({
                "peer": peer, "state": "open", "is_sealed": true, "detour": detour, "paths": [],
                "sent": 0, "arrived": 0, "told": 0, "repeated": 0, "foreign": 0, "malformed": 0,
                "again": { "overtaken": 0, "asked_for": 0, "timed_out": 0, "resynced": 0 },
                "round_trip_ns": null, "variation_ns": null, "timeout_ns": 1, "window": 8.0,
                "in_flight": 0, "credit": [], "silent_ns": 0,
            })
        };
        let port = json!({
            "format": 1, "process": 7, "program": "job", "number": 0, "clock_ns": 5,
            "links": [link(3, Some("user 4001")), link(4, None)],
            "nets": [], "refused": 2, "malformed": 0,
        });
        let mut seen = WireReports::default();
        seen.reports.push(from_value(port).unwrap());
        let said = "process 7: 3 is on this host, and reached over the network: user 4001\n";
        assert_eq!(remarks(&seen), said);
    }
}

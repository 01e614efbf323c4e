//! The traffic of links between two samples.

use std::collections::HashMap;

use ayre::network::{LinkReport, WireReport, WireReports};

use crate::info::tables::{Tables, again, number};

/// A port, as far as two looks can tell that it is the same.
type PortKey = (u32, usize);

/// The numbers of a sample to which the next one is compared.
#[derive(Default)]
pub(super) struct Sample {
    ports: HashMap<PortKey, PortSample>,
}

struct PortSample {
    clock_ns: u64,
    bytes: [u64; 2],
    /// Counts by peer.
    links: HashMap<usize, Counts>,
}

/// Counts of a link's frames: new ones, retransmissions, arrivals.
type Counts = [u64; 3];

impl Sample {
    pub(super) fn take(seen: &WireReports) -> Self {
        let sample = |port: &WireReport| PortSample {
            clock_ns: port.clock_ns,
            bytes: bytes(port),
            links: port.links.iter().map(|link| (link.peer, counts(link))).collect(),
        };
        Self { ports: seen.reports.iter().map(|port| (key(port), sample(port))).collect() }
    }
}

/// The traffic between two samples.
#[derive(Default)]
pub(super) struct Traffic {
    pub(super) summary: String,
    pub(super) tables: Tables,
}

impl Traffic {
    /// Links that were not there before have no rates yet.
    pub(super) fn between(before: &Sample, seen: &WireReports) -> Self {
        let known = |port: &WireReport| {
            before.ports.get(&key(port)).filter(|old| old.clock_ns < port.clock_ns)
        };
        let (mut out, mut inward, mut refused) = (0.0, 0.0, 0);
        for port in &seen.reports {
            refused += port.refused;
            if let Some(old) = known(port) {
                let [sent, received] = bytes(port);
                out += rate(port, old, sent, old.bytes[0]);
                inward += rate(port, old, received, old.bytes[1]);
            }
        }
        let heads = ["sent/s", "arrived/s", "again/s", "again"];
        let tables = Tables::of(seen, &heads, |port, link| cells(port, link, known(port)));
        let summary = format!(
            "ports {}  links {}  out {:.2} MB/s  in {:.2} MB/s  refused {refused}",
            seen.reports.len(),
            tables.links(),
            out / 1e6,
            inward / 1e6,
        );
        Self { summary, tables }
    }
}

fn cells(port: &WireReport, link: &LinkReport, known: Option<&PortSample>) -> Vec<String> {
    let old = known.and_then(|old| Some((old, old.links.get(&link.peer)?)));
    let told = |index: usize| {
        old.map_or_else(
            || "-".to_owned(),
            |(old, before)| {
                number(rate(port, old, counts(link)[index], before[index]).round() as u64)
            },
        )
    };
    let [sent, resent, arrived] = [told(0), told(1), told(2)];
    vec![sent, arrived, resent, number(again(link))]
}

/// By the port's own clock, so that it does not matter when it answered.
fn rate(port: &WireReport, old: &PortSample, now: u64, before: u64) -> f64 {
    let seconds = (port.clock_ns - old.clock_ns) as f64 / 1e9;
    // A new link with the same peer begins to count again.
    now.saturating_sub(before) as f64 / seconds
}

fn key(port: &WireReport) -> PortKey {
    (port.process, port.number)
}

fn counts(link: &LinkReport) -> Counts {
    [link.sent, again(link), link.arrived]
}

fn bytes(port: &WireReport) -> [u64; 2] {
    let sum = |of: fn(&ayre::network::NetReport) -> u64| port.nets.iter().map(of).sum();
    [sum(|net| net.sent_bytes), sum(|net| net.received_bytes)]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn seen(clock_ns: u64, sent: u64) -> WireReports {
        let link = json!({
            "peer": 1, "state": "open", "is_sealed": true,
            "paths": [
                { "from": "127.0.0.1:1", "to": "127.0.0.1:2", "state": "dead",
                  "sent": 0, "delivered": 0, "lost": 0, "deaths": 1, "returns": 0 },
            ],
            "sent": sent, "arrived": sent, "told": 0, "repeated": 0, "foreign": 0, "malformed": 0,
            "again": { "overtaken": 1, "asked_for": 2, "timed_out": 3, "resynced": 4 },
            "early": 6, "resyncs": 7,
            "round_trip_ns": 20_000, "variation_ns": 1_000, "timeout_ns": 200_000,
            "window": 8.5, "in_flight": 3, "silent_ns": 5,
            "credit": [{ "channel": "posted", "room": 61, "given": 64 }],
        });
        let port: Value = json!({
            "format": 1, "process": 7, "program": "job", "number": 0, "clock_ns": clock_ns,
            "links": [link], "nets": [], "refused": 2, "malformed": 0,
            "buffers": { "in_all": 32, "given": 8, "reserved": 9 },
        });
        let mut seen = WireReports::default();
        seen.reports.push(from_value(port).unwrap());
        seen
    }

    // spec: WIRE-8
    #[test]
    fn rates_are_by_the_ports_own_clock() {
        let traffic = Traffic::between(&Sample::take(&seen(1_000, 10)), &seen(500_001_000, 30));
        let Tables { states, counts } = &traffic.tables;
        let cells: Vec<_> =
            [states, counts].into_iter().flat_map(|table| table[0].iter().zip(&table[1])).collect();
        let cell = |head: &str| &**cells.iter().find(|(name, _)| *name == head).unwrap().1;
        assert_eq!((cell("sent/s"), cell("arrived/s")), ("40", "40"));
        assert_eq!((cell("again/s"), cell("again")), ("0", "10"));
        assert_eq!((cell("paths"), cell("credit")), ("1 dead", "61"));
        assert_eq!((cell("link"), cell("rtt")), ("open, sealed", "20.0 us"));
        assert_eq!((cell("window"), cell("datagram")), ("3/8.5", "-"));
        assert_eq!((cell("early"), cell("resyncs"), cell("buffers")), ("6", "7", "8/9/15"));
        assert!(traffic.summary.contains("ports 1  links 1") && traffic.summary.ends_with("2"));
    }

    #[test]
    fn a_link_without_an_earlier_sample_has_no_rate() {
        let traffic = Traffic::between(&Sample::default(), &seen(1_000, 10));
        assert!(traffic.tables.counts[1].contains(&"-".to_owned()));
        // The same number, and another process's clock.
        let traffic = Traffic::between(&Sample::take(&seen(2_000, 10)), &seen(1_000, 10));
        assert!(traffic.tables.counts[1].contains(&"-".to_owned()));
    }
}

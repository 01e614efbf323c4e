//! The page that `ayre top --html` writes: the links at one moment, as bars and as tables, and the
//! connections of programs with the sockets library.

use anyhow::Result;
use ayre::network::{LinkReport, PathReport, WireReport, WireReports};

use super::rates::Traffic;
use crate::info::host_name;
use crate::info::links::remarks;
use crate::info::tables::again;
use crate::page::{Axis, Bar, Bars, Chart, Drawing, Page, Table, Unit, made_by};

/// Links that are drawn; the tables have all.
const DRAWN_MAX: usize = 24;

/// Explanations for a reader who has never seen the page.
const READING: [&str; 4] = [
    "A link joins two ports of different hosts; each of its ends is a line of its own. Processes \
     of one host share memory and have no link.",
    "A frame is sent again when it is lost or late. Some are on any busy network; many of one link \
     tell of a bad path, many of all links of a full one.",
    "A round trip is from a frame to the news of its arrival. It grows where frames wait.",
    "A path is a way from one address to another. A link lives as long as one of them does.",
];

/// A number of each link that is drawn.
struct Measure {
    title: &'static str,
    axis: &'static str,
    unit: Unit,
    of: fn(&LinkReport) -> f64,
}

const MEASURES: [Measure; 4] = [
    Measure {
        title: "Round trip",
        axis: "smoothed round trip",
        unit: Unit::Count,
        of: |link| link.round_trip_ns.unwrap_or(0) as f64 / 1e3,
    },
    Measure {
        title: "Frames sent",
        axis: "new frames with a payload",
        unit: Unit::Count,
        of: |link| link.sent as f64,
    },
    Measure {
        title: "Frames sent again",
        axis: "for whatever reason",
        unit: Unit::Count,
        of: |link| again(link) as f64,
    },
    Measure {
        title: "Frames lost on their paths",
        axis: "lost frames",
        unit: Unit::Count,
        of: |link| link.paths.iter().map(|path| path.lost).sum::<u64>() as f64,
    },
];

/// The page of what was seen, and of what happened since the look before.
pub(super) fn page(
    seen: &WireReports,
    traffic: &Traffic,
    connections: &[Vec<String>],
) -> Result<Page> {
    let mut page = Page::new(&format!("ayre top on {}", host_name()), &made_by());
    page.text(&traffic.summary);
    remarks(seen).lines().for_each(|remark| page.text(remark));
    page.heading("How to read this");
    page.list(&READING);
    let links: Vec<_> = seen
        .reports
        .iter()
        .flat_map(|port| port.links.iter().map(move |link| (port, link)))
        .collect();
    if !links.is_empty() {
        show_links(&mut page, &links, traffic)?;
    }
    if !connections.is_empty() {
        page.heading("Connections of programs with the sockets library");
        page.table(&table(connections));
    }
    Ok(page)
}

fn show_links(
    page: &mut Page,
    links: &[(&WireReport, &LinkReport)],
    traffic: &Traffic,
) -> Result<()> {
    page.heading("Links");
    if links.len() > DRAWN_MAX {
        page.text(&format!("Drawn are the {DRAWN_MAX} greatest of {} links.", links.len()));
    }
    page.charts(&MEASURES.each_ref().map(|measure| chart(measure, links)))?;
    page.heading("How links are");
    page.table(&table(&traffic.tables.states));
    page.heading("What links have done");
    page.table(&table(&traffic.tables.counts));
    page.heading("Paths");
    page.table(&paths(links));
    Ok(())
}

fn name(port: &WireReport, link: &LinkReport) -> String {
    format!("{} {}: {} to {}", port.process, port.program, port.number, link.peer)
}

fn chart(measure: &Measure, links: &[(&WireReport, &LinkReport)]) -> Chart {
    let is_time = measure.title == MEASURES[0].title;
    let told = |value: f64| match is_time {
        true => Unit::Nanoseconds.label(1e3 * value),
        false => value.to_string(),
    };
    let mut bars: Vec<_> = links
        .iter()
        .map(|(port, link)| {
            let value = (measure.of)(link);
            Bar { name: name(port, link), value, told: told(value) }
        })
        .collect();
    let mut numbers = Table::new(["link", measure.title]);
    numbers.lines = bars.iter().map(|bar| vec![bar.name.clone(), bar.told.clone()]).collect();
    bars.sort_by(|one, other| other.value.total_cmp(&one.value));
    bars.truncate(DRAWN_MAX);
    let axis = if is_time { format!("{}, us", measure.axis) } else { measure.axis.to_owned() };
    let axis = Axis::new(&axis, measure.unit);
    let drawing = Drawing::Bars(Bars { axis, most: f64::INFINITY, mark: None, bars });
    Chart { title: measure.title.to_owned(), drawing, numbers }
}

/// A table of the terminal.
fn table(lines: &[Vec<String>]) -> Table {
    let (heads, lines) =
        lines.split_first().map_or((&[][..], &[][..]), |(heads, lines)| (heads, lines));
    Table { heads: heads.to_vec(), lines: lines.to_vec() }
}

fn paths(links: &[(&WireReport, &LinkReport)]) -> Table {
    let heads = ["link", "from", "to", "state", "sent", "delivered", "lost", "deaths", "returns"];
    let mut table = Table::new(heads);
    for (port, link) in links {
        for path in &link.paths {
            let PathReport { from, to, state, sent, delivered, lost, deaths, returns, .. } = path;
            let mut line = vec![name(port, link), from.to_string(), to.to_string()];
            line.push(format!("{state:?}").to_lowercase());
            line.extend([sent, delivered, lost, deaths, returns].map(u64::to_string));
            table.lines.push(line);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn links_are_drawn_and_their_paths_are_told() {
        let link = |peer: usize| {
            json!({
                "peer": peer, "state": "open", "is_sealed": true,
                "paths": [{ "from": "127.0.0.1:1", "to": "127.0.0.1:2", "state": "suspect",
                  "sent": 50, "delivered": 40, "lost": 7, "deaths": 1, "returns": 0 }],
                "sent": 45, "arrived": 38, "told": 0, "repeated": 0, "foreign": 0, "malformed": 0,
                "again": { "overtaken": 1, "asked_for": 2, "timed_out": 3, "resynced": 4 },
                "round_trip_ns": 20_000, "variation_ns": 1_000, "timeout_ns": 200_000,
                "window": 8.5, "in_flight": 3, "silent_ns": 5, "credit": [],
            })
        };
        let port = |links: Vec<serde_json::Value>| {
            json!({
                "format": 1, "process": 7, "program": "<job>", "number": 0, "clock_ns": 5,
                "links": links, "nets": [], "refused": 2, "malformed": 0,
            })
        };
        let page_of = |count: usize| {
            let mut seen = WireReports::default();
            seen.reports.push(from_value(port((1..=count).map(link).collect())).unwrap());
            let traffic = Traffic::between(&super::super::rates::Sample::default(), &seen);
            page(&seen, &traffic, &[]).unwrap().html()
        };
        let html = page_of(1);
        for told in ["7 &lt;job&gt;: 0 to 1", "suspect", "20 us", ">10</td>", ">7</td>", ">45</td>"]
        {
            assert!(html.contains(told), "{told} in {html}");
        }
        assert_eq!(html.matches("<figure>").count(), MEASURES.len());
        let bars = |html: &str| html.matches("fill=\"#0072B2\" stroke").count();
        assert_eq!(bars(&page_of(30)), bars(&page_of(DRAWN_MAX)));
        assert!(bars(&page_of(1)) < bars(&page_of(2)));
        assert!(page_of(30).contains("greatest of 30 links"));
        assert!(!page_of(0).contains("<figure>"));
        let connections = [["local"], ["10.0.0.1:80"]].map(|line| line.map(str::to_owned).to_vec());
        let none = WireReports::default();
        let html = page(&none, &Traffic::default(), &connections).unwrap().html();
        assert!(html.contains("sockets library") && html.contains("10.0.0.1:80"), "{html}");
    }
}

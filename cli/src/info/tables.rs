//! Tables of links, which fit a terminal: the first says how each link is, the second what it has
//! done and what room it has.

use ayre::network::{
    BuffersReport, LinkReport, LinkState, PathReport, PathState, WireReport, WireReports,
};

/// Characters that no line exceeds.
const WIDTH_MAX: usize = 100;
/// Characters between two columns.
pub(crate) const GAP: usize = 2;
/// The column that gives way where a table would be too wide: the number next to it tells as much.
const PROGRAM: usize = 1;

/// Two tables with a line for each link, below a line of heads; nothing at all without links.
#[derive(Default)]
pub(crate) struct Tables {
    /// How links are.
    pub(crate) states: Vec<Vec<String>>,
    /// The counts of their work.
    pub(crate) counts: Vec<Vec<String>>,
}

impl Tables {
    /// All links, in the order of their ports; `own` gives those counts that `heads` names.
    pub(crate) fn of(
        seen: &WireReports,
        heads: &[&str],
        mut own: impl FnMut(&WireReport, &LinkReport) -> Vec<String>,
    ) -> Self {
        let mut tables = Self::default();
        for port in &seen.reports {
            for link in &port.links {
                tables.states.push(state_cells(port, link));
                tables.counts.push(count_cells(port, link, own(port, link)));
            }
        }
        if !tables.states.is_empty() {
            let states = ["link", "paths", "rtt", "window", "datagram"];
            tables.states.insert(0, cells(["process", "program", "rank", "peer"], states));
            let more = ["resyncs", "early", "credit", "buffers"];
            let heads = heads.iter().copied().chain(more);
            tables.counts.insert(0, cells(["process", "rank", "peer"], heads));
            narrow(&mut tables.states);
        }
        tables
    }

    /// How many links there are.
    pub(crate) fn links(&self) -> usize {
        self.states.len().saturating_sub(1)
    }

    /// One below the other.
    pub(crate) fn text(&self) -> String {
        match self.links() {
            0 => String::new(),
            _ => aligned(&self.states) + "\n" + &aligned(&self.counts),
        }
    }
}

fn cells<'a>(
    first: impl IntoIterator<Item = &'a str>,
    rest: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    first.into_iter().chain(rest).map(str::to_owned).collect()
}

fn state_cells(port: &WireReport, link: &LinkReport) -> Vec<String> {
    vec![
        port.process.to_string(),
        port.program.clone(),
        port.number.to_string(),
        link.peer.to_string(),
        state(link),
        paths(link),
        link.round_trip_ns.map_or_else(|| "-".to_owned(), time),
        window(link),
        datagram(link),
    ]
}

fn count_cells(port: &WireReport, link: &LinkReport, own: Vec<String>) -> Vec<String> {
    let who = [port.process.to_string(), port.number.to_string(), link.peer.to_string()];
    let more = [number(link.resyncs), number(link.early), credit(link), buffers(&port.buffers)];
    who.into_iter().chain(own).chain(more).collect()
}

/// Frames that were sent again, for whatever reason.
pub(crate) fn again(link: &LinkReport) -> u64 {
    let again = link.again;
    again.overtaken + again.asked_for + again.timed_out + again.resynced
}

/// New frames that may be sent, by channel.
fn credit(link: &LinkReport) -> String {
    let rooms: Vec<_> = link.credit.iter().map(|credit| credit.room.to_string()).collect();
    rooms.join("/")
}

/// Those that links have, those kept for links to come, and those left, of the whole port.
fn buffers(buffers: &BuffersReport) -> String {
    let BuffersReport { in_all, given, reserved, .. } = *buffers;
    // What a port tells is a claim.
    let left = in_all.saturating_sub(given).saturating_sub(reserved);
    format!("{given}/{reserved}/{left}")
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
    told.join(" ")
}

/// Frames that are under way, of those that may be.
fn window(link: &LinkReport) -> String {
    match link.window {
        few @ ..10.0 => format!("{}/{few:.1}", link.in_flight),
        many => format!("{}/{many:.0}", link.in_flight),
    }
}

/// Bytes of the longest datagram that every path takes whole; behind it, where that was more, what
/// it was when the link was opened.
fn datagram(link: &LinkReport) -> String {
    let least = |of: fn(&PathReport) -> u32| link.paths.iter().map(of).min().unwrap_or(0);
    match (least(|path| path.datagram), least(|path| path.datagram_at_opening)) {
        (0, _) => "-".to_owned(),
        (now, opened) if now == opened => now.to_string(),
        (now, opened) => format!("{now}/{opened}"),
    }
}

/// Nanoseconds as people read them.
fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// A count in five characters at most: from 100000 on in thousands and so on, rounded down.
pub(crate) fn number(count: u64) -> String {
    if count < 100_000 {
        return count.to_string();
    }
    let mut rest = count / 1000;
    for unit in ["k", "M", "G", "T", "P"] {
        if rest < 10_000 {
            return format!("{rest}{unit}");
        }
        rest /= 1000;
    }
    format!("{rest}E")
}

/// Cuts the programs' names so that lines are not too wide; what is left of one ends with a dot.
fn narrow(lines: &mut [Vec<String>]) {
    let widths = widths(lines);
    let all = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let room = widths[PROGRAM].saturating_sub(all.saturating_sub(WIDTH_MAX));
    for name in lines.iter_mut().skip(1).map(|line| &mut line[PROGRAM]) {
        if name.chars().count() > room {
            *name = name.chars().take(room.saturating_sub(1)).chain(['.']).collect();
        }
    }
}

/// Lines of cells, each column as wide as its longest cell.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let widths = widths(lines);
    let mut text = String::new();
    for line in lines {
        let cells: Vec<_> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += cells.join(&" ".repeat(GAP)).trim_end();
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
    use ayre::network::LinkChannel;
    use serde_json::{from_value, json};

    use super::*;

    /// A port with one link, whose numbers are as wide as they get.
    fn wide(program: &str) -> WireReports {
        let path = |state: &str| {
            json!({
                "from": "127.0.0.1:1", "to": "127.0.0.1:2", "state": state,
                "sent": 0, "delivered": 0, "lost": 0, "deaths": 0, "returns": 0,
                "datagram": 1184, "datagram_at_opening": 8972,
            })
        };
        let paths = ["live", "suspect", "dead", "dead"].map(path);
        let channels = [LinkChannel::Posted, LinkChannel::NonPosted, LinkChannel::Response];
        let credit = channels.map(|channel| json!({ "channel": channel, "room": 64, "given": 64 }));
        let many = u64::MAX / 4;
        let link = json!({
            "peer": 1023, "state": "opening", "is_sealed": true,
            "paths": paths,
            "sent": many, "arrived": many, "told": 0, "repeated": 0, "foreign": 0, "malformed": 0,
            "again": { "overtaken": many, "asked_for": many, "timed_out": many, "resynced": many },
            "resyncs": many, "early": many,
            "round_trip_ns": 9_999_900_000_u64, "variation_ns": 1_000, "timeout_ns": 200_000,
            "window": 256.0, "in_flight": 192, "silent_ns": 5, "credit": credit,
        });
        let port = json!({
            "format": 1, "process": 4_194_304, "program": program, "number": 1023, "clock_ns": 5,
            "links": [link], "nets": [], "refused": 2, "malformed": 0,
            "buffers": { "in_all": 32768, "given": 10_000, "reserved": 12_000 },
        });
        let mut seen = WireReports::default();
        seen.reports.push(from_value(port).unwrap());
        seen
    }

    fn tables(seen: &WireReports) -> Tables {
        // As many counts of its own as any table has.
        let heads = ["sent/s", "arrived/s", "again/s", "again"];
        Tables::of(seen, &heads, |_, link| vec![number(again(link)); heads.len()])
    }

    // spec: WIRE-8
    #[test]
    fn early_frames_buffers_and_resyncs_are_shown() {
        let mut seen = wide("job");
        let link = &mut seen.reports[0].links[0];
        (link.early, link.resyncs) = (123, 4);
        let counts = tables(&seen).counts;
        let cell = |head: &str| {
            let column = counts[0].iter().position(|name| name == head).unwrap();
            &*counts[1][column]
        };
        assert_eq!((cell("early"), cell("resyncs")), ("123", "4"));
        assert_eq!((cell("buffers"), cell("credit")), ("10000/12000/10768", "64/64/64"));
        assert_eq!(counts[0].len(), counts[1].len());
    }

    // spec: WIRE-8
    #[test]
    fn how_long_datagrams_may_be_is_shown_and_how_long_they_were() {
        let mut seen = wide("job");
        let shown = |seen: &WireReports| tables(seen).states[1].last().cloned();
        assert_eq!(shown(&seen).as_deref(), Some("1184/8972"));
        let link = &mut seen.reports[0].links[0];
        link.paths.iter_mut().for_each(|path| path.datagram = 8972);
        assert_eq!(shown(&seen).as_deref(), Some("8972"));
        seen.reports[0].links[0].paths[2].datagram = 512;
        assert_eq!(shown(&seen).as_deref(), Some("512/8972"), "the shortest of all paths");
        let link = &mut seen.reports[0].links[0];
        link.paths.iter_mut().for_each(|path| path.datagram = 0);
        assert_eq!(shown(&seen).as_deref(), Some("-"), "an older version tells nothing");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        for program in ["job", "a_program_of_a_name_that_alone_would_fill_half_of_a_line_of_text"] {
            let text = tables(&wide(program)).text();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(WIDTH_MAX), "{text}");
        }
    }

    #[test]
    fn a_programs_name_is_cut_only_where_a_line_would_be_too_wide() {
        let name = "a_program_of_a_long_name";
        let mut seen = wide(name);
        assert_eq!(tables(&seen).states[1][PROGRAM], "a_progra.");
        let link = &mut seen.reports[0].links[0];
        link.paths.truncate(1);
        assert_eq!(tables(&seen).states[1][PROGRAM], name);
    }

    #[test]
    fn no_links_are_no_tables() {
        let mut seen = wide("job");
        seen.reports[0].links.clear();
        assert_eq!((tables(&seen).links(), &*tables(&seen).text()), (0, ""));
    }

    #[test]
    fn implausible_buffer_counts_are_shown_without_a_panic() {
        let told = json!({ "in_all": 5, "given": u32::MAX, "reserved": 7 });
        assert_eq!(buffers(&from_value(told).unwrap()), "4294967295/7/0");
        assert_eq!(buffers(&BuffersReport::default()), "0/0/0", "an older version tells nothing");
    }

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let line = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = aligned(&[line(["a", "head"]), line(["long", "b"])]);
        assert_eq!(text, "a     head\nlong  b\n");
    }

    #[test]
    fn times_have_units() {
        let times = [1500, 25_000_000, 9_999_900_000].map(time);
        assert_eq!(times, ["1.5 us", "25.0 ms", "10.0 s"]);
    }

    #[test]
    fn large_counts_have_units() {
        let counts = [99_999, 100_000, 9_999_999, 10_000_000, u64::MAX];
        assert_eq!(counts.map(number), ["99999", "100k", "9999k", "10M", "18E"]);
    }
}

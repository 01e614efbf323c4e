//! The operation of a single interface: its time and its rate, and a trace of its units.
//!
//! Perfetto and Chrome show a process for each place, and in it a track for each unit. Each item
//! has a track of its own, on which its steps and its waits follow each other.
use super::Point;
use super::trace::write_line;
use crate::machine::{Machine, Stay};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The operation of an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// The time of one that is alone, in picoseconds.
    pub latency_ps: u64,
    /// The parts of that time, which sum to it exactly.
    pub parts_ps: Vec<(String, u64)>,
    /// Operations per second in a stream.
    pub rate: f64,
    /// Bytes per second in that stream.
    pub bandwidth: f64,
    /// How busy the stream keeps each unit.
    pub units: Vec<UnitLoad>,
}

/// How busy a unit is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitLoad {
    /// Where it is.
    pub place: String,
    /// Its name.
    pub unit: String,
    /// The share of time for which it is kept.
    pub busy: f64,
}

impl Interface {
    /// The picoseconds of a part; zero, if there is none of this name.
    pub fn part_ps(&self, name: &str) -> u64 {
        let found = self.parts_ps.iter().find(|(other, _)| other == name);
        found.map_or(0, |(_, picos)| *picos)
    }

    /// The unit that is kept for the greatest share: the bottleneck of the stream.
    pub fn busiest(&self) -> Option<&UnitLoad> {
        self.units.iter().max_by(|one, other| one.busy.total_cmp(&other.busy))
    }
}

/// The parts of all interfaces' times, in the order in which they come first.
pub fn part_names<'a>(points: impl IntoIterator<Item = &'a Point>) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    let interfaces = points.into_iter().filter_map(|point| point.interface.as_ref());
    for (name, _) in interfaces.flat_map(|interface| &interface.parts_ps) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The units of a machine, and the stays of items at them.
#[derive(Clone, Debug)]
pub struct UnitTrace {
    /// The place and the name of each unit, and its servers.
    units: Vec<(String, String, u32)>,
    /// Slices of units: the unit, and the server of it.
    kept: Vec<(usize, u32, Stay)>,
    stays: Vec<Stay>,
}

impl UnitTrace {
    pub(crate) fn new(machine: &Machine) -> Self {
        let labels: Vec<_> = machine.labels().collect();
        let name = |(_, (place, name), servers): &(_, (&str, &str), u32)| {
            ((*place).to_owned(), (*name).to_owned(), *servers)
        };
        let units: Vec<_> = labels.iter().map(name).collect();
        // Each server is free from a time on.
        let mut free: Vec<Vec<Time>> = vec![vec![]; units.len()];
        let mut kept = vec![];
        for stay in machine.stays() {
            let at = labels.iter().position(|(unit, ..)| Some(*unit) == stay.unit);
            let (Some(at), Some(until)) = (at, stay.free) else { continue };
            if until == stay.begun {
                continue;
            }
            let servers = &mut free[at];
            let server = servers.iter().position(|free| *free <= stay.begun);
            let server = server.unwrap_or(servers.len());
            servers.resize(servers.len().max(server + 1), Time::ZERO);
            servers[server] = until;
            kept.push((at, server as u32, *stay));
        }
        Self { units, kept, stays: machine.stays().to_vec() }
    }

    /// How many times units were kept.
    pub fn slices(&self) -> usize {
        self.kept.len()
    }

    /// Writes the trace as JSON.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        let mut places: Vec<&str> = vec![];
        for (place, ..) in &self.units {
            if !places.contains(&place.as_str()) {
                places.push(place);
            }
        }
        let process = |place: &str| places.iter().position(|other| *other == place).unwrap_or(0);
        for (number, place) in places.iter().enumerate() {
            write_line(to, &meta("process_name", number, 0, place))?;
        }
        for (at, server, stay) in &self.kept {
            let (place, name, servers) = &self.units[*at];
            let (process, thread) = (process(place), track(*at, *server));
            let number = if *servers > 1 { format!("{name} {}", server + 1) } else { name.clone() };
            write_line(to, &meta("thread_name", process, thread, &number))?;
            let until = stay.free.unwrap_or(stay.goes_on);
            let title = format!("item {}, {}", stay.item, stay.part.0);
            write_line(to, &slice(&title, (process, thread), stay.begun, until))?;
        }
        for stay in &self.stays {
            let track = (places.len(), stay.item);
            if stay.begun > stay.came {
                write_line(to, &slice("wait", track, stay.came, stay.begun))?;
            }
            if stay.goes_on > stay.begun {
                write_line(to, &slice(stay.part.0, track, stay.begun, stay.goes_on))?;
            }
        }
        // No comma stands behind the last one.
        writeln!(to, "{}\n]}}", meta("process_name", places.len(), 0, "items"))
    }
}

/// The number of a track: many servers have tracks of their own.
fn track(unit: usize, server: u32) -> usize {
    unit << 16 | server as usize
}

fn meta(kind: &str, process: usize, thread: usize, name: &str) -> Value {
    json!({"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}})
}

fn slice(name: &str, (process, thread): (usize, usize), from: Time, to: Time) -> Value {
    let micros = |time: Time| time.0 as f64 / 1e6;
    let (from, span) = (micros(from), micros(to - from));
    json!({"ph": "X", "name": name, "pid": process, "tid": thread, "ts": from, "dur": span})
}

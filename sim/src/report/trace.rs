//! A run as a trace that Perfetto and Chrome show: a process for each router, a track for each of
//! its outputs, a slice for each packet on a link.
use crate::network::{Record, Slice};
use crate::time::Time;
use crate::topology::{Port, Topology};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Packets on links, with the tracks that they are shown on.
#[derive(Clone, Debug)]
pub struct Trace {
    topology: Topology,
    start: Time,
    slices: Vec<Slice>,
    missed: u64,
}

impl Trace {
    pub(crate) fn new(topology: Topology, start: Time, record: &Record) -> Self {
        let missed = record.missed();
        Self { topology, start, slices: record.slices().to_vec(), missed }
    }

    /// The packets on links.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// How many more there were: a trace is limited.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Writes the trace as JSON.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        let tracks: BTreeSet<_> =
            self.slices.iter().map(|slice| (slice.router, slice.port)).collect();
        for (router, port) in &tracks {
            let to_where = self.end_of(*router, *port);
            let meta = |what: &str, name: String| {
                let args = json!({"name": name});
                json!({"ph": "M", "name": what, "pid": router, "tid": port, "args": args})
            };
            write_line(to, &meta("process_name", format!("router {router}")))?;
            write_line(to, &meta("thread_name", format!("port {port} {to_where}")))?;
        }
        for slice in &self.slices {
            write_line(to, &self.event(slice))?;
        }
        // No comma stands behind the last one.
        let end = json!({
            "ph": "M", "name": "process_labels", "pid": 0,
            "args": {"labels": format!("{} packets on links not shown", self.missed)},
        });
        writeln!(to, "{end}\n]}}")
    }

    fn event(&self, slice: &Slice) -> Value {
        let micros = |time: Time| time.0 as f64 / 1e6;
        let Slice { source, target, bytes, .. } = slice;
        json!({
            "ph": "X",
            "name": format!("{source} to {target}, {bytes} B"),
            "pid": slice.router,
            "tid": slice.port,
            "ts": micros(slice.from - self.start),
            "dur": micros(slice.to - slice.from),
            "args": {"age_ns": (slice.from - slice.born).nanos()},
        })
    }

    /// Where an output leads.
    fn end_of(&self, router: u32, port: u16) -> String {
        let at = |other: &Port| other.router == router && other.port == port;
        if let Some(link) = self.topology.links.iter().find(|link| at(&link.from)) {
            return format!("to router {}", link.to.router);
        }
        let node = self.topology.nodes.iter().position(|node| at(&node.eject));
        node.map_or(String::new(), |node| format!("to node {node}"))
    }
}

pub(super) fn write_line(to: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(to, "{value},")
}

//! A run as a trace that Perfetto and Chrome show: a process for each router, a track for each of
//! its outputs, a slice for each packet on a link. The longest queues have counters.
use crate::network::{Queue, Record, Slice};
use crate::time::Time;
use crate::topology::{Port, Topology};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Packets on links, with the tracks that they are shown on.
#[derive(Clone, Debug)]
pub struct Trace {
    topology: Topology,
    start: Time,
    slices: Vec<Slice>,
    missed: u64,
    /// The queues behind links that were longest in the mean.
    queues: Vec<Queue>,
}

/// Queues with a counter at most.
const QUEUES_MAX: usize = 16;

impl Trace {
    pub(crate) fn new(topology: Topology, start: Time, record: &Record) -> Self {
        let missed = record.missed();
        let is_shown = |queue: &&Queue| queue.from.is_some() && queue.most > 0;
        let mut queues: Vec<_> = record.queues().iter().filter(is_shown).copied().collect();
        queues.sort_by(|one, other| other.mean.total_cmp(&one.mean));
        queues.truncate(QUEUES_MAX);
        Self { topology, start, slices: record.slices().to_vec(), missed, queues }
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
        for queue in &self.queues {
            for (at, bytes) in self.lengths(queue) {
                write_line(to, &self.counter(queue, at, bytes))?;
            }
        }
        // No comma stands behind the last one.
        let end = json!({
            "ph": "M", "name": "process_labels", "pid": 0,
            "args": {"labels": format!("{} packets on links not shown", self.missed)},
        });
        writeln!(to, "{end}\n]}}")
    }

    fn event(&self, slice: &Slice) -> Value {
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

    /// The times at which a queue changes, and its bytes from then on.
    fn lengths(&self, queue: &Queue) -> Vec<(Time, u64)> {
        let mut changes: BTreeMap<Time, (u64, u64)> = BTreeMap::new();
        let mut last = Time::ZERO;
        for slice in self.slices.iter().filter(|slice| slice.queue == queue.slot) {
            let came = slice.came.max(self.start);
            changes.entry(came).or_default().0 += u64::from(slice.bytes);
            changes.entry(slice.to).or_default().1 += u64::from(slice.bytes);
            last = last.max(came);
        }
        // Of packets that come later some may not leave before the trace ends.
        let is_whole = self.missed == 0 && queue.left == 0;
        let known = changes.into_iter().filter(|(at, _)| is_whole || *at <= last);
        let mut bytes = 0;
        let length = |(at, (more, less))| {
            bytes = bytes + more - less;
            (at, bytes)
        };
        known.map(length).collect()
    }

    fn counter(&self, queue: &Queue, at: Time, bytes: u64) -> Value {
        let Queue { router, port, channel, from, .. } = queue;
        let from = from.map_or(String::new(), |from| format!(" from router {from}"));
        json!({
            "ph": "C",
            "name": format!("queue of port {port}{from}, channel {channel}"),
            "pid": router,
            "ts": micros(at - self.start),
            "args": {"bytes": bytes},
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

fn micros(time: Time) -> f64 {
    time.0 as f64 / 1e6
}

pub(super) fn write_line(to: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(to, "{value},")
}

//! Results of scenarios: what each point gave, as values, as JSON and as CSV.
mod gather;
mod layout;
mod table;
mod trace;
mod units;

pub(crate) use gather::{Replica, Timeline, gather, is_carried};
pub use trace::Trace;
pub use units::{Interface, UnitLoad, UnitTrace, part_names};

use crate::stats::Interval;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The results of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The number of this form of results: [`FORMAT`].
    pub format: u32,
    /// The scenario's name.
    pub name: String,
    /// Its points, in the order of the file's lists.
    pub points: Vec<Point>,
    /// Whether all points and replicas have run to their end.
    pub complete: bool,
}

/// The number of the form of results.
pub const FORMAT: u32 = 1;

/// A mean, and how far the true one may be from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half of the width of the 95 % confidence interval; infinite if there are too few values,
    /// which JSON writes as `null`.
    #[serde(with = "finite")]
    pub half_width: f64,
}

/// How a point ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The network carries the load.
    Stable,
    /// It does not: packets wait for longer and longer, and the delays depend on how long was
    /// measured.
    Unstable,
    /// Packets wait for each other in a ring.
    Deadlocked,
    /// It was stopped before any packet was measured.
    NotRun,
    /// A script did not do what it says, or a node waits for ever: a note says where.
    Failed,
}

/// The results of a point: one value for each parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The parameters with several values in the scenario, and theirs here.
    pub swept: Vec<(String, String)>,
    /// All parameters that are used, and their values.
    pub settings: Vec<(String, String)>,
    /// How it ended.
    pub verdict: Verdict,
    /// The greatest load that the network carries, if it was looked for: the results are those of
    /// this load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Estimate>,
    /// The end of the schedule, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The operation of a single interface, if that was all: then there are no packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<Interface>,
    /// The course of the script, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Course>,
    /// One sentence for each thing to know about these results.
    pub notes: Vec<String>,
    /// Replicas with results.
    pub replicas: u32,
    /// Packets measured.
    pub packets: u64,
    /// Delay from birth to delivery, in nanoseconds. The interval is that of the replicas' means;
    /// of one replica alone, that of batches.
    pub delay_ns: Estimate,
    /// Shares of packets, and the delay in nanoseconds that they did not exceed.
    pub percentiles_ns: Vec<(f64, f64)>,
    /// Delays, from the least to that of all but one in a thousand, in parts of equal width.
    pub histogram: Vec<Bin>,
    /// Bytes that nodes made, as a share of their links' rate.
    pub offered: Estimate,
    /// Bytes that came to their targets, likewise.
    pub accepted: Estimate,
    /// Gigabits in a second that came to each node.
    pub gigabits: f64,
    /// Links that packets passed between routers, in the mean.
    pub hops: f64,
    /// Where the time of all packets went.
    pub parts: Parts,
    /// How busy links were in the first replica.
    pub links: Links,
    /// How much room of buffers was taken in the first replica.
    #[serde(default)]
    pub queues: Queues,
    /// The first replica over time.
    pub windows: Vec<Window>,
    /// A number that follows from all deliveries and their times.
    pub course: u64,
}

/// The results of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// When its last rank has finished, in nanoseconds.
    pub end_ns: Estimate,
    /// Operations, and arrivals of messages.
    pub events: u64,
    /// The time of the first replica's critical path by what was done: the parts sum to its end.
    pub path_ns: Vec<(String, f64)>,
}

/// The course of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// When all nodes had ended, in nanoseconds.
    pub end_ns: f64,
    /// Nodes, and when each of them ended.
    pub nodes_ns: Vec<(u32, f64)>,
    /// The times of operations by their kinds, in the order in which those ended first.
    pub operations: Vec<OperationTimes>,
}

/// The times of operations of one kind, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationTimes {
    /// The statement.
    pub operation: String,
    /// How many there were.
    pub count: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The shortest time.
    pub least_ns: f64,
    /// The longest one.
    pub most_ns: f64,
}

/// The packets with a delay in a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The least delay, in nanoseconds.
    pub from_ns: f64,
    /// The greatest one.
    pub to_ns: f64,
    /// The packets.
    pub packets: u64,
}

/// The time of all packets by where it went, in picoseconds: the parts sum to the delay exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// In the queue of the source.
    pub queued_ps: u64,
    /// For outputs and credits in the network.
    pub waited_ps: u64,
    /// On wires and in the pipelines of routers, and the passing of the packet itself.
    pub moved_ps: u64,
    /// All of it.
    pub delay_ps: u64,
}

/// How busy links are, and where they are on a drawing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// The busy share of the busiest link.
    pub most: f64,
    /// That of all links in the mean.
    pub mean: f64,
    /// Where each router is, from 0 to 1 to the right and down. It is empty where there are more
    /// links than a drawing can show.
    pub routers: Vec<(f64, f64)>,
    /// Links between routers; likewise.
    pub each: Vec<LinkLoad>,
}

/// How busy a link is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkLoad {
    /// The router that it begins at.
    pub from: u32,
    /// The router that it ends at.
    pub to: u32,
    /// The share of time for which it is busy.
    pub busy: f64,
}

/// How long the queues in the buffers behind links are, in bytes. A packet is in its queue from
/// when it may ask for an output until its tail has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queues {
    /// The length of all of them in the mean.
    pub mean: f64,
    /// The longest one at its longest time.
    pub most: u64,
    /// The one that is longest in the mean, if any has been used.
    pub longest: Option<Queue>,
}

/// A queue of a router.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// The router.
    pub router: u32,
    /// The input port.
    pub port: u16,
    /// The virtual channel.
    pub channel: u32,
    /// The router at the other end of the link.
    pub from: u32,
    /// Its length in the mean, in bytes.
    pub mean: f64,
    /// Its length when it was longest.
    pub most: u64,
}

/// A part of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its beginning, in nanoseconds from that of the measurement.
    pub from_ns: f64,
    /// Packets on their way, queues of sources included, when it began.
    pub backlog: u64,
    /// The busy share of all links between routers, in the mean.
    pub mean: f64,
    /// That of the busiest one.
    pub most: f64,
    /// The length of queues in buffers behind links, in bytes, in the mean.
    #[serde(default)]
    pub queue_mean: f64,
    /// That of the longest one at its longest time.
    #[serde(default)]
    pub queue_most: u64,
}

/// Results that cannot be read or written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The text is no JSON of results.
    #[error("these are no results: {0}")]
    Json(#[from] serde_json::Error),
    /// They have another form.
    #[error("these results have form {0}, and this program reads form {FORMAT}")]
    Format(u32),
    /// CSV cannot be written.
    #[error("could not write CSV: {0}")]
    Csv(#[from] csv::Error),
}

impl Results {
    /// As JSON.
    ///
    /// # Errors
    /// See [`ReportError`].
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// See [`ReportError`].
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        let results: Self = serde_json::from_str(text)?;
        if results.format != FORMAT {
            return Err(ReportError::Format(results.format));
        }
        Ok(results)
    }

    /// Whether a point is one that the network does not carry, or whose script failed.
    pub fn is_unstable(&self) -> bool {
        use Verdict::{Deadlocked, Failed, Unstable};
        let bad = |point: &Point| matches!(point.verdict, Unstable | Deadlocked | Failed);
        self.points.iter().any(bad)
    }
}

impl From<Interval> for Estimate {
    fn from(Interval { mean, half_width }: Interval) -> Self {
        Self { mean, half_width }
    }
}

/// Numbers that may be infinite.
mod finite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        number.is_finite().then_some(*number).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests;

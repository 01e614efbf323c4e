//! Schedules of parallel programs in the GOAL format, and the time that they take.
//!
//! A [`Schedule`] holds the operations of each rank: it computes, sends and receives. An operation
//! may require that others have ended or, with `irequires`, that they have begun. The text format
//! is that of LogGOPSim and ATLAHS, read unchanged:
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 100
//!   l2: send 8b to 1 tag 7
//!   l2 requires l1
//! }
//! rank 1 {
//!   l1: recv 8b from 0 tag 7
//! }
//! ```
//!
//! [`run`] takes the LogGOPS model: messages do not get into each other's way in the network. Its
//! times are those of LogGOPSim, to the nanosecond. [`run_over`] sends each message as packets
//! through a [`Network`](crate::network::Network) instead of `L` and `G`.
//!
//! # Differences from LogGOPSim
//!
//! - LogGOPSim sorts operations that become ready at once by their kind, and leaves the order of
//!   equal kinds to a sort that is not stable. Here the order of the file decides.
//! - A message of no bytes costs as much as one of a byte. LogGOPSim computes with -1 bytes.
//! - With several CPUs, LogGOPSim may begin an operation before what it requires has ended, if
//!   that runs on another CPU. [`Start`] chooses.
//! - The size of the message decides on rendezvous; LogGOPSim asks the receive, if it came later.
//! - A label may be defined once only. A file that ends early, a rank that is missing or there
//!   twice, and a message that nobody receives are errors.
mod machine;
mod matching;
mod packets;
mod pattern;
mod read;
mod recording;
mod schedule;
mod trail;

use crate::network::InjectError;
use crate::time::Time;
pub use machine::run;
pub use packets::{Packets, run_over};
pub use pattern::{Pattern, PatternError};
pub use read::ReadError;
pub use recording::{RecordingError, Recordings};
pub use schedule::{Kind, Operation, Schedule, ScheduleError};
use thiserror::Error;
pub use trail::{Step, StepKind};

/// When an operation may begin whose requirements run on another CPU of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When they have ended.
    WhenEnded,
    /// When its own CPU is free, as in LogGOPSim: simulated time may go back.
    WhenCpuFree,
}

/// How hosts handle messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The time of a CPU for each message, at both ends: `o`.
    pub overhead: Time,
    /// The time of a CPU for each further byte of a message: `O`.
    pub overhead_per_byte: Time,
    /// The time from message to message at a network interface: `g`.
    pub gap: Time,
    /// Longer messages wait for their receive (rendezvous): `S`, in bytes.
    pub eager: u64,
    /// When an operation may begin.
    pub start: Start,
}

/// The LogGOPS model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGops {
    /// The hosts.
    pub hosts: Hosts,
    /// The time of a message in the network: `L`.
    pub latency: Time,
    /// The time of each further byte of a message: `G`.
    pub gap_per_byte: Time,
}

impl LogGops {
    /// The parameters that LogGOPSim takes if none are given.
    pub const LOGGOPSIM: Self = Self {
        hosts: Hosts {
            overhead: Time::from_nanos(1_500),
            overhead_per_byte: Time::ZERO,
            gap: Time::from_nanos(1_000),
            eager: 65_535,
            start: Start::WhenCpuFree,
        },
        latency: Time::from_nanos(2_500),
        gap_per_byte: Time::from_nanos(6),
    };
}

/// The longest time of a parameter for a message, 1 s, and for a byte, 1 us.
pub const MESSAGE_TIME_MAX: Time = Time(1_000_000_000_000);
/// See [`MESSAGE_TIME_MAX`].
pub const BYTE_TIME_MAX: Time = Time(1_000_000);
/// No schedule takes longer: 2^62 ps, 53 days.
pub const END: Time = Time(1 << 62);

/// Why a schedule did not run to its end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// A parameter is too large.
    #[error("{what} is {time}, and the limit is {limit}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// Its value.
        time: Time,
        /// The limit.
        limit: Time,
    },
    /// An operation never ends.
    #[error(
        "line {line}: rank {rank} waits for ever: no other rank sends or receives this message"
    )]
    Stuck {
        /// The line of the operation.
        line: u32,
        /// Its rank.
        rank: u32,
    },
    /// A message was sent, and nobody receives it.
    #[error("line {line}: rank {rank} sends a message that nobody receives")]
    Unreceived {
        /// The line of the send.
        line: u32,
        /// Its rank.
        rank: u32,
    },
    /// The network has fewer nodes than the schedule ranks.
    #[error("the schedule has {ranks} ranks, and the network {nodes} nodes")]
    FewNodes {
        /// The number of ranks.
        ranks: u32,
        /// The number of nodes.
        nodes: u32,
    },
    /// A packet would have no room for a byte.
    #[error("packets have no bytes of messages: there has to be 1 at least")]
    EmptyPackets,
    /// A packet does not fit the network.
    #[error("line {line}: {error}")]
    Packet {
        /// The line of the send.
        line: u32,
        /// The network's reason.
        error: InjectError,
    },
    /// More packets would be on their way than the simulator's limit.
    #[error("line {line}: {packets} packets would be on their way, and the limit is {limit}")]
    ManyPackets {
        /// The line of the send at which they became too many.
        line: u32,
        /// How many they would be.
        packets: u64,
        /// The limit.
        limit: u64,
    },
    /// Packets in the network wait for each other in a ring.
    #[error("{0} messages are on their way, and no packet of them can move: a deadlock")]
    Deadlocked(u64),
    /// It takes longer than the simulator's limit.
    #[error("line {line}: the schedule takes longer than the limit of 53 days")]
    TooLong {
        /// The line of the operation at which it became too long.
        line: u32,
    },
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// When each rank's last CPU became idle for good.
    pub finish: Vec<Time>,
    /// Operations, and arrivals of messages.
    pub events: u64,
    /// The critical path, from the first step to the last one: each began when the one before
    /// allowed it. Empty if it was not asked for.
    pub path: Vec<Step>,
}

impl Report {
    /// When the last rank finished.
    pub fn end(&self) -> Time {
        self.finish.iter().copied().max().unwrap_or_default()
    }

    /// The first of the ranks that finished last.
    pub fn last_rank(&self) -> u32 {
        let end = self.end();
        self.finish.iter().position(|at| *at == end).unwrap_or_default() as u32
    }
}

//! Cases of the benchmark: the `Case` trait. A new operation implements it for one small struct,
//! which `catalogue.rs` names.
//!
//! All ranks build the same cases in the same order and call the same methods with the same
//! arguments. Rank 0's clock counts; the others, most often only one, mirror: they receive what
//! rank 0 sends, answer what it waits for, or do nothing where the operation is one-sided.

use std::time::Duration;

use anyhow::Result;

use super::side::Side;

/// How an operation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Without Ayre: a limit of the machine.
    Raw,
    /// By the initiator, straight into memory that the target handed over.
    Direct,
    /// By the target's engine.
    Mediated,
    /// Within one port.
    Loopback,
}

impl Path {
    /// The word in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Direct => "direct",
            Self::Mediated => "mediated",
            Self::Loopback => "loopback",
        }
    }
}

/// The quantity that is computed from the time of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Nanoseconds an operation.
    Latency,
    /// Million operations a second.
    Rate,
    /// 10^9 bytes a second.
    Bandwidth,
}

impl Metric {
    /// The word in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Rate => "rate",
            Self::Bandwidth => "bandwidth",
        }
    }

    /// The unit in the report.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Latency => "ns",
            Self::Rate => "Mop/s",
            Self::Bandwidth => "GB/s",
        }
    }

    /// The figure for operations of `size` bytes that take `nanoseconds` each.
    pub(crate) fn figure(self, nanoseconds: f64, size: usize) -> f64 {
        match self {
            Self::Latency => nanoseconds,
            Self::Rate => 1e3 / nanoseconds,
            Self::Bandwidth => size as f64 / nanoseconds,
        }
    }
}

/// One operation on one path, measured over a sweep of sizes.
pub(crate) trait Case {
    /// The operation's name in the report, which `--op` is matched against: "put-latency",
    /// "send-two-way".
    fn name(&self) -> &'static str;

    /// How it is executed; a limit, unless it says otherwise.
    fn path(&self) -> Path {
        Path::Raw
    }

    /// The sizes of the default sweep in bytes, ascending. `--size` may ask for any other size
    /// between the first and the last.
    fn sizes(&self) -> &'static [usize];

    /// The quantity that is reported.
    fn metric(&self) -> Metric;

    /// The limit of the machine that this is compared with at `size`; none for the limits
    /// themselves.
    fn raw(&self, _size: usize) -> Option<RawKind> {
        None
    }

    /// How many of the limit's operations one of this case's takes at the least: 2 where an answer
    /// is waited for.
    fn raw_steps(&self) -> u64 {
        1
    }

    /// How many operations one iteration is: 2 where a message goes there and back, or where both
    /// ranks work at the same time.
    fn operations(&self) -> u64 {
        1
    }

    /// Makes ready for runs of `size` bytes: allocates buffers. Called on all ranks, which are in
    /// step before, not after.
    fn prepare(&mut self, _side: &Side<'_>, _size: usize) -> Result<()> {
        Ok(())
    }

    /// Performs `iterations` of the operation and returns their time. All ranks come from a
    /// barrier, except between the single iterations of a latency, which follow each other at once.
    /// Start the clock after any set-up, and stop it when the last operation has taken effect at
    /// its target. The results of the other ranks are ignored.
    fn run(&mut self, side: &Side<'_>, size: usize, iterations: u64) -> Result<Duration>;
}

/// The limits, by what they limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// A message there and back, copied in and out, through the same lines each time.
    PingPong,
    /// Written into the target's memory, where the target polls the last word; there and back.
    Put,
    /// A stream of messages, each copied in and out.
    Ring,
    /// Streams of messages in both directions at once.
    RingTwoWay,
    /// One copy from private into shared memory, hot.
    Memcpy,
    /// A copy by each rank at the same time, into memory of its own.
    MemcpyTwoWay,
    /// One copy from shared into private memory, hot.
    MemcpyOut,
    /// One copy from shared to shared memory, hot.
    MemcpyShared,
    /// Fetch-and-add on a line that nobody else touches.
    Atomic,
    /// Fetch-and-add by both ranks on the same line.
    AtomicTwoWay,
    /// A look at a line that nobody writes.
    Load,
    /// A sleeping rank is woken, and answers.
    Wake,
    /// A token goes round.
    Token,
    /// All ranks meet.
    Barrier,
    /// A word from each rank to each.
    AllToAll,
    /// A stream of messages from all ranks but one to that one.
    FanIn,
    /// A stream of messages from all ranks but one to that one, through one ring behind a lock.
    Locked,
}

impl RawKind {
    pub(super) const ALL: [Self; 17] = [
        Self::PingPong,
        Self::Put,
        Self::Ring,
        Self::RingTwoWay,
        Self::Memcpy,
        Self::MemcpyTwoWay,
        Self::MemcpyOut,
        Self::MemcpyShared,
        Self::Atomic,
        Self::AtomicTwoWay,
        Self::Load,
        Self::Wake,
        Self::Token,
        Self::Barrier,
        Self::AllToAll,
        Self::FanIn,
        Self::Locked,
    ];
}

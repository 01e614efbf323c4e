//! Short messages, and records of queues: how long they may be, and when a message may be taken.
//!
//! On a mediated connection each message begins with a gate: how many commands precede it. It is
//! taken once these have been executed.
use crate::fault::Fault;
use crate::lane::{self, Kind, Malformed};
use crate::limits::EAGER_MAX;

/// Bytes of a gate.
pub const GATE_BYTES: usize = 8;

/// Whether a message may be so long.
///
/// # Errors
/// [`Fault::TooLong`]; [`Fault::Malformed`] for an empty one.
// spec: MSG-1
#[inline]
pub const fn check(len: usize) -> Result<(), Fault> {
    check_record(len, EAGER_MAX)
}

/// Checks the length of a record against the longest one of its queue.
///
/// # Errors
/// The faults of [`check`].
// spec: QUE-3
#[inline]
pub const fn check_record(len: usize, longest: usize) -> Result<(), Fault> {
    match len {
        0 => Err(Fault::Malformed),
        len if len > longest => Err(Fault::TooLong),
        _ => Ok(()),
    }
}

/// Bytes of the message in a record of a lane that is to be one, with a gate or without.
// spec: MSG-1, ERR-6
#[inline]
pub const fn data_of(record: &lane::Status, is_gated: bool) -> Result<usize, Malformed> {
    let gate = if is_gated { GATE_BYTES } else { 0 };
    let is_expected = match record.kind {
        Kind::GatedMessage => is_gated,
        Kind::Message => !is_gated,
        _ => false,
    };
    match (record.len as usize).checked_sub(gate) {
        Some(data) if is_expected && check(data).is_ok() => Ok(data),
        _ => Err(Malformed),
    }
}

/// Bytes of a record in the lane of a queue with this longest record.
// spec: QUE-8, ERR-6
#[inline]
pub const fn record_of(record: &lane::Status, longest: usize) -> Result<usize, Malformed> {
    let len = record.len as usize;
    let is_expected = matches!(record.kind, Kind::Record) && check_record(len, longest).is_ok();
    if is_expected { Ok(len) } else { Err(Malformed) }
}

/// Whether a message with this gate may be taken when `executed` commands of its sender have been
/// executed. All commands posted before it have been executed then.
// spec: ORD-3
#[inline]
pub const fn is_due(gate: u64, executed: u64) -> bool {
    executed >= gate
}

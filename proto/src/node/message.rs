//! Short messages of a mediated connection: each says how many commands precede it, and is taken
//! once these have been executed.
use super::target::Target;
use crate::lane::{self, Kind, Malformed};
use crate::limits::EAGER_MAX;
use core::ops::RangeInclusive;

/// Bytes of the word before a message.
pub const GATE_BYTES: usize = 8;
/// How long a message may be.
// spec: MSG-1
pub const LENGTHS: RangeInclusive<usize> = 1..=EAGER_MAX;

/// Bytes of the message in a record of a lane that is to be one.
// spec: MSG-1, ERR-6
pub fn data_of(record: &lane::Status) -> Result<usize, Malformed> {
    match (record.kind, (record.len as usize).checked_sub(GATE_BYTES)) {
        (Kind::GatedMessage, Some(data)) if LENGTHS.contains(&data) => Ok(data),
        _ => Err(Malformed),
    }
}

/// Whether a message with this word may be taken: what its sender posted before has been done.
// spec: ORD-3
pub const fn is_due(gate: u64, target: &Target) -> bool {
    target.executed() >= gate
}

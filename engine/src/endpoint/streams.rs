//! What goes in parts, when there is room.
use super::numbers::RemoteId;

/// What goes in parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    /// The departing messages that a remote wants.
    Messages(RemoteId),
    /// A write.
    Write(usize),
    /// What a remote reads.
    Reads(RemoteId),
    /// A message that is read where its sender has it.
    Fetch(usize),
}

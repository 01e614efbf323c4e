//! The result of a message that was executed.
use crate::fault::{Fault, Status};

/// The result for the sender and for the owner of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Its status.
    pub status: Status,
    /// The value that is given back; of a probe, the epoch.
    pub given: u64,
    /// Whether its test notifies the owner.
    pub notifies: bool,
}

impl Carried {
    /// Nothing of it was done.
    #[inline]
    pub const fn fault(fault: Fault) -> Self {
        Self { status: Status::Fault(fault), given: 0, notifies: false }
    }

    /// The status that the owner is notified of: a test holds, or the inlet has stopped.
    // spec: DEP-11, DEP-19
    #[inline]
    pub const fn note(&self) -> Option<Status> {
        debug_assert!(
            !self.notifies || matches!(self.status, Status::Ok),
            "a message notifies when it was carried out"
        );
        match self.status {
            Status::Fault(Fault::Held) => Some(self.status),
            _ if self.notifies => Some(Status::Ok),
            _ => None,
        }
    }
}

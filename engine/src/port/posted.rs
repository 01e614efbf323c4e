//! What is said of an operation that was posted.
use ayre_proto::fault::Status;
use ayre_proto::units::Ticket;

/// What an executor says of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(crate) ticket: Ticket,
    /// How it ended, where the call waited for that.
    pub(crate) status: Status,
    pub(crate) value: u64,
}

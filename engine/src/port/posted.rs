//! The result of posting an operation.
use ayre_proto::fault::Status;
use ayre_proto::units::Ticket;

/// The result of an operation from its executor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(crate) ticket: Ticket,
    /// The status of its completion, if the call has waited for that.
    pub(crate) status: Status,
    pub(crate) value: u64,
}

//! What is said of an operation that was posted.
use ayre_proto::fault::Status;
use ayre_proto::notify::Classes;
use ayre_proto::units::Ticket;

/// Notifications that one operation may raise at its initiator.
pub(crate) const NOTES_PER_OPERATION: usize = 2;
const _: () = assert!(
    Classes::REQUESTER.union(Classes::COMPLETER).bits().count_ones() as usize
        == NOTES_PER_OPERATION,
    "those are the classes that are raised there"
);

/// What an executor says of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(crate) ticket: Ticket,
    /// How it ended, where the call waited for that.
    pub(crate) status: Status,
    pub(crate) value: u64,
}

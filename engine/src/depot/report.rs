//! What is reported of a message.
use ayre_proto::deposit::message::Posted;
pub(crate) use ayre_proto::execute::Report;
use ayre_proto::notify::Operation;

/// What the initiator of a message is told of it.
pub(crate) const fn report(posted: &Posted) -> Report {
    let Posted { classes, tag, value, .. } = *posted;
    Report { operation: Operation::Deposit, classes, tag, value }
}

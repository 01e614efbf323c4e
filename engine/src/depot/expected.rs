//! The answer that the initiator of a message expects, and its report.
use super::carry::{Bytes, DepotEnd};
use super::instruction_cache::InstructionCache;
use crate::mem::depot::{DepotMemory, Holder};
use crate::mem::map::Mapping;
use ayre_proto::deposit::Reply;
use ayre_proto::fault::Status;
use ayre_proto::notify::Notification;
use ayre_proto::units::PeerId;
use std::sync::Arc;

/// The destination of a message's answer.
pub(crate) enum Answers<'a> {
    /// The call waits for the answer and has room for it; or there is no answer.
    Call(&'a mut [u8]),
    Reply(Box<Expected>),
}

impl Answers<'_> {
    /// The number of bytes that are expected.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Call(into) => into.len(),
            Self::Reply(expected) => expected.reply.len(),
        }
    }
}

/// A reply whose answer is pending, and its destination.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) depot: Arc<DepotMemory>,
    pub(crate) number: u8,
    pub(crate) memory: Arc<Mapping>,
    pub(crate) range: (u64, u64),
    pub(crate) reply: Reply,
}

impl Expected {
    /// Executes the reply and returns its report; None where the depot is locked for long.
    pub(crate) fn carry_out(
        &mut self,
        instructions: &InstructionCache,
        from: PeerId,
        (given, data): (u64, &[u8]),
    ) -> Option<(Status, Option<Notification>)> {
        let Self { depot, number, memory, range, reply } = self;
        let posted = match reply.message(given) {
            Ok(posted) => posted,
            Err(fault) => return Some((Status::Fault(fault), None)),
        };
        let end = DepotEnd { depot, number: *number, memory, range: *range, instructions };
        let carried = end.carry_out(Holder::OWNER, posted, Bytes::Brought(data))?;
        Some((carried.status, reply.note(from, &carried)))
    }
}

//! What the initiator of a message expects: its report, and an answer that is on its way.
use super::carry::{Bytes, DepotEnd};
use super::memo::Memo;
use crate::mem::depot::{DepotMemory, Holder};
use crate::mem::map::Mapping;
use ayre_proto::deposit::Reply;
use ayre_proto::fault::Status;
use ayre_proto::notify::Notification;
use ayre_proto::units::PeerId;
use std::sync::Arc;

/// What is done with what comes back of a message.
pub(crate) enum Answers<'a> {
    /// The call waits for it, and has a place for it; or nothing comes back.
    Call(&'a mut [u8]),
    Reply(Box<Expected>),
}

impl Answers<'_> {
    /// Bytes that are to come.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Call(into) => into.len(),
            Self::Reply(expected) => expected.reply.len(),
        }
    }
}

/// A reply whose answer is on its way, and where it goes.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) depot: Arc<DepotMemory>,
    pub(crate) number: u8,
    pub(crate) memory: Arc<Mapping>,
    pub(crate) range: (u64, u64),
    pub(crate) reply: Reply,
}

impl Expected {
    /// Carries the reply out, and says what is to be raised for it; none where somebody is inside
    /// the depot for long.
    pub(crate) fn carry_out(
        &mut self,
        memo: &Memo,
        from: PeerId,
        (given, data): (u64, &[u8]),
    ) -> Option<(Status, Option<Notification>)> {
        let Self { depot, number, memory, range, reply } = self;
        let posted = match reply.message(given) {
            Ok(posted) => posted,
            Err(fault) => return Some((Status::Fault(fault), None)),
        };
        let end = DepotEnd { depot, number: *number, memory, range: *range, memo };
        let carried = end.carry_out(Holder::OWNER, posted, Bytes::Brought(data))?;
        Some((carried.status, reply.note(from, &carried)))
    }
}

//! What the initiator of a message expects: its report, and an answer that is on its way.
use super::carry::{Bytes, DepotEnd};
use super::memo::Memo;
use crate::mem::depot::{DepotMemory, Holder};
use crate::mem::map::Mapping;
use ayre_proto::deposit::Carried;
use ayre_proto::deposit::message::Posted;
use ayre_proto::fault::{Fault, Status};
use ayre_proto::notify::{Classes, Notification, Operation};
use ayre_proto::units::{Key, PeerId};
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
            Self::Reply(expected) => expected.len(),
        }
    }
}

/// A reply whose answer is on its way.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) depot: Arc<DepotMemory>,
    pub(crate) number: u8,
    pub(crate) memory: Arc<Mapping>,
    pub(crate) range: (u64, u64),
    pub(crate) posted: Posted,
    pub(crate) takes_value: bool,
    pub(crate) is_revoked: bool,
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
        if self.is_revoked {
            return Some((Status::Fault(Fault::StaleKey), None));
        }
        if self.takes_value {
            self.posted.message.operand = given;
        }
        let Self { depot, number, memory, range, posted, .. } = &*self;
        let end = DepotEnd { depot, number: *number, memory, range: *range, memo };
        let carried: Carried = end.carry_out(Holder::OWNER, posted, Bytes::Brought(data))?;
        let Posted { tag, value, .. } = *posted;
        let note = |status| Notification {
            source: from,
            class: Classes::COMPLETER,
            status,
            operation: Operation::Reply,
            tag,
            value,
        };
        Some((carried.status, carried.note().map(note)))
    }

    /// Bytes that it waits for.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.posted.message.len)
    }

    /// Of this inlet nothing comes any more.
    pub(crate) fn revoke(&mut self, key: Key) {
        self.is_revoked |= self.posted.key == key;
    }
}

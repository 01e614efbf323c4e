//! A reply: a message over an inlet of its own sender, with the bytes that another message reads as
//! its data.
use super::carried::Carried;
use super::message::{DepositMessage, Posted};
use crate::fault::Fault;
use crate::notify::{Classes, Notification, Operation};
use crate::units::{Key, PeerId};

/// A reply whose answer is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    posted: Posted,
    takes_value: bool,
    is_revoked: bool,
}

impl Reply {
    /// A reply with the bytes that are read as its data. If `takes_value` is set, the given value
    /// is its operand.
    pub const fn new(posted: Posted, takes_value: bool) -> Self {
        let DepositMessage { brings, len, .. } = posted.message;
        assert!(brings || len == 0, "its data is the answer's");
        assert!(!posted.message.is_answered, "a reply is not answered");
        Self { posted, takes_value, is_revoked: false }
    }

    /// Bytes that it waits for.
    pub const fn len(&self) -> usize {
        self.posted.message.len as usize
    }

    /// Whether it waits for no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nothing comes over this inlet any more.
    // spec: DEP-28
    pub fn revoke(&mut self, key: Key) {
        self.is_revoked |= self.posted.key == key;
    }

    /// The message to execute now that its answer has come, with the value that was given.
    ///
    /// # Errors
    /// [`Fault::StaleKey`] where its inlet was revoked meanwhile.
    // spec: DEP-28
    pub const fn message(&mut self, given: u64) -> Result<&Posted, Fault> {
        if self.is_revoked {
            return Err(Fault::StaleKey);
        }
        if self.takes_value {
            self.posted.message.operand = given;
        }
        Ok(&self.posted)
    }

    /// The notification for its sender's program, if there is one. It names the peer that has
    /// answered.
    // spec: DEP-11, DEP-19, DEP-28
    pub fn note(&self, from: PeerId, carried: &Carried) -> Option<Notification> {
        let (operation, class) = (Operation::Reply, Classes::COMPLETER);
        let Posted { tag, value, .. } = self.posted;
        let note = |status| Notification { source: from, class, status, operation, tag, value };
        debug_assert!(!self.is_revoked, "a reply over a revoked inlet is not carried out");
        carried.note().map(note)
    }
}

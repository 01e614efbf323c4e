//! Replies: a message's answer, deposited at the sender of the message.
//!
//! ```text
//!   sender                                    owner
//!   deposit_reply -- request -->              depot
//!     own depot <-- reply <-- answer --       reads, gives back
//! ```
use super::message::Deposit;
use super::owner::Inlet;
use crate::depot::expected::Expected;
use crate::error::{Busy, Fault, PostError};
use crate::mem::depot::Holder;
use crate::port::Port;
use ayre_proto::deposit::DATA_MAX;
use ayre_proto::deposit::message::Posted;
use ayre_proto::notify::Classes;
use std::sync::Arc;

/// A deposit message over one of this port's own inlets. Its data is what another message has read.
///
/// Only its sender knows it: the peer whose memory is read can neither choose nor see the
/// destination of the answer.
// spec: DEP-28
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    inlet: &'a Inlet,
    deposit: Deposit<'a>,
    len: usize,
    takes_value: bool,
    tag: u32,
    value: u64,
}

impl<'a> Reply<'a> {
    /// A reply with this message, over an inlet of the port's own. The inlet may also be shared
    /// with a peer. The message must have no data, as the answer brings that.
    pub const fn over(inlet: &'a Inlet, deposit: Deposit<'a>) -> Self {
        Self { inlet, deposit, len: 0, takes_value: false, tag: 0, value: 0 }
    }

    /// Sets the number of bytes to read for the reply. The default is 0.
    pub const fn wants(mut self, len: usize) -> Self {
        self.len = len;
        self
    }

    /// Uses the value that the answer returns as the operand of the reply.
    pub const fn operand_given(mut self) -> Self {
        self.takes_value = true;
        self
    }

    /// Sets tag and value of the notification that the reply's test raises.
    pub const fn noted_as(mut self, tag: u32, value: u64) -> Self {
        (self.tag, self.value) = (tag, value);
        self
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Port {
    /// Notes the state of the reply's inlet: if the inlet stops and runs again before the answer
    /// comes, the reply is refused.
    // spec: DEP-20, DEP-28
    pub(super) fn expect_reply(&mut self, reply: &Reply<'_>) -> Result<Box<Expected>, PostError> {
        let Reply { inlet, deposit, len, takes_value, tag, value } = *reply;
        if !inlet.depot().is_of(self.identity) {
            return Err(Fault::ForeignHandle.into());
        }
        if deposit.brings() {
            return Err(Fault::Malformed.into());
        }
        if len > DATA_MAX {
            return Err(Fault::TooLong.into());
        }
        let message = deposit.reply(len)?;
        debug_assert_eq!(usize::from(message.len), len, "it waits for as many bytes as it wants");
        debug_assert!(!message.is_answered, "a reply is not answered");
        let depot = Arc::clone(inlet.depot().memory());
        let Some(inside) = depot.enter(Holder::OWNER) else {
            return Err(self.busy(Busy::DepotLocked));
        };
        let standing = inside.standing(inlet.number());
        drop(inside);
        if standing.is_stopped() {
            return Err(Fault::Stopped.into());
        }
        let (key, epoch) = (inlet.key(), standing.epoch());
        let posted = Posted { key, epoch, classes: Classes::empty(), tag, value, message };
        Ok(Box::new(Expected {
            depot,
            number: inlet.number(),
            memory: Arc::clone(inlet.region().mapping()),
            range: inlet.range(),
            reply: ayre_proto::deposit::Reply::new(posted, takes_value),
        }))
    }
}

//! Posting messages.

use super::core::{Core, State};
use super::op::{Kind, Op};
use super::side::{Reported, Way};
use crate::abi::{COMPLETION, DELIVERY_COMPLETE, MATCH_COMPLETE};
use crate::error::{Code, Outcome};
use crate::queue::cq::QueuedCompletion;
use crate::record::Posted;
use ayre::endpoint::raw::{OutgoingMessage, Sent, Spans};
use ayre_guest::cell::{Guard, Policy};

/// A message to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The program's number of whom it is for.
    pub(crate) to: u64,
    pub(crate) tag: Option<u64>,
    pub(crate) data: Option<u64>,
    pub(crate) bytes: Spans,
    pub(crate) context: usize,
}

/// Those who want to know that a message was delivered.
const DELIVERED: u64 = DELIVERY_COMPLETE | MATCH_COMPLETE;

impl<L: Policy> Core<L> {
    /// Sends a message.
    ///
    /// # Errors
    /// `EAGAIN` where there is no room now, for the message or for its completion; `ENOTCONN` where
    /// the peer has gone; and those of a peer that cannot be found.
    #[inline(always)]
    pub(crate) fn send(&self, message: Message, reported: Reported) -> Outcome {
        self.posting(
            message,
            |message, state| Some(posted(message, state.tx.flags(reported))),
            #[inline(always)]
            |message| {
                self.state.with(
                    #[inline(always)]
                    |state| {
                        state.fence(message.to, reported)?;
                        state.send(message, reported)
                    },
                )
            },
        )
    }
}

/// A message, for a recording.
fn posted(message: &Message, flags: u64) -> Posted {
    Posted {
        kind: if message.tag.is_some() { "tsend" } else { "send" },
        to: message.to,
        tag: message.tag.unwrap_or(0),
        bytes: message.bytes.len(),
        context: (flags & COMPLETION != 0).then_some(message.context),
    }
}

impl<L: Policy> State<L> {
    #[inline(always)]
    fn send(&mut self, message: Message, reported: Reported) -> Outcome {
        let flags = self.tx.flags(reported);
        let is_told = flags & COMPLETION != 0;
        if is_told && self.tx.is_full() {
            self.progress();
            return Err(Code::AGAIN);
        }
        let Message { to, tag, data, bytes, context } = message;
        // Most messages are short, and their peers known.
        let sent = match self.peers.remote(to) {
            Some(remote) if flags & DELIVERED == 0 => {
                self.endpoint.send_at_once(remote, (tag, data), &bytes)
            }
            _ => None,
        };
        match sent {
            Some(Ok(())) => {
                self.gone(tag, context, is_told);
                Ok(())
            }
            Some(Err(error)) => Err(self.refused(to, error)),
            None => self.send_any(Message { to, tag, data, bytes, context }, flags),
        }
    }

    /// A message has left.
    #[inline(always)]
    fn gone(&mut self, tag: Option<u64>, context: usize, is_told: bool) {
        let flags = Kind::send(tag.is_some()).flags();
        self.tx.ended(Way::Message, QueuedCompletion::new(context, flags), is_told);
    }

    #[inline(never)]
    fn send_any(&mut self, message: Message, flags: u64) -> Outcome {
        let Message { to, tag, data, bytes, context } = message;
        let remote = match self.peers.remote(to) {
            Some(remote) => remote,
            None => self.look_up(to)?,
        };
        let (kind, is_told) = (Kind::send(tag.is_some()), flags & COMPLETION != 0);
        let op = Op { context, buf: 0, kind, is_told, is_many: false };
        let delivered = flags & DELIVERED != 0;
        let outgoing = OutgoingMessage { tag, data, bytes, context: op.into(), delivered };
        match self.endpoint.send(remote, &outgoing) {
            Ok(Sent::Completed) => {
                self.gone(tag, context, is_told);
                Ok(())
            }
            Ok(Sent::Pending) => Ok(()),
            Err(error) => Err(self.refused(to, error)),
        }
    }
}

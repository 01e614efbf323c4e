//! The state of one remote.
use super::eager::EagerPolicy;
use super::remote_id::RemoteId;
use super::replies::Replies;
use super::rma_target::RmaTarget;
use alloc::collections::VecDeque;

/// The state of one remote.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Its number, once it was connected.
    id: Option<RemoteId>,
    /// Which messages of ours go before it wants them.
    pub(super) eager: EagerPolicy,
    /// Its access to our memory regions.
    pub(super) rma_target: RmaTarget,
    replies: Replies,
    /// Messages of ours that it wants, in the order in which they are to leave.
    cleared: VecDeque<usize>,
    /// It was told to keep what it can keep, because we keep much of it.
    is_throttled: bool,
    /// One of the two has no memory for what the other one has sent.
    is_shut_out: bool,
}

impl Peer {
    pub(super) const fn replies(&self) -> &Replies {
        &self.replies
    }

    pub(super) const fn replies_mut(&mut self) -> &mut Replies {
        &mut self.replies
    }

    /// It wants this message next. Whether it is the only one.
    pub(super) fn enqueue_send(&mut self, key: usize) -> bool {
        debug_assert!(!self.cleared.contains(&key), "a message is wanted once");
        self.cleared.push_back(key);
        self.cleared.len() == 1
    }

    /// The message that leaves first of those that it wants.
    pub(super) fn next_send(&self) -> Option<usize> {
        self.cleared.front().copied()
    }

    /// That has left.
    pub(super) fn dequeue_send(&mut self, key: usize) {
        let first = self.cleared.pop_front();
        debug_assert_eq!(first, Some(key), "messages leave in their order");
    }

    /// It wants none any more.
    pub(super) fn clear_sends(&mut self) {
        self.cleared.clear();
    }

    /// Whether it is not curbed, and is from now on: it may send at all.
    pub(super) fn throttle(&mut self) -> bool {
        let is_new = !self.is_throttled && !self.is_shut_out;
        self.is_throttled |= is_new;
        is_new
    }

    /// Whether it was curbed, and is not any more.
    pub(super) fn unthrottle(&mut self) -> bool {
        core::mem::take(&mut self.is_throttled)
    }

    /// One of the two has no memory for the other any more. Whether that is new.
    pub(super) fn shut_out(&mut self) -> bool {
        !core::mem::replace(&mut self.is_shut_out, true)
    }

    /// Its number; only what has been connected has one.
    pub(super) const fn id(&self) -> Option<RemoteId> {
        self.id
    }

    /// It is connected.
    pub(super) fn begin(&mut self, id: RemoteId) {
        debug_assert!(self.replies.is_empty() && self.cleared.is_empty(), "nothing is to go there");
        (self.id, self.eager, self.is_shut_out) = (Some(id), EagerPolicy::default(), false);
    }
}

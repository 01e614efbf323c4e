//! Answers that wait for room.
use crate::envelope::Record;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// The cost in bytes of a reply that waits for room, and of a read that is not yet sent in full. It
/// is no less than the memory that one takes besides its bytes.
pub(super) const ANSWER: u64 = 64;

/// A reply to a remote, and the bytes behind its head.
pub(super) type Reply = (Record, Box<[u8]>);

/// The cost of a waiting reply with these bytes, in bytes.
pub(super) fn cost(bytes: &[u8]) -> u64 {
    ANSWER + bytes.len() as u64
}

/// Replies to one remote that wait for room, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: VecDeque<Reply>,
    /// The cost of all of them, in bytes.
    cost: u64,
}

impl Replies {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// One more waits: what it counts for.
    pub(super) fn push(&mut self, reply: Reply) -> u64 {
        let cost = cost(&reply.1);
        self.waiting.push_back(reply);
        self.cost += cost;
        cost
    }

    /// The first one, which waits no longer.
    pub(super) fn pop(&mut self) -> Option<Reply> {
        let reply = self.waiting.pop_front()?;
        let cost = cost(&reply.1);
        debug_assert!(cost <= self.cost, "what goes was counted when it came");
        self.cost -= cost;
        debug_assert!(self.cost > 0 || self.waiting.is_empty(), "each counts for something");
        Some(reply)
    }

    /// The first one waits again: there was no room.
    pub(super) fn put_back(&mut self, reply: Reply) {
        self.cost += cost(&reply.1);
        self.waiting.push_front(reply);
    }

    /// None wait any more: how many did, and what they counted for.
    pub(super) fn clear(&mut self) -> (usize, u64) {
        let Self { waiting, cost: counted } = core::mem::take(self);
        debug_assert_eq!(
            waiting.iter().map(|(_, bytes)| cost(bytes)).sum::<u64>(),
            counted,
            "each was counted once"
        );
        (waiting.len(), counted)
    }
}

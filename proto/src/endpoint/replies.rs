//! Answers that wait for room.
use crate::envelope::Record;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// What an answer that waits for room counts for, and a read whose bytes have not all gone: no
/// less than it takes besides its bytes.
pub(super) const ANSWER: u64 = 64;

/// What a remote is to be answered, and the bytes that belong to it.
pub(super) type Reply = (Record, Box<[u8]>);

/// What an answer with these bytes counts for while it waits.
pub(super) fn cost(bytes: &[u8]) -> u64 {
    ANSWER + bytes.len() as u64
}

/// What one remote is to be answered when there is room, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: VecDeque<Reply>,
    /// What all of it counts for.
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

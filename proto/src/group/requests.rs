//! Requests: at their sender until they are ordered, at the root until it orders them.
use super::Member;
use super::view::SEATS_MAX;
use alloc::collections::VecDeque;

/// A request of a member to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<P> {
    /// A message and its author: the member, or an outsider whose door it is.
    Message(Member, P),
    /// This process is to join.
    Join(Member),
    /// The sender leaves.
    Leave,
}

impl<P> What<P> {
    /// Whether it changes the members of the group.
    pub(super) const fn is_change(&self) -> bool {
        matches!(self, Self::Join(_) | Self::Leave)
    }
}

/// Requests of a member that it has not seen ordered.
#[derive(Debug)]
pub(super) struct Outbox<P> {
    last: u64,
    waiting: VecDeque<What<P>>,
    limit: usize,
    leaves: bool,
}

impl<P> Outbox<P> {
    /// Allocates.
    pub(super) fn new(limit: usize) -> Self {
        Self { last: 0, waiting: VecDeque::with_capacity(limit), limit, leaves: false }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() == self.limit
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The number of the last one.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Whether the last one said that the member leaves.
    pub(super) const fn leaves(&self) -> bool {
        self.leaves
    }

    /// Whether it holds a message of this outsider.
    pub(super) fn has_from(&self, outsider: Member) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|what| matches!(what, What::Message(origin, _) if *origin == outsider))
    }

    /// Whether nothing waits, and something may be added.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.leaves
    }

    /// One is ordered before it waits.
    pub(super) fn skip(&mut self) {
        debug_assert!(self.is_idle(), "waiting requests are ordered before");
        self.last += 1;
    }

    /// Adds one, and gives it its number.
    pub(super) fn push(&mut self, what: What<P>) -> u64 {
        debug_assert!(!self.is_full(), "the caller has looked");
        debug_assert!(!self.leaves, "a leaver requests nothing behind that");
        self.leaves = matches!(what, What::Leave);
        self.waiting.push_back(what);
        self.last += 1;
        self.last
    }

    /// Takes out the oldest, if it has been ordered.
    pub(super) fn pop_ordered(&mut self, ordered: u64) -> Option<What<P>> {
        debug_assert!(self.waiting.len() as u64 <= self.last, "waiting requests have numbers");
        let first = self.last - self.waiting.len() as u64;
        if first < ordered { self.waiting.pop_front() } else { None }
    }

    /// All with their numbers, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &What<P>)> {
        let first = self.last + 1 - self.waiting.len() as u64;
        (first..).zip(&self.waiting)
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

/// A request at the root.
#[derive(Debug)]
pub(super) struct Request<P> {
    pub(super) sender: Member,
    pub(super) number: u64,
    pub(super) what: What<P>,
}

/// Requests in the order in which they came.
#[derive(Debug)]
pub(super) struct Queue<P> {
    requests: VecDeque<Request<P>>,
}

impl<P> Queue<P> {
    /// Allocates what all members together may have outstanding.
    // spec: GRP-20
    pub(super) fn new(limit: usize) -> Self {
        Self { requests: VecDeque::with_capacity(limit * SEATS_MAX) }
    }

    pub(super) fn push(&mut self, request: Request<P>) {
        debug_assert!(self.requests.len() < self.requests.capacity(), "each has its limit");
        let is_late =
            |other: &Request<P>| other.sender == request.sender && other.number >= request.number;
        debug_assert!(!self.requests.iter().any(is_late), "requests keep their sender's order");
        self.requests.push_back(request);
    }

    pub(super) fn front(&self) -> Option<&Request<P>> {
        self.requests.front()
    }

    pub(super) fn pop(&mut self) -> Option<Request<P>> {
        self.requests.pop_front()
    }

    /// Keeps only what is still to be ordered.
    pub(super) fn retain(&mut self, keep: impl Fn(Member, u64) -> bool) {
        self.requests.retain(|request| keep(request.sender, request.number));
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
    }
}

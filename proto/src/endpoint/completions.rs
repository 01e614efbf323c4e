//! How what was posted has ended.
use super::remote_id::RemoteId;
use crate::fault::Fault;
use alloc::collections::VecDeque;

/// A value that a program gives an operation when it posts it. The completion returns it.
pub type Context = u128;

/// How something that was posted has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As the program gave it.
    pub context: Context,
    /// The operation that has completed.
    pub what: CompletionKind,
    /// A receive that faults has got nothing, or what came before.
    pub result: Result<(), Fault>,
}

/// The kind of a completed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// A message of ours.
    Sent,
    /// A receive, or one message of many that it takes.
    Received(Received),
    /// A receive was taken back.
    Cancelled,
    /// A write of ours was done, or refused.
    Written,
    /// A read of ours.
    Read,
    /// An update of ours.
    Updated,
    /// Not something that was posted: a remote has touched a window of ours. Its context is 0.
    RmaEvent(RmaEvent),
}

/// A message that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The sender.
    pub source: Option<RemoteId>,
    /// Its tag; none of a plain message.
    pub tag: Option<u64>,
    /// The immediate data that came along.
    pub data: Option<u64>,
    /// Its bytes.
    pub len: u64,
    /// Those of them that are in the receive's memory: fewer, where there was no room.
    pub placed: u64,
    /// Where they begin there.
    pub offset: u64,
    /// Whether the receive is over; one of many messages takes more.
    pub released: bool,
}

/// An access of a remote to one of our memory regions. The remote has its completion already;
/// nothing is to be done here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmaEvent {
    /// The remote.
    pub source: RemoteId,
    /// The window's.
    pub key: u64,
    /// The kind of access.
    pub kind: RmaKind,
    /// Bytes of our memory that it was done to.
    pub len: u64,
    /// The immediate data that came along.
    pub data: Option<u64>,
}

/// A kind of access to a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmaKind {
    /// It was written.
    Wrote,
    /// It was read.
    Read,
    /// It was updated.
    Updated,
    /// It was updated, and what was there before was told.
    Fetched,
}

/// Ends that the program has not been told yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Completions(VecDeque<Completion>);

impl Completions {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, completion: Completion) {
        self.0.push_back(completion);
    }

    pub(super) fn extend(&mut self, completions: impl IntoIterator<Item = Completion>) {
        self.0.extend(completions);
    }

    /// Tells all of them.
    #[inline(always)]
    pub(super) fn tell(&mut self, tell: &mut impl FnMut(Completion)) {
        self.0.drain(..).for_each(tell);
    }

    /// The remotes that they tell of.
    pub(super) fn sources(&self) -> impl Iterator<Item = RemoteId> {
        self.0.iter().filter_map(|completion| match completion.what {
            CompletionKind::Received(received) => received.source,
            CompletionKind::RmaEvent(event) => Some(event.source),
            _ => None,
        })
    }
}

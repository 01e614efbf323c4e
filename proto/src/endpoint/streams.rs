//! Operations that go in fragments, as there is room.
use super::remote_id::RemoteId;
use alloc::collections::VecDeque;

/// An operation that goes in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// The departing messages that a remote wants.
    Messages(RemoteId),
    /// A write.
    Write(usize),
    /// The reads of a remote.
    Reads(RemoteId),
    /// A message that is read where its sender has it.
    Fetch(usize),
}

/// All that does, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Streams(VecDeque<Stream>);

impl Streams {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, stream: Stream) {
        debug_assert!(!self.0.contains(&stream), "each goes once at a time");
        self.0.push_back(stream);
    }

    pub(super) fn get(&self, at: usize) -> Option<Stream> {
        self.0.get(at).copied()
    }

    /// All parts of one have gone.
    pub(super) fn remove(&mut self, at: usize) {
        let gone = self.0.remove(at);
        debug_assert!(gone.is_some(), "it was there");
    }

    pub(super) fn drop_one(&mut self, stream: Stream) {
        self.0.retain(|it| *it != stream);
    }

    /// Drops all writes but these.
    pub(super) fn keep_writes(&mut self, stays: impl Fn(usize) -> bool) {
        self.0.retain(|stream| !matches!(stream, Stream::Write(key) if !stays(*key)));
    }

    /// Drops all fetches but these.
    pub(super) fn keep_fetches(&mut self, stays: impl Fn(usize) -> bool) {
        self.0.retain(|stream| !matches!(stream, Stream::Fetch(key) if !stays(*key)));
    }
}

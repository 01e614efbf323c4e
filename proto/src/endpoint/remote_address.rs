//! Own operations on remotes' memory regions that have no reply yet.
use super::SHORT_MAX;
use super::completions::{Completion, CompletionKind, Context};
use super::ledger::Entry;
use super::remote_id::RemoteId;
use super::transport::Memory;
use crate::fault::Fault;

/// Memory in a remote's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// The owner of the memory region.
    pub remote: RemoteId,
    /// The window's.
    pub key: u64,
    /// Where it begins, counted as the window's owner does.
    pub address: u64,
}

/// A write, a read or an update.
#[derive(Debug)]
pub(super) struct PendingRma<M> {
    to: RemoteId,
    context: Context,
    what: CompletionKind,
    stage: Stage<M>,
}

#[derive(Debug)]
enum Stage<M> {
    /// A write, part of which is still here.
    Leaving(Leaving<M>),
    /// Bytes are due.
    Coming { into: M, got: usize },
    /// Only to be told that it is done.
    Answer,
}

/// A write, part of which is still here.
#[derive(Debug)]
pub(super) struct Leaving<M> {
    spot: RemoteAddress,
    bytes: Bytes<M>,
    data: Option<u64>,
    gone: usize,
}

/// The source of a write's bytes.
#[derive(Debug)]
enum Bytes<M> {
    Borrowed(M),
    Copied(alloc::boxed::Box<[u8]>),
}

impl<M: Memory> Bytes<M> {
    fn len(&self) -> usize {
        match self {
            Self::Borrowed(spans) => spans.len(),
            Self::Copied(bytes) => bytes.len(),
        }
    }

    fn piece(&self, at: usize, max: usize) -> &[u8] {
        match self {
            Self::Borrowed(spans) => spans.piece(at, max),
            Self::Copied(bytes) => &bytes[at..bytes.len().min(at + max)],
        }
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        match self {
            Self::Borrowed(spans) => spans.read(at, into),
            Self::Copied(bytes) => into.copy_from_slice(&bytes[at..at + into.len()]),
        }
    }
}

impl<M: Memory> Leaving<M> {
    pub(super) const fn spot(&self) -> RemoteAddress {
        self.spot
    }

    pub(super) const fn data(&self) -> Option<u64> {
        self.data
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that have gone.
    pub(super) const fn gone(&self) -> usize {
        self.gone
    }

    /// Bytes that have not.
    pub(super) fn left(&self) -> usize {
        debug_assert!(self.gone <= self.bytes.len(), "no more goes than there is");
        self.bytes.len() - self.gone
    }

    /// The next piece of them that lies in one range, of at most `max` bytes.
    pub(super) fn piece(&self, max: usize) -> &[u8] {
        self.bytes.piece(self.gone, max)
    }

    /// The next ones.
    pub(super) fn read(&self, into: &mut [u8]) {
        debug_assert!(into.len() <= self.left(), "there are as many");
        self.bytes.read(self.gone, into);
    }
}

/// Set in the names of what touches; messages and their receives have names without.
const RMA_BIT: u64 = 1 << 63;

/// The name of what is kept there.
pub(super) const fn name_of(key: usize) -> u64 {
    debug_assert!(key as u64 & RMA_BIT == 0, "keys are small");
    key as u64 | RMA_BIT
}

/// Where what has this name is kept; none of a message's name.
pub(super) fn key_of(name: u64) -> Option<usize> {
    (name & RMA_BIT != 0).then_some((name ^ RMA_BIT) as usize)
}

impl<M> Entry for PendingRma<M> {
    #[inline]
    fn to(&self) -> RemoteId {
        self.to
    }
}

impl<M: Memory> PendingRma<M> {
    /// A write that has gone.
    #[inline]
    pub(super) const fn written(to: RemoteId, context: Context) -> Self {
        Self { to, context, what: CompletionKind::Written, stage: Stage::Answer }
    }

    /// A write of which nothing has gone.
    pub(super) fn leaving(
        spot: RemoteAddress,
        bytes: M,
        data: Option<u64>,
        context: Context,
    ) -> Self {
        let leaving = Leaving { spot, bytes: Bytes::Borrowed(bytes), data, gone: 0 };
        let stage = Stage::Leaving(leaving);
        Self { to: spot.remote, context, what: CompletionKind::Written, stage }
    }

    /// A read or an update that has been asked for, and where its bytes go: only an answer comes
    /// where there are none.
    #[inline]
    pub(super) fn asked(
        to: RemoteId,
        what: CompletionKind,
        into: Option<M>,
        context: Context,
    ) -> Self {
        let stage = match into {
            Some(into) if !into.is_empty() => Stage::Coming { into, got: 0 },
            _ => Stage::Answer,
        };
        Self { to, context, what, stage }
    }

    /// Of a write, what is still here.
    pub(super) const fn left(&self) -> Option<&Leaving<M>> {
        match &self.stage {
            Stage::Leaving(leaving) => Some(leaving),
            _ => None,
        }
    }

    /// Counts `count` more bytes of a write as sent.
    pub(super) fn advance(&mut self, count: usize) {
        let Stage::Leaving(leaving) = &mut self.stage else { return };
        debug_assert!(count > 0, "each part has bytes");
        leaving.gone += count;
        debug_assert!(leaving.gone <= leaving.bytes.len(), "no more goes than there is");
    }

    /// The last bytes of a write have gone.
    pub(super) fn has_left(&mut self) {
        let left = self.left().map_or(0, Leaving::left);
        debug_assert!(left <= SHORT_MAX, "no more goes with its end");
        self.stage = Stage::Answer;
    }

    /// The bytes of a write are copied: the program's memory is its own again.
    pub(super) fn copy_bytes(&mut self) {
        let Stage::Leaving(leaving) = &mut self.stage else { return };
        let mut copy = alloc::vec![0; leaving.bytes.len()].into_boxed_slice();
        leaving.bytes.read(0, &mut copy);
        leaving.bytes = Bytes::Copied(copy);
    }

    /// Whether a remote may say that it is done.
    #[inline]
    pub(super) fn is_done_by(&self, from: RemoteId) -> bool {
        self.to == from && matches!(self.stage, Stage::Answer)
    }

    /// Whether a remote may refuse it.
    pub(super) fn is_refused_by(&self, from: RemoteId) -> bool {
        self.to == from && !matches!(self.stage, Stage::Leaving(_))
    }

    /// Where the next bytes go, and how many are still to come; none where a remote has none to
    /// give.
    #[inline]
    pub(super) fn coming(&mut self, from: RemoteId) -> Option<(&mut M, usize, usize)> {
        let Stage::Coming { into, got } = &mut self.stage else { return None };
        debug_assert!(*got < into.len(), "something is to come");
        let (at, left) = (*got, into.len() - *got);
        (self.to == from).then_some((into, at, left))
    }

    /// Counts `count` more bytes as received. True when all have come.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> bool {
        let Stage::Coming { into, got } = &mut self.stage else { return false };
        *got += count;
        debug_assert!(*got <= into.len(), "no more comes than there is room for");
        *got == into.len()
    }

    #[inline]
    pub(super) const fn completion(&self, result: Result<(), Fault>) -> Completion {
        Completion { context: self.context, what: self.what, result }
    }
}

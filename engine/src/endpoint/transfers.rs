//! Messages that are coming from senders that had to ask.
use super::numbers::RemoteId;
use super::origin::{Origin, There};
use crate::net::clock::Clock;
use crate::tuning::{Method, Trials};
use slab::Slab;
use std::time::Instant;

/// A message that is coming in parts.
#[derive(Debug)]
pub(super) struct Transfer {
    receive: usize,
    origin: Origin,
    /// Where it begins in the receive's memory.
    offset: u64,
    /// Bytes that were asked for.
    len: u64,
    got: u64,
    /// Where its sender has it.
    there: There,
    /// How it comes.
    by: Method,
    /// Since when it is wanted, where that is timed.
    since: Option<Instant>,
}

impl Transfer {
    /// Into a receive, from so many bytes on, so many.
    pub(super) fn new(
        (receive, offset, len): (usize, u64, u64),
        origin: &Origin,
        there: There,
    ) -> Self {
        debug_assert!(len <= origin.len, "no more is wanted than there is");
        let (origin, by) = (*origin, Method::Pipeline);
        Self { receive, origin, offset, len, got: 0, there, by, since: None }
    }

    pub(super) const fn receive(&self) -> usize {
        self.receive
    }

    pub(super) const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The receive, where the message begins in its memory, and its bytes there.
    pub(super) const fn place(&self) -> (usize, u64, u64) {
        (self.receive, self.offset, self.len)
    }

    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    pub(super) const fn there(&self) -> There {
        self.there
    }

    pub(super) const fn by(&self) -> Method {
        self.by
    }

    /// Whether its sender was asked for parts of it.
    pub(super) fn is_asked_of(&self, source: RemoteId) -> bool {
        self.origin.source == source && self.by == Method::Pipeline
    }

    /// Bytes that are still to come.
    pub(super) const fn left(&self) -> u64 {
        self.len - self.got
    }

    /// Where the next ones go in the receive's memory.
    pub(super) const fn at(&self) -> usize {
        (self.offset + self.got) as usize
    }

    /// Where the next ones lie in the sender's.
    pub(super) const fn address(&self) -> u64 {
        self.there.address.wrapping_add(self.got)
    }

    /// So many bytes are here. Whether all are.
    pub(super) fn take(&mut self, count: u64) -> bool {
        debug_assert!(count <= self.left(), "no more comes than was asked for");
        self.got += count;
        self.got == self.len
    }

    /// Where the bytes that are here begin in the receive's memory, and how many they are.
    pub(super) const fn here(&self) -> (u64, u64) {
        (self.offset, self.got)
    }
}

/// All transfers of an endpoint, by key, and which way of them has been faster.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    coming: Slab<Transfer>,
    trials: Trials,
    /// When the last message was here that was timed.
    last_timed: Option<Instant>,
}

impl Transfers {
    /// Chooses how a message comes that can be read where it lies: as is said for its length, or
    /// as has been faster, which is timed then.
    // spec: INJ-8
    pub(super) fn choose(&mut self, transfer: &mut Transfer, fixed: Option<Method>, clock: &Clock) {
        debug_assert!(transfer.got == 0 && transfer.since.is_none(), "nothing has come");
        transfer.by = fixed.unwrap_or_else(|| {
            transfer.since = Some(clock.now());
            self.trials.choose(transfer.len)
        });
    }

    pub(super) fn insert(&mut self, transfer: Transfer) -> usize {
        debug_assert!(transfer.left() > 0, "something is to come");
        self.coming.insert(transfer)
    }

    pub(super) fn get(&self, key: usize) -> Option<&Transfer> {
        self.coming.get(key)
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut Transfer> {
        self.coming.get_mut(key)
    }

    pub(super) fn contains(&self, key: usize) -> bool {
        self.coming.contains(key)
    }

    /// All of a message is here. How long it has taken counts: since it was wanted, or the last one
    /// before it was here.
    pub(super) fn finish(&mut self, key: usize, clock: &Clock) -> Transfer {
        let transfer = self.coming.remove(key);
        debug_assert_eq!(transfer.left(), 0, "all of it is here");
        if let Some(since) = transfer.since {
            let now = clock.now();
            let before = self.last_timed.replace(now);
            let since = before.map_or(since, |before| before.max(since));
            self.trials.note(transfer.by, transfer.len, now - since);
        }
        transfer
    }

    /// A message that cannot be read where it lies is asked for, from its beginning.
    pub(super) fn ask_again(&mut self, key: usize) {
        let transfer = &mut self.coming[key];
        debug_assert!(transfer.by != Method::Pipeline, "it was not asked for");
        transfer.since.iter().for_each(|_| self.trials.drop_one(transfer.len));
        (transfer.by, transfer.got, transfer.since) = (Method::Pipeline, 0, None);
    }

    /// What was coming from a remote comes no more; each is told.
    pub(super) fn end(&mut self, from: RemoteId, mut tell: impl FnMut(&Transfer)) {
        let Self { coming, trials, .. } = self;
        coming.retain(|_, transfer| {
            let stays = transfer.origin.source != from;
            if !stays {
                transfer.since.iter().for_each(|_| trials.drop_one(transfer.len));
                tell(transfer);
            }
            stays
        });
    }
}

//! Messages that are coming from senders that had to ask.
use super::origin::{Origin, RemoteBody};
use super::remote_id::RemoteId;
use super::slots::Slots;
use super::transport::Choice;
use alloc::vec::Vec;

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
    remote_body: RemoteBody,
    /// How it comes.
    choice: Choice,
}

impl Transfer {
    /// A transfer of `len` bytes into a receive, from `offset` on.
    pub(super) fn new(
        (receive, offset, len): (usize, u64, u64),
        origin: &Origin,
        remote_body: RemoteBody,
    ) -> Self {
        debug_assert!(len <= origin.len, "no more is wanted than there is");
        let (origin, choice) = (*origin, Choice::RING);
        Self { receive, origin, offset, len, got: 0, remote_body, choice }
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

    pub(super) const fn remote_body(&self) -> RemoteBody {
        self.remote_body
    }

    /// Whether it is read where its sender has it.
    pub(super) const fn is_read(&self) -> bool {
        self.choice.is_read
    }

    /// How it comes.
    pub(super) const fn choice(&self) -> Choice {
        self.choice
    }

    /// It comes so.
    pub(super) fn choose(&mut self, choice: Choice) {
        debug_assert!(self.got == 0 && self.choice == Choice::RING, "nothing has come");
        self.choice = choice;
    }

    /// It cannot be read where it lies, and is asked for from its beginning: how it was to come.
    pub(super) fn ask_again(&mut self) -> Choice {
        debug_assert!(self.choice.is_read, "it was not asked for");
        self.got = 0;
        core::mem::replace(&mut self.choice, Choice::RING)
    }

    /// Whether its sender was asked for parts of it.
    pub(super) fn is_asked_of(&self, source: RemoteId) -> bool {
        self.origin.source == source && !self.choice.is_read
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
        self.remote_body.address.wrapping_add(self.got)
    }

    /// Counts `count` more bytes as received. True when all have come.
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

/// All transfers of an endpoint, by key.
#[derive(Debug, Default)]
pub(super) struct Transfers(Slots<Transfer>);

impl Transfers {
    pub(super) fn insert(&mut self, transfer: Transfer) -> usize {
        debug_assert!(transfer.left() > 0, "something is to come");
        self.0.insert(transfer)
    }

    pub(super) fn get(&self, key: usize) -> Option<&Transfer> {
        self.0.get(key)
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut Transfer> {
        self.0.get_mut(key)
    }

    pub(super) fn contains(&self, key: usize) -> bool {
        self.0.get(key).is_some()
    }

    /// All of a message is here.
    pub(super) fn finish(&mut self, key: usize) -> Transfer {
        let transfer = self.0.take(key);
        debug_assert_eq!(transfer.left(), 0, "all of it is here");
        transfer
    }

    /// Ends all transfers from a remote, and reports each.
    pub(super) fn end(&mut self, from: RemoteId, tell: impl FnMut(Transfer)) {
        let affected = self.0.iter().filter(|(_, transfer)| transfer.origin.source == from);
        let keys: Vec<_> = affected.map(|(key, _)| key).collect();
        keys.into_iter().map(|key| self.0.take(key)).for_each(tell);
    }
}

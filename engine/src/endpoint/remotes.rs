//! The endpoints that this one knows: by number, by name and by connection, and how many of them
//! are called.
mod remote;
pub(super) use remote::{Call, ConnectionParts, ConnectionState, Remote};

use super::REMOTES_MAX;
use super::RemoteId;
use super::address::Address;
use super::numbers::RemoteNames;
use crate::error::DisconnectReason;
use crate::peer::agreement::Name;
use ayre_proto::heap;
use ayre_proto::units::PeerId;
use slab::Slab;
use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::time::Instant;

/// All remotes of an endpoint.
#[derive(Debug)]
pub(super) struct Remotes {
    known: Slab<Remote>,
    /// How many there may be, the last serial number, and their names for others.
    places: usize,
    serial: u64,
    names: RemoteNames,
    /// Their numbers, by place.
    numbers: Box<[Option<RemoteId>; REMOTES_MAX]>,
    by_name: HashMap<Name, RemoteId>,
    by_peer: Vec<Option<RemoteId>>,
    /// There is no room for one more.
    is_full: bool,
    /// How many are called.
    calls: usize,
}

impl Remotes {
    pub(super) fn new() -> Self {
        Self {
            known: Slab::new(),
            places: REMOTES_MAX,
            serial: 0,
            names: RemoteNames::default(),
            numbers: heap::array(|_| None),
            by_name: HashMap::new(),
            by_peer: Vec::new(),
            is_full: false,
            calls: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// How many there may be.
    pub(super) const fn places(&self) -> usize {
        self.places
    }

    /// There may be fewer.
    #[cfg(all(test, not(loom)))]
    pub(super) fn narrow(&mut self, places: usize) {
        self.places = places;
    }

    pub(super) const fn names(&self) -> &RemoteNames {
        &self.names
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Remote> {
        self.known.iter().map(|(_, remote)| remote)
    }

    /// Whether a number names a remote, and is not stale.
    #[inline(always)]
    pub(super) fn knows(&self, remote: RemoteId) -> bool {
        self.numbers[remote.index() % REMOTES_MAX] == Some(remote)
    }

    /// The remote with this number; none if the number is stale.
    #[inline]
    pub(super) fn known(&self, remote: RemoteId) -> Option<&Remote> {
        self.get(remote).filter(|known| known.id() == remote)
    }

    /// The remote at the place of a number that is not stale, or whose remote has just gone.
    #[inline(always)]
    pub(super) fn get(&self, remote: RemoteId) -> Option<&Remote> {
        self.known.get(remote.index())
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, remote: RemoteId) -> Option<&mut Remote> {
        self.known.get_mut(remote.index())
    }

    /// Where a remote is connected that something may be posted to.
    #[inline(always)]
    pub(super) fn way(&self, to: RemoteId) -> Option<PeerId> {
        self.get(to).and_then(|known| known.way(to))
    }

    pub(super) fn named(&self, name: &Name) -> Option<RemoteId> {
        self.by_name.get(name).copied()
    }

    /// The remote that messages of a connection come from; none where nothing is taken from it.
    #[inline(always)]
    pub(super) fn of_peer(&self, index: usize) -> Option<RemoteId> {
        self.by_peer.get(index).copied().flatten()
    }

    /// The remote that is connected there, even if nothing is taken from it.
    pub(super) fn connected_at(&self, peer: PeerId) -> Option<RemoteId> {
        self.iter().find(|remote| remote.peer() == Some(peer)).map(Remote::id)
    }

    /// Nothing more is taken from a connection: of which remote.
    pub(super) fn cut_off(&mut self, index: usize) -> Option<RemoteId> {
        self.by_peer.get_mut(index).and_then(Option::take)
    }

    /// A number for an address whose name is not known. There is room for it.
    pub(super) fn add(&mut self, address: Address, is_neighbour: bool) -> RemoteId {
        debug_assert!(self.known.len() < REMOTES_MAX, "there is room");
        let since = self.next_serial();
        let id = RemoteId::new(since, self.known.vacant_key());
        let place = self.known.insert(Remote::new(id, address, is_neighbour, since));
        debug_assert_eq!(place, id.index(), "a number has its place");
        let before = self.by_name.insert(address.name(), id);
        debug_assert!(before.is_none(), "a name has one number");
        self.names.set(id, Some(address.name()));
        debug_assert!(self.numbers[place].is_none(), "a place has one number");
        self.numbers[place] = Some(id);
        id
    }

    /// Forgets one that has ended.
    pub(super) fn forget(&mut self, remote: RemoteId) {
        let known = self.known.remove(remote.index());
        debug_assert_eq!(known.id(), remote, "the number is not stale");
        debug_assert!(matches!(known.state(), ConnectionState::Ended(_)), "it has ended");
        debug_assert!(!self.by_peer.contains(&Some(remote)), "nothing is taken from it");
        let named = self.by_name.remove(&known.address().name());
        debug_assert_eq!(named, Some(remote), "a name has one number");
        self.names.set(remote, None);
        self.numbers[remote.index()] = None;
        self.check();
    }

    /// A known remote is found at this address.
    pub(super) fn locate(&mut self, remote: RemoteId, address: &Address, is_neighbour: bool) {
        self[remote].locate(*address, is_neighbour);
    }

    /// A serial number that was not given yet: later ones are greater.
    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// There is no room for one more, or there is. Whether that is news.
    pub(super) fn set_full(&mut self, is_full: bool) -> bool {
        std::mem::replace(&mut self.is_full, is_full) != is_full
    }

    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Those that are neither called nor connected, whether one never was, and since when.
    pub(super) fn unused(&self) -> impl Iterator<Item = (bool, u64, RemoteId)> {
        self.iter().filter_map(|remote| match remote.state() {
            ConnectionState::Ended(_) => Some((false, remote.since(), remote.id())),
            ConnectionState::Unconnected => Some((true, remote.since(), remote.id())),
            _ => None,
        })
    }

    pub(super) fn neighbours(&self) -> usize {
        self.iter().filter(|remote| remote.is_neighbour()).count()
    }

    /// How many are called.
    #[inline]
    pub(super) const fn calls(&self) -> usize {
        self.calls
    }

    /// Those that are called.
    pub(super) fn called(&self) -> Vec<RemoteId> {
        let called = self.iter().filter(|it| matches!(it.state(), ConnectionState::Calling(_)));
        called.map(Remote::id).collect()
    }

    /// A remote is called now that was not.
    pub(super) fn begin_call(&mut self, remote: RemoteId, call: Call, now: Instant) {
        self[remote].begin_call(call, now);
        self.calls += 1;
        self.check();
    }

    /// A remote is called no longer: how it was, if it was.
    pub(super) fn hang_up(&mut self, remote: RemoteId) -> Option<Call> {
        let call = self.get_mut(remote)?.hang_up()?;
        self.calls -= 1;
        self.check();
        Some(call)
    }

    /// A remote is connected.
    pub(super) fn connect(&mut self, remote: RemoteId, peer: PeerId, ends: ConnectionParts) {
        if self.by_peer.len() <= peer.index() {
            self.by_peer.resize(peer.index() + 1, None);
        }
        debug_assert!(self.by_peer[peer.index()].is_none(), "a connection is one remote's");
        self[remote].connect(peer, ends);
        self.by_peer[peer.index()] = Some(remote);
    }

    /// Nothing goes to a remote any more, nor comes from it; it is called no longer. False where
    /// there is none.
    pub(super) fn end(&mut self, remote: RemoteId, why: DisconnectReason) -> bool {
        let since = self.next_serial();
        let Some(known) = self.get_mut(remote) else { return false };
        known.end(since, why);
        self.check();
        true
    }

    /// Asserts that the counts agree with the entries.
    fn check(&self) {
        debug_assert!(self.calls <= self.known.len(), "each is a remote");
        debug_assert_eq!(self.known.len(), self.by_name.len(), "each has its name");
        debug_assert!(self.known.len() <= REMOTES_MAX, "a number has its place");
    }
}

impl Index<RemoteId> for Remotes {
    type Output = Remote;

    #[inline(always)]
    fn index(&self, remote: RemoteId) -> &Remote {
        &self.known[remote.index()]
    }
}

impl IndexMut<RemoteId> for Remotes {
    #[inline(always)]
    fn index_mut(&mut self, remote: RemoteId) -> &mut Remote {
        &mut self.known[remote.index()]
    }
}

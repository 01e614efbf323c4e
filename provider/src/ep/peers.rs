//! A program's numbers of its peers, and the engine's.

use crate::abi::ADDR_NOTAVAIL;
use crate::info::address::Address;
use crate::record::Recorder;
use ayre::endpoint::{REMOTES_MAX, RemoteId, raw::RemoteNames};
use ayre::guest::heap;
use std::collections::HashMap;
use std::sync::Arc;

/// The name that tells an endpoint from all others.
type Name = [u64; 2];

/// Both ways, by index. The engine's number of a peer that has gone may become stale; the
/// program's stays, and the peer is found anew by its name.
pub(super) struct Peers {
    /// By the program's numbers: what the engine knew when it was asked last.
    remotes: Vec<Option<RemoteId>>,
    addresses: Vec<Option<Address>>,
    /// By the engine's numbers: whose it is, and what the program is told.
    numbers: Box<[(Option<RemoteId>, u64); REMOTES_MAX]>,
    /// By name, the program's numbers of a peer; the first one is told.
    named: HashMap<Name, Vec<u64>>,
    names: RemoteNames,
    recorder: Option<Arc<Recorder>>,
}

impl Peers {
    pub(super) fn new(names: RemoteNames, recorder: Option<Arc<Recorder>>) -> Self {
        Self {
            remotes: Vec::new(),
            addresses: Vec::new(),
            numbers: heap::array(|_| (None, ADDR_NOTAVAIL)),
            named: HashMap::new(),
            names,
            recorder,
        }
    }

    /// By what the engine knows a peer; none if it is yet to be told, or there is none.
    #[inline]
    pub(super) fn remote(&self, number: u64) -> Option<RemoteId> {
        *self.remotes.get(usize::try_from(number).ok()?)?
    }

    /// By what the program knows a peer.
    #[inline(always)]
    pub(super) fn number(&mut self, remote: Option<RemoteId>) -> u64 {
        let Some(remote) = remote else { return ADDR_NOTAVAIL };
        let (known, number) = self.numbers[remote.index() % REMOTES_MAX];
        if known == Some(remote) { number } else { self.find_number(remote) }
    }

    /// The number of a remote that the engine has learned of since: it has called.
    #[cold]
    fn find_number(&mut self, remote: RemoteId) -> u64 {
        let numbers = self.names.of(remote).and_then(|name| self.named.get(&name));
        let number = numbers.and_then(|numbers| numbers.first().copied());
        let number = number.unwrap_or(ADDR_NOTAVAIL);
        self.numbers[remote.index() % REMOTES_MAX] = (Some(remote), number);
        number
    }

    pub(super) fn address(&self, number: u64) -> Option<Address> {
        *self.addresses.get(usize::try_from(number).ok()?)?
    }

    pub(super) fn insert(&mut self, number: u64, address: Address) {
        let place = number as usize;
        if self.addresses.len() <= place {
            self.addresses.resize(place + 1, None);
            self.remotes.resize(place + 1, None);
        }
        (self.addresses[place], self.remotes[place]) = (Some(address), None);
        if let Address::Of(address) = address {
            self.name(number, address.name());
        }
    }

    fn name(&mut self, number: u64, name: Name) {
        if let Some(recorder) = &self.recorder {
            recorder.named(number, name);
        }
        let numbers = self.named.entry(name).or_default();
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }

    /// The engine knows the peer of a number, at this address.
    pub(super) fn found(
        &mut self,
        number: u64,
        remote: RemoteId,
        address: &ayre::endpoint::Address,
    ) {
        if let Some(place) = self.remotes.get_mut(number as usize) {
            *place = Some(remote);
        }
        self.name(number, address.name());
        self.find_number(remote);
    }

    /// Forgets the engine's numbers that it no longer knows. Returns whether there were any.
    #[cold]
    pub(super) fn forget_stale(&mut self, knows: impl Fn(RemoteId) -> bool) -> bool {
        let mut any = false;
        for remote in &mut self.remotes {
            any |= remote.take_if(|remote| !knows(*remote)).is_some();
        }
        any
    }

    /// The number is nobody's any more: what the engine is to forget, where it was the last.
    pub(super) fn remove(&mut self, number: u64) -> Option<RemoteId> {
        let place = number as usize;
        let address = self.addresses.get_mut(place)?.take()?;
        let remote = self.remotes.get_mut(place)?.take();
        let name = match address {
            Address::Of(address) => Some(address.name()),
            Address::At(_) => remote.and_then(|remote| self.names.of(remote)),
        };
        self.unname(number, name);
        let told = self.numbers.iter_mut().find(|(_, told)| *told == number);
        let remote = told.and_then(|(remote, _)| remote.take()).or(remote)?;
        if self.find_number(remote) == ADDR_NOTAVAIL { Some(remote) } else { None }
    }

    /// A number is no longer one of those of its peer, whose name may not be known any more.
    fn unname(&mut self, number: u64, name: Option<Name>) {
        let is_its = |numbers: &&mut Vec<u64>| numbers.contains(&number);
        let name = name.or_else(|| {
            let found = self.named.iter_mut().find(|(_, numbers)| is_its(numbers));
            found.map(|(name, _)| *name)
        });
        let Some(name) = name else { return };
        if let Some(numbers) = self.named.get_mut(&name) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.named.remove(&name);
            }
        }
    }
}

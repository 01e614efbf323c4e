//! A program's numbers of its peers, and the engine's.

use crate::abi::ADDR_NOTAVAIL;
use crate::address::Address;
use ayre::RemoteId;

/// Both ways, by index.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// By the program's numbers: what the engine knows already.
    remotes: Vec<Option<RemoteId>>,
    addresses: Vec<Option<Address>>,
    /// By the engine's numbers.
    numbers: Vec<u64>,
}

impl Peers {
    /// By what the engine knows a peer; none if it is yet to be told, or there is none.
    #[inline]
    pub(super) fn remote(&self, number: u64) -> Option<RemoteId> {
        *self.remotes.get(usize::try_from(number).ok()?)?
    }

    /// By what the program knows a peer.
    #[inline]
    pub(super) fn number(&self, remote: Option<RemoteId>) -> u64 {
        let number = remote.and_then(|remote| self.numbers.get(remote.index()));
        number.copied().unwrap_or(ADDR_NOTAVAIL)
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
    }

    /// The engine knows the peer of a number. Of several numbers of one peer, the first one that
    /// was known is told.
    pub(super) fn found(&mut self, number: u64, remote: RemoteId) {
        if let Some(place) = self.remotes.get_mut(number as usize) {
            *place = Some(remote);
        }
        if self.numbers.len() <= remote.index() {
            self.numbers.resize(remote.index() + 1, ADDR_NOTAVAIL);
        }
        let told = &mut self.numbers[remote.index()];
        if *told == ADDR_NOTAVAIL {
            *told = number;
        }
    }

    /// The number is nobody's any more: what the engine is to forget, where it was the last.
    pub(super) fn remove(&mut self, number: u64) -> Option<RemoteId> {
        let place = number as usize;
        *self.addresses.get_mut(place)? = None;
        let remote = self.remotes.get_mut(place)?.take()?;
        let other = self.remotes.iter().position(|other| *other == Some(remote));
        if self.numbers[remote.index()] == number {
            self.numbers[remote.index()] = other.map_or(ADDR_NOTAVAIL, |other| other as u64);
        }
        if other.is_none() { Some(remote) } else { None }
    }
}

//! The peers of a port: its connections by number, and the deaths to report.
//!
//! ```text
//!            add              end                 remove
//!   vacant ------> living ----------> ended ------------------> vacant
//!                             |  report_death                     |
//!                             +--------------> not told yet ------+ next_dead, forget_death
//! ```
use super::connection::Connection;
use crate::error::Fault;
use ayre_proto::limits::PEERS_MAX;
use ayre_proto::units::PeerId;

/// A port's connections.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// The connections by peer number.
    slots: Vec<Option<Connection>>,
    /// Peers whose death no wait has reported yet; each number is here at most once.
    died: Vec<PeerId>,
    /// The number of connections that have begun or ended.
    changes: u64,
}

impl Peers {
    /// The number of slots: every peer's number is below.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> Option<&Connection> {
        self.slots.get(index).and_then(Option::as_ref)
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, index: usize) -> Option<&mut Connection> {
        self.slots.get_mut(index).and_then(Option::as_mut)
    }

    /// # Errors
    /// [`Fault::ForeignHandle`] where the peer is not connected.
    #[inline(always)]
    pub(crate) fn find(&self, peer: PeerId) -> Result<&Connection, Fault> {
        self.at(peer.index()).ok_or(Fault::ForeignHandle)
    }

    /// # Errors
    /// As [`Peers::find`].
    #[inline(always)]
    pub(crate) fn find_mut(&mut self, peer: PeerId) -> Result<&mut Connection, Fault> {
        self.at_mut(peer.index()).ok_or(Fault::ForeignHandle)
    }

    /// All connections in ascending order, also those that have ended.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> + Clone {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().flatten()
    }

    /// The connections that have not ended.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Connection> + Clone {
        self.iter().filter(|connection| connection.ended.is_none())
    }

    /// The number of connections that have begun or ended. If it has changed since the last call,
    /// all connections should be looked at.
    #[inline(always)]
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds a connection. Removes one of the same number that has ended, with its report.
    pub(crate) fn add(&mut self, connection: Connection) {
        let index = connection.peer.index();
        debug_assert!(connection.ended.is_none(), "it begins");
        debug_assert!(self.at(index).is_none_or(|last| last.ended.is_some()), "a number is one's");
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.forget_death(connection.peer);
        self.changes += 1;
        self.slots[index] = Some(connection);
        self.check();
    }

    /// Checks the invariants between the steps.
    fn check(&self) {
        debug_assert!(self.slots.len() <= PEERS_MAX, "a number is below the limit");
        debug_assert!(self.died.len() <= self.slots.len(), "each number dies once at most");
        debug_assert!(self.changes >= self.iter().count() as u64, "each of those here has begun");
    }

    /// Ends a connection with this reason. None where it had ended before.
    pub(crate) fn end(&mut self, peer: PeerId, why: Fault) -> Option<&mut Connection> {
        let connection = self.slots.get_mut(peer.index())?.as_mut()?;
        if connection.ended.is_some() {
            return None;
        }
        debug_assert!(!self.died.contains(&peer), "who is there has not died");
        connection.ended = Some(why);
        self.changes += 1;
        Some(connection)
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&mut self, peer: PeerId) -> Option<Connection> {
        let connection = self.slots.get_mut(peer.index())?.take()?;
        debug_assert!(connection.ended.is_some(), "a connection ends before it is forgotten");
        debug_assert_eq!(connection.peer, peer, "each connection stands at its number");
        Some(connection)
    }

    /// Has the next wait report the death of this peer.
    pub(crate) fn report_death(&mut self, peer: PeerId) {
        debug_assert!(!self.died.contains(&peer), "each death is reported once");
        debug_assert!(peer.index() < self.slots.len(), "who died was connected");
        self.died.push(peer);
        self.check();
    }

    pub(crate) fn forget_death(&mut self, peer: PeerId) {
        self.died.retain(|died| *died != peer);
    }

    /// Whether there is a death to report.
    #[inline(always)]
    pub(crate) fn has_dead(&self) -> bool {
        !self.died.is_empty()
    }

    /// Takes the next peer whose death is to be reported.
    pub(crate) fn next_dead(&mut self) -> Option<PeerId> {
        let peer = self.died.pop()?;
        let has_ended = self.at(peer.index()).is_none_or(|last| last.ended.is_some());
        debug_assert!(has_ended, "a new connection of the number is not taken for the last one");
        Some(peer)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::port::Port;
    use crate::port::config::Config;

    /// A port whose only peer is number 3.
    fn port() -> (Port, PeerId) {
        let (near, _) = Port::pair(Config::new().number(0), Config::new().number(3)).unwrap();
        (near, PeerId(3))
    }

    // spec: LIFE-11, LIFE-14
    #[test]
    fn a_connection_ends_once_and_stays_until_it_is_removed() {
        let (mut port, peer) = port();
        let peers = &mut port.peers;
        assert_eq!((peers.count(), peers.living().count()), (4, 1));
        let before = peers.changes();
        assert!(peers.end(peer, Fault::PeerDead).is_some());
        assert!(peers.end(peer, Fault::Malformed).is_none(), "the first reason is the one");
        assert_eq!(peers.find(peer).unwrap().ended, Some(Fault::PeerDead));
        assert_eq!((peers.changes(), peers.living().count()), (before + 1, 0));
        assert!(peers.remove(peer).is_some() && peers.remove(peer).is_none());
        assert_eq!(peers.find(peer).err(), Some(Fault::ForeignHandle));
        assert_eq!(peers.count(), 4, "numbers are never fewer");
    }

    // spec: LIFE-14
    #[test]
    fn the_news_of_a_death_goes_with_the_number() {
        let (mut port, peer) = port();
        port.peers.end(peer, Fault::PeerDead);
        port.peers.report_death(peer);
        let mut connection = port.peers.remove(peer).unwrap();
        assert!(port.peers.has_dead());
        let before = port.peers.changes();
        connection.ended = None;
        port.peers.add(connection);
        assert!(!port.peers.has_dead(), "a wait that named the number would mean the wrong peer");
        assert_eq!((port.peers.changes(), port.peers.next_dead()), (before + 1, None));
    }
}

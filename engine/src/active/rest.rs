//! Sleep in an event loop of the program, as [`Port::rest`](crate::Port::rest) has it.
use super::messenger::Messenger;
use super::outgoing::{Outbound, Outgoing};
use rustix::fd::{AsFd, BorrowedFd};

/// The descriptor of its port, for an event loop: readable when something has come while the
/// messenger [rests](Messenger::rest).
impl<S> AsFd for Messenger<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.out.port.as_fd()
    }
}

impl<S> Messenger<S> {
    /// Prepares for the program's sleep in an event loop, at the port's descriptor ([`AsFd`]).
    /// True if the program may sleep: then the descriptor is readable as soon as something comes,
    /// until [`Messenger::wake`] ends the rest. Polls first, which runs handlers. Never blocks.
    ///
    /// False if handlers have run, a peer has died, a message waits for room at its peer, or
    /// something else is to be done. The program then calls [`Messenger::wait`] with a timeout of
    /// 0, and tries again.
    ///
    /// A program that also uses notifications, queues or depots of the port looks at them after
    /// `rest`, before it sleeps. All calls may be made during a rest.
    // spec: AM-6, WAIT-6
    pub fn rest(&mut self, state: &mut S) -> bool {
        let ran = self.poll(state);
        // No event tells of room.
        if ran > 0 || self.out.is_restless || !self.deaths.is_empty() {
            return false;
        }
        let seen = self.note_peer_changes();
        let Outgoing { port, outbound, .. } = &mut self.out;
        port.rest_unless(|port| {
            port.has_message() || port.peers.changes() != seen || outbound.has_news()
        })
    }

    /// Ends a rest: the program is awake, and polls. Never blocks.
    // spec: WAIT-6
    pub fn wake(&mut self) {
        self.out.port.wake();
    }
}

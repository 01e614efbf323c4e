//! Trains of datagrams beside single frames: the system takes and gives a train whole over UDP, in
//! the time of a few frames.
//!
//! ```text
//!   one or two datagrams --> frames of Ethernet -----> the other port
//!   a train -- it hears UDP --> UDP -----------------> the same address and port
//!           '- not known ----> frames, and its first datagram by UDP, too: a probe
//!                              "I hear UDP", an empty frame <--'
//! ```
//!
//! UDP may be forbidden where frames are not, so a train goes by it only where the other side has
//! said lately that it hears.
use crate::wire::net::{DATAGRAM_MAX, Inbox, Net, NetCounters, Outbox};
use crate::wire::udp::{Full, TRAIN_DATAGRAMS, Udp};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Datagrams from which on a train is sent as such.
const TRAIN_MIN: usize = 3;
/// For how long what a port says about hearing holds; and how often it is said.
// spec: NET-7
const HEARS_NANOS: u64 = 1_000_000_000;
const SAY_NANOS: u64 = 100_000_000;
/// The time between two probes.
const PROBE_NANOS: u64 = 5_000_000;
/// The time between two looks for trains where none have come lately, and looks in vain after one
/// has come until it is so.
const LOOK_NANOS: u64 = 20_000;
const WARM_LOOKS: u32 = 64;
/// Ports that are remembered.
const REMOTES_MAX: usize = 4096;

/// The UDP side of a port.
#[derive(Debug)]
pub(super) struct Trains {
    udp: Udp,
    remotes: HashMap<SocketAddr, Remote>,
    looked_at: u64,
    /// Looks that are made at each poll, because something has come.
    warm: u32,
}

/// What is known of a port as to UDP: when it was so last.
#[derive(Clone, Copy, Debug, Default)]
struct Remote {
    /// It has said that it hears ours.
    hears: Option<u64>,
    probed: Option<u64>,
    /// It was told that we hear its.
    told: Option<u64>,
}

/// What becomes of the front of an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// It is no train, or there is no way for one: so many datagrams go as frames.
    Frames(usize),
    /// It has gone.
    Gone,
    /// The system takes no more for now.
    Waits,
}

impl Trains {
    /// Opens a UDP socket at an address; port 0 has the system choose one.
    ///
    /// # Errors
    ///
    /// As [`Udp::bind`].
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let udp = Udp::bind(address)?;
        Ok(Self { udp, remotes: HashMap::new(), looked_at: 0, warm: 0 })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.udp.local()
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }

    pub(super) fn counters(&self) -> NetCounters {
        self.udp.counters()
    }

    pub(super) fn datagram_max(&self, to: SocketAddr) -> usize {
        self.udp.datagram_max(to)
    }

    /// Sends the front of an outbox, if it is a train and may go by UDP.
    // spec: NET-7
    pub(super) fn send_front(&mut self, outbox: &mut Outbox, now: u64) -> Front {
        let Some(train) = outbox.front(TRAIN_DATAGRAMS, DATAGRAM_MAX) else {
            return Front::Frames(0);
        };
        if train.count < TRAIN_MIN {
            return Front::Frames(train.count.max(outbox.alone()));
        }
        let Some(remote) = self.remote(train.to, now) else { return Front::Frames(train.count) };
        if is_within(remote.hears, HEARS_NANOS, now) {
            return match self.udp.send_front(outbox) {
                Ok(()) => Front::Gone,
                Err(Full) => Front::Waits,
            };
        }
        if !is_within(remote.probed, PROBE_NANOS, now) {
            remote.probed = Some(now);
            self.udp.send_copy(outbox);
        }
        Front::Frames(train.count)
    }

    /// Takes what has come, if it is time to look; tells who is to be told that it is heard.
    // spec: NET-7
    pub(super) fn receive(
        &mut self,
        inbox: &mut Inbox,
        now: u64,
        is_known: impl Fn(SocketAddr) -> bool,
    ) -> Option<SocketAddr> {
        if self.warm == 0 && now.saturating_sub(self.looked_at) < LOOK_NANOS {
            return None;
        }
        self.looked_at = now;
        let before = inbox.len();
        self.udp.receive(inbox, now);
        if inbox.len() == before {
            self.warm = self.warm.saturating_sub(1);
            return None;
        }
        self.warm = WARM_LOOKS;
        let (from, _) = inbox.get(inbox.len() - 1);
        let remote = self.remote(from, now).filter(|_| is_known(from))?;
        if is_within(remote.told, SAY_NANOS, now) {
            return None;
        }
        remote.told = Some(now);
        Some(from)
    }

    /// A port says that it hears us.
    pub(super) fn on_hears(&mut self, from: SocketAddr, now: u64) {
        if let Some(remote) = self.remotes.get_mut(&from) {
            remote.hears = Some(now);
        }
    }

    /// What is known of a port; none where there are too many.
    fn remote(&mut self, port: SocketAddr, now: u64) -> Option<&mut Remote> {
        if self.remotes.len() >= REMOTES_MAX && !self.remotes.contains_key(&port) {
            self.remotes.retain(|_, remote| is_within(remote.hears, HEARS_NANOS, now));
        }
        let is_full = self.remotes.len() >= REMOTES_MAX;
        if is_full {
            self.remotes.get_mut(&port)
        } else {
            Some(self.remotes.entry(port).or_default())
        }
    }
}

/// Whether something was so at most this long ago.
fn is_within(at: Option<u64>, nanos: u64, now: u64) -> bool {
    at.is_some_and(|at| now.saturating_sub(at) < nanos)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: NET-7, LIM-1
    #[test]
    fn ports_that_are_remembered_are_bounded_and_those_that_hear_stay() {
        let mut trains = Trains::bind(([127, 0, 0, 1], 0).into()).expect("a socket");
        let port = |number: usize| SocketAddr::from(([10, 0, 0, 1], number as u16));
        for number in 0..3 * REMOTES_MAX {
            assert!(trains.remote(port(number), 0).is_some());
            if number == 7 {
                trains.on_hears(port(7), 0);
            }
        }
        assert!(trains.remotes.len() <= REMOTES_MAX);
        assert!(trains.remotes[&port(7)].hears.is_some());
        for number in 0..2 * REMOTES_MAX {
            if trains.remote(port(number), 0).is_some() {
                trains.on_hears(port(number), 0);
            }
        }
        assert!(trains.remote(port(3 * REMOTES_MAX), 0).is_none(), "all of them hear");
        assert!(trains.remote(port(7), 0).is_some());
        assert!(trains.remote(port(3 * REMOTES_MAX), 2 * HEARS_NANOS).is_some());
    }
}

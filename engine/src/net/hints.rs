//! Hints: reports of the network about addresses, by ICMP or by an error of a call.
use crate::error::AttemptOutcome;
use rustix::io::Errno;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Addresses of which it is remembered what the network says; of more, the eldest are forgotten.
// spec: LIM-1
const HINTS_MAX: usize = 256;

/// A report of the network about an address. Anybody can have sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Its host says that the port is closed.
    PortClosed,
    /// Somebody says that what goes there does not arrive.
    Undelivered {
        /// The error that it stands for.
        errno: Errno,
        /// The sender of the report.
        by: Option<IpAddr>,
    },
    /// This host has not sent there.
    NotSent(Errno),
}

/// The last report of the network about each address: a net notes them, links ask for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints(Arc<Mutex<Vec<(IpAddr, u16, Hint)>>>);

impl Hints {
    /// That a port is closed is remembered until somebody asks, whatever is said then.
    #[cold]
    pub(crate) fn note(&self, at: SocketAddr, hint: Hint) {
        let mut known = self.known();
        match place(&known, at) {
            Some(place) if known[place].2 == Hint::PortClosed => {}
            Some(place) => known[place].2 = hint,
            None => {
                if known.len() >= HINTS_MAX {
                    known.remove(0);
                }
                known.push((at.ip(), at.port(), hint));
            }
        }
        debug_assert!(known.len() <= HINTS_MAX, "of more, the eldest are forgotten");
        debug_assert!(place(&known, at).is_some(), "what was noted is known");
    }

    /// The last report about an address.
    #[cold]
    pub(crate) fn of(&self, at: SocketAddr) -> Option<Hint> {
        let known = self.known();
        place(&known, at).map(|place| known[place].2)
    }

    /// Forgets what was said of an address.
    #[cold]
    pub(crate) fn forget(&self, at: SocketAddr) {
        let mut known = self.known();
        if let Some(place) = place(&known, at) {
            known.remove(place);
        }
        debug_assert!(place(&known, at).is_none(), "of an address one thing is known");
    }

    /// Whether it was said that its port is closed, since the last time.
    #[cold]
    pub(crate) fn take_closed(&self, at: SocketAddr) -> bool {
        let is_closed = self.of(at) == Some(Hint::PortClosed);
        if is_closed {
            self.forget(at);
        }
        is_closed
    }

    fn known(&self) -> MutexGuard<'_, Vec<(IpAddr, u16, Hint)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(known: &[(IpAddr, u16, Hint)], at: SocketAddr) -> Option<usize> {
    known.iter().position(|(ip, port, _)| (*ip, *port) == (at.ip(), at.port()))
}

impl From<Hint> for AttemptOutcome {
    fn from(hint: Hint) -> Self {
        match hint {
            Hint::PortClosed => Self::PortClosed,
            Hint::Undelivered { errno, by } => Self::Undelivered { errno, by },
            Hint::NotSent(errno) => Self::NotSent(errno),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: LIM-1
    #[test]
    fn closed_ports_are_told_once_and_the_eldest_of_many_are_forgotten() {
        let hints = Hints::default();
        let at = |number: usize| SocketAddr::from(([10, 0, 0, 1], number as u16));
        let note = |number| hints.note(at(number), Hint::PortClosed);
        let take = |number| hints.take_closed(at(number));
        note(1);
        note(1);
        assert!(!take(2) && take(1) && !take(1));
        (0..HINTS_MAX + 2).for_each(note);
        assert!(!take(1) && take(2) && take(HINTS_MAX + 1));
    }

    // spec: LINK-29, OPEN-32
    #[test]
    fn the_last_hint_of_an_address_stays_and_none_hides_a_closed_port() {
        let (hints, at) = (Hints::default(), SocketAddr::from(([10, 0, 0, 1], 7)));
        let [first, last] = [Errno::NETUNREACH, Errno::PERM].map(Hint::NotSent);
        hints.note(at, first);
        hints.note(at, last);
        assert!(hints.of(at) == Some(last) && !hints.take_closed(at));
        hints.note(at, Hint::PortClosed);
        hints.note(at, first);
        assert!(hints.of(at) == Some(Hint::PortClosed) && hints.take_closed(at));
        assert_eq!(hints.of(at), None);
    }
}

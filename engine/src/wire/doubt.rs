//! Peers that are not heard: what the network says of them, what people are told, and what their
//! end is called.
//!
//! Nobody answers for a process that is stopped, nor for one that was killed. But the host of the
//! latter says that its port is closed, to whoever sends there ("port unreachable"). Others can say
//! that in its name; so a link asks for it only while it hears nothing.
use crate::log::tell;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Closed ports that are remembered until somebody asks; then the eldest are forgotten.
// spec: LIM-1
const CLOSED_MAX: usize = 256;

/// Why a link has ended that neither side has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing was heard for so long.
    Silent(Duration),
    /// Nothing was heard, and the other side's port is closed.
    PortClosed,
    /// The other side was heard, and nothing that was sent has arrived for so long.
    NoData(Duration),
    /// The other side does not know the link.
    Forgotten,
}

/// Ports of which their hosts have said that they are closed: a net notes them, links ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed(Arc<Mutex<Vec<(IpAddr, u16)>>>);

impl Closed {
    #[cold]
    pub(crate) fn note(&self, at: SocketAddr) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (at.ip(), at.port());
        if !known.contains(&at) {
            if known.len() >= CLOSED_MAX {
                known.remove(0);
            }
            known.push(at);
        }
    }

    /// Whether that was said since the last time.
    #[cold]
    pub(crate) fn take(&self, at: SocketAddr) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|known| *known == (at.ip(), at.port()));
        place.map(|place| known.remove(place)).is_some()
    }
}

/// What people are told of a peer that is not heard.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    is_told: bool,
}

impl Doubt {
    /// Nothing was heard for so long. Whether that is news.
    #[cold]
    pub(super) fn tell(&mut self, whom: Option<SocketAddr>, silent: Duration) -> bool {
        let is_news = !std::mem::replace(&mut self.is_told, true);
        if is_news {
            let (at, silent) = (place(whom), silent.as_secs_f32());
            tell!(
                WARN,
                "nothing was heard of the port at {at} for {silent:.1} s; what goes there \
                         waits"
            );
        }
        is_news
    }

    /// Something is heard again.
    #[cold]
    pub(super) fn end(&mut self, whom: Option<SocketAddr>) {
        if std::mem::take(&mut self.is_told) {
            tell!(WARN, "the port at {} is heard again", place(whom));
        }
    }
}

fn place(at: Option<SocketAddr>) -> String {
    at.map_or_else(|| "an unknown address".to_owned(), |at| at.to_string())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: LIM-1
    #[test]
    fn closed_ports_are_told_once_and_the_eldest_of_many_are_forgotten() {
        let closed = Closed::default();
        let at = |number: usize| SocketAddr::from(([10, 0, 0, 1], number as u16));
        closed.note(at(1));
        closed.note(at(1));
        assert!(!closed.take(at(2)) && closed.take(at(1)) && !closed.take(at(1)));
        (0..CLOSED_MAX + 2).for_each(|number| closed.note(at(number)));
        assert!(!closed.take(at(1)) && closed.take(at(2)) && closed.take(at(CLOSED_MAX + 1)));
    }
}

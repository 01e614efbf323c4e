//! The network as a link sees it: datagrams out, datagrams in, and no promises.
mod inbox;
mod outbox;

pub(crate) use self::inbox::Inbox;
pub(crate) use self::outbox::{Outbox, Train};

use super::hints::Hints;
use aligned_vec::{AVec, ConstAlign};
use bytes::BytesMut;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Longest payload of a datagram that any network here carries: what IPv4 leaves of 65535 bytes.
pub(crate) const DATAGRAM_MAX: usize = 65_535 - IPV4_HEADERS;
/// Bytes of the headers of IPv4 (without options) and UDP.
pub(crate) const IPV4_HEADERS: usize = 20 + 8;
/// Bytes of the headers of IPv6 (without extensions) and UDP.
pub(crate) const IPV6_HEADERS: usize = 40 + 8;

/// Where the bytes of datagrams lie. The system copies them from and to the beginning of a line of
/// the processor's cache at three times the speed of anywhere else.
pub(crate) type Bytes = AVec<u8, ConstAlign<LINE_BYTES>>;
/// Of a line of the processor's cache.
pub(crate) const LINE_BYTES: usize = 64;

/// Bytes of which a net has a share until they have left, so that they are not copied. The holder
/// of the only reference may write them.
pub(crate) type Shared = Arc<BytesMut>;

const _: () = assert!(LINE_BYTES.is_power_of_two(), "lengths are rounded by a mask");
const _: () = assert!(IPV4_HEADERS < IPV6_HEADERS, "what IPv6 leaves, IPv4 leaves too");

/// A buffer of `count` zeros.
pub(crate) fn zeros(count: usize) -> Bytes {
    let mut bytes = Bytes::with_capacity(LINE_BYTES, count);
    bytes.resize(count, 0);
    debug_assert!(bytes.as_ptr().addr().is_multiple_of(LINE_BYTES), "they begin with a line");
    bytes
}

/// The length of the longest datagrams that are worth sending where the limit is this number of
/// bytes. Datagrams of a train lie one behind the other, so all of them begin with a line if each
/// is some lines long.
pub(crate) const fn whole_lines(datagram_max: usize) -> usize {
    if datagram_max < 8 * LINE_BYTES { datagram_max } else { datagram_max & !(LINE_BYTES - 1) }
}

/// Writes down, for a network, the frames in sealed datagrams.
pub(crate) trait Tap: Debug + Send + Sync {
    /// This frame is about to be sealed.
    fn seals(&self, to: SocketAddr, frame: &[u8]);

    /// This frame was in a sealed datagram that has come.
    fn opened(&self, from: SocketAddr, frame: &[u8], now: u64);
}

/// Of each net of a port.
pub(crate) type Taps = Arc<[Arc<dyn Tap>]>;

/// A carrier of datagrams, which may lose, repeat, reorder and damage them. It never blocks.
///
/// `now` is in nanoseconds of a clock of the caller's choice that never goes back.
// spec: NET-1
pub(crate) trait Net: Debug + Send {
    /// Sends what the outbox holds, as far as the system takes it now; the rest stays there. A
    /// datagram that can never go (too long, no route) is dropped and counted: the network loses.
    fn send(&mut self, outbox: &mut Outbox, now: u64);

    /// Takes what has come into the empty inbox: at most 256 datagrams, and perhaps not yet all
    /// that is there; [`Net::as_fd`] can be read as long as there is more.
    fn receive(&mut self, inbox: &mut Inbox, now: u64);

    /// Can be read when something has come: for epoll and poll.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// When [`Net::send`] or [`Net::receive`] has something to do although nothing comes: it holds
    /// datagrams back, or the system took no more. `None` if there is no such time.
    fn deadline(&self) -> Option<u64>;

    /// The address that peers send to.
    fn local(&self) -> SocketAddr;

    /// Longest datagram that goes to `to` whole, in bytes of its payload, as far as is known now.
    /// Asks the system: not for every datagram.
    fn datagram_max(&self, to: SocketAddr) -> usize;

    /// The counters since it was opened.
    fn counters(&self) -> NetCounters;

    /// Datagrams to this address may not arrive: looks whether this host still has the net's own
    /// address, and goes on at another one where it has not.
    // spec: NET-15
    fn check_address(&mut self, _to: SocketAddr) {}

    /// Where it notes what it hears of addresses beside datagrams, if it hears of that.
    fn hints(&self) -> Hints {
        Hints::default()
    }

    /// The capture that is told of the frames in sealed datagrams, if they are written down.
    fn tap(&self) -> Option<Arc<dyn Tap>> {
        None
    }
}

impl<N: Net + ?Sized> Net for Box<N> {
    fn send(&mut self, outbox: &mut Outbox, now: u64) {
        (**self).send(outbox, now);
    }

    fn receive(&mut self, inbox: &mut Inbox, now: u64) {
        (**self).receive(inbox, now);
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        (**self).deadline()
    }

    fn local(&self) -> SocketAddr {
        (**self).local()
    }

    fn datagram_max(&self, to: SocketAddr) -> usize {
        (**self).datagram_max(to)
    }

    fn counters(&self) -> NetCounters {
        (**self).counters()
    }

    fn check_address(&mut self, to: SocketAddr) {
        (**self).check_address(to);
    }

    fn hints(&self) -> Hints {
        (**self).hints()
    }

    fn tap(&self) -> Option<Arc<dyn Tap>> {
        (**self).tap()
    }
}

/// Counts since the net was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetCounters {
    /// Datagrams that the system took.
    pub(crate) sent: u64,
    /// Their payloads' bytes.
    pub(crate) sent_bytes: u64,
    /// Datagrams that came.
    pub(crate) received: u64,
    /// Their payloads' bytes.
    pub(crate) received_bytes: u64,
    /// Datagrams of the outbox that could not go, or that a fault was meant to lose.
    pub(crate) dropped: u64,
    /// System calls that sent, tried to send, received or found nothing.
    pub(crate) calls: u64,
    /// How often the system took no more datagrams for now.
    pub(crate) full: u64,
    /// Errors that the system reported and that change nothing, such as "port unreachable".
    pub(crate) hints: u64,
}

impl NetCounters {
    /// Of two nets together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            dropped: self.dropped + other.dropped,
            calls: self.calls + other.calls,
            full: self.full + other.full,
            hints: self.hints + other.hints,
        }
    }
}

/// A network in memory: what one sends to it comes back, in order.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Echo {
    queue: std::collections::VecDeque<Vec<u8>>,
    /// Datagrams that it takes until it is emptied, as a full network would.
    pub(crate) room: usize,
    never: rustix::fd::OwnedFd,
}

#[cfg(test)]
impl Echo {
    pub(crate) fn new() -> Self {
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        let never = rustix::event::eventfd(0, flags).expect("an event");
        Self { queue: Default::default(), room: usize::MAX, never }
    }

    /// Takes all that has come.
    pub(crate) fn drain(net: &mut impl Net, now: u64) -> Vec<Vec<u8>> {
        let (mut inbox, mut all) = (Inbox::new(), Vec::new());
        loop {
            net.receive(&mut inbox, now);
            if inbox.is_empty() {
                return all;
            }
            all.extend((0..inbox.len()).map(|index| inbox.get(index).1.to_vec()));
            inbox.clear();
        }
    }
}

#[cfg(test)]
impl Net for Echo {
    fn send(&mut self, outbox: &mut Outbox, _now: u64) {
        let count = outbox.len().min(self.room);
        self.queue.extend(outbox.iter().take(count).map(|(_, bytes)| bytes.to_vec()));
        self.room -= count;
        outbox.pop(count);
    }

    fn receive(&mut self, inbox: &mut Inbox, _now: u64) {
        while let Some(room) = inbox.room() {
            let Some(bytes) = self.queue.pop_front() else { return };
            room[..bytes.len()].copy_from_slice(&bytes);
            inbox.accept(self.local(), bytes.len(), bytes.len());
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.never)
    }

    fn deadline(&self) -> Option<u64> {
        None
    }

    fn local(&self) -> SocketAddr {
        ([10, 0, 0, 1], 1).into()
    }

    fn datagram_max(&self, _to: SocketAddr) -> usize {
        DATAGRAM_MAX
    }

    fn counters(&self) -> NetCounters {
        NetCounters::default()
    }
}

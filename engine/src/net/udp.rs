//! Datagrams over UDP.
//!
//! One small datagram costs one plain system call each way. A train of datagrams of equal length
//! costs one call and one pass through the system's network stack each way (segmentation offload).
mod errors;
mod sockets;

use self::sockets::Sockets;
use super::datagram::{
    DATAGRAM_MAX, IPV4_HEADERS, IPV6_HEADERS, Inbox, Net, NetCounters, Outbox, Train,
};
use super::hints::{Hint, Hints};
use super::interfaces;
use super::no_room::NoRoom;
use crate::clock;
use crate::log::tell;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use crate::sys::train::{TRAIN_MAX, send_train};
use nix::errno::Errno;
use nix::sys::socket::{self, MsgFlags, MultiHeaders, SockaddrStorage};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The number of datagrams, none of them in a train, from which on one call for all is cheaper than
/// a call for each.
const BATCH_MIN: usize = 4;
/// The socket buffer that is requested from the system, each way; the system may grant less.
const BUFFER_BYTES: usize = 8 << 20;
/// When to try again after the system took no more: 64 datagrams of 1500 bytes at 10 Gbit/s.
pub(crate) const RETRY_NANOS: u64 = 80_000;
/// Between two looks whether the host has the address.
const CHECK_AGAIN: Duration = Duration::from_millis(50);
/// Empty looks at the socket where something came last before all are asked.
const IDLE_MAX: u32 = 8;
/// Looks there that have found something before all are asked.
// spec: NET-11
const FOUND_MAX: u32 = 16;
/// A length that every path takes: the least MTU of IPv6 less its headers.
const DATAGRAM_SURE: usize = 1280 - IPV6_HEADERS;
const _: () = assert!(DATAGRAM_SURE < DATAGRAM_MAX, "what goes everywhere goes here");
const _: () = assert!(BATCH_MIN <= TRAIN_MAX, "one call sends a batch");
const _: () = assert!(IDLE_MAX.is_power_of_two(), "counted round, looks stay even");

/// A UDP port.
#[derive(Debug)]
pub(crate) struct Udp {
    sockets: Sockets,
    /// Whether trains are sent as such; the system may refuse, then they are not tried again.
    trains: bool,
    /// Whether the last look found something, so that there may be more.
    dense: bool,
    /// The socket where something came last, and looks at it: empty ones, and others.
    hot: usize,
    idle: u32,
    found: u32,
    /// Set while the system takes no more.
    retry: Option<u64>,
    no_room: NoRoom,
    counters: NetCounters,
    hints: Hints,
    /// When it was looked last whether the host has the address.
    checked: Option<Instant>,
}

impl Udp {
    /// Opens a socket at an address; port 0 has the system choose one. An IPv6 address is for IPv6
    /// peers only.
    ///
    /// # Errors
    ///
    /// The system's error: the address is not this host's, or in use.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            sockets: Sockets::bind(address)?,
            trains: true,
            dense: false,
            hot: 0,
            idle: 0,
            found: 0,
            retry: None,
            no_room: NoRoom::default(),
            counters: NetCounters::default(),
            hints: Hints::default(),
            checked: None,
        })
    }

    /// Sends the front of the outbox, one call. Ends when the system takes no more.
    pub(crate) fn send_front(&mut self, outbox: &mut Outbox) -> Result<(), Full> {
        let count_max = if self.trains { TRAIN_MAX } else { 1 };
        let Some(train) = outbox.front(count_max, DATAGRAM_MAX) else { return Ok(()) };
        debug_assert!(self.trains || train.count == 1, "trains that were refused are not formed");
        debug_assert!(train.count <= outbox.len(), "a train is of what is there");
        self.counters.calls += 1;
        if train.count == 1 {
            let alone = if self.trains { outbox.alone() } else { outbox.len() };
            if alone >= BATCH_MIN {
                return self.send_batch(outbox, alone.min(TRAIN_MAX));
            }
            self.sockets.count(train.to);
            let sent = self.again_if_refused(|sockets| send_first(sockets, outbox));
            return self.settle(outbox, 1, sent);
        }
        self.sockets.count(train.to);
        match self.again_if_refused(|sockets| send_joined(sockets, outbox, &train)) {
            Err(Errno::EINVAL | Errno::EIO | Errno::EMSGSIZE) => self.send_unjoined(outbox),
            sent => self.settle(outbox, train.count, sent),
        }
    }

    /// Sends a datagram beside those of the outbox. False where the system does not take it.
    pub(crate) fn say(&mut self, to: SocketAddr, bytes: &[u8]) -> bool {
        self.counters.calls += 1;
        let send = |sockets: &Sockets| {
            let sent = rustix::net::sendto(sockets.common(), bytes, SendFlags::empty(), &to);
            sent.map(drop).map_err(|error| Errno::from_raw(error.raw_os_error()))
        };
        let sent = self.again_if_refused(send);
        self.counters.hints += u64::from(sent.is_err());
        sent.is_ok()
    }

    /// A socket reports the error of an earlier datagram at the next call, whatever the destination
    /// of that call.
    // spec: NET-4
    fn again_if_refused<T>(
        &mut self,
        send: impl Fn(&Sockets) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match send(&self.sockets) {
            Err(error) if !is_full(error) && self.take_errors() => send(&self.sockets),
            sent => sent,
        }
    }

    /// Whether somebody had said something.
    #[cold]
    fn take_errors(&mut self) -> bool {
        let Self { sockets, hints, counters, .. } = self;
        let any = sockets.all().fold(false, |any, socket| errors::take(socket, hints) | any);
        counters.hints += u64::from(any);
        any
    }

    /// A train was refused: sends its first datagram alone, to learn whose fault it is. If that is
    /// too long, it is the datagrams'; if it goes, trains are what the system refuses.
    #[cold]
    fn send_unjoined(&mut self, outbox: &mut Outbox) -> Result<(), Full> {
        self.counters.calls += 1;
        let sent = self.again_if_refused(|sockets| send_first(sockets, outbox));
        if sent.is_ok() {
            self.trains = false;
        }
        self.settle(outbox, 1, sent)
    }

    /// Sends datagrams of several destinations with one call.
    fn send_batch(&mut self, outbox: &mut Outbox, count: usize) -> Result<(), Full> {
        match self.again_if_refused(|sockets| send_each(sockets.common(), outbox, count)) {
            Ok(sent) => {
                debug_assert!(
                    0 < sent && sent <= count,
                    "the system takes some of what it is given"
                );
                if sent < count {
                    // Why, the call has not said.
                    self.take_errors();
                }
                self.settle(outbox, sent, Ok(()))
            }
            Err(error) => self.settle(outbox, 1, Err(error)),
        }
    }

    /// Accounts for the first `count` datagrams of the outbox, of which all had the same fate.
    // spec: NET-3
    fn settle(
        &mut self,
        outbox: &mut Outbox,
        count: usize,
        fate: Result<(), Errno>,
    ) -> Result<(), Full> {
        debug_assert!(0 < count && count <= outbox.len(), "a fate is of datagrams that are there");
        match fate {
            Ok(()) => {
                self.counters.sent += count as u64;
                self.counters.sent_bytes += outbox.pop(count) as u64;
                self.no_room.over();
            }
            Err(error @ Errno::ENOBUFS) if self.no_room.is_in_vain() => {
                self.note_unsent(outbox, error);
                self.counters.dropped += count as u64;
                outbox.pop(count);
            }
            Err(error) if is_full(error) => {
                self.counters.full += 1;
                return Err(Full);
            }
            Err(Errno::EMSGSIZE) => {
                self.counters.dropped += 1;
                outbox.refuse();
            }
            Err(error) => {
                outbox.doubted = self.note_unsent(outbox, error);
                self.counters.dropped += count as u64;
                outbox.pop(count);
            }
        }
        Ok(())
    }

    /// The first datagram has not left this host: where it was to go.
    // spec: OPEN-32
    #[cold]
    fn note_unsent(&self, outbox: &Outbox, why: Errno) -> Option<SocketAddr> {
        let to = outbox.front(1, 0)?.to;
        self.hints.note(to, Hint::NotSent(rustix::io::Errno::from_raw_os_error(why as i32)));
        Some(to)
    }

    /// Goes on at the address from which datagrams to that one leave.
    #[cold]
    fn move_to_way_of(&mut self, to: SocketAddr) {
        let Some(ip) = interfaces::source_to(to) else { return };
        let old = self.sockets.local();
        let at = |port| match (ip, to) {
            (IpAddr::V6(ip), SocketAddr::V6(to)) if interfaces::is_link_local(ip.into()) => {
                SocketAddrV6::new(ip, port, 0, to.scope_id()).into()
            }
            _ => SocketAddr::new(ip, port),
        };
        let moved = self.sockets.rebind(at(old.port())).or_else(|_| self.sockets.rebind(at(0)));
        if moved.is_ok() {
            self.hot = 0;
            debug_assert!(self.sockets.is_one(), "connected sockets are of the old address");
            let new = self.sockets.local();
            tell!(WARN, "this host has lost the address {old}: links of it go on at {new}");
        }
    }

    /// Receives what a socket has, of which the first is looked at in any case.
    fn receive_from(&mut self, place: usize, inbox: &mut Inbox) {
        let dense = self.dense;
        let mut count = self.receive_some(place, inbox);
        self.dense = count > 0;
        // A lone datagram after a silence: nothing else will be there, and looking costs a call.
        if count == 1 && !dense {
            return;
        }
        while count > 0 {
            count = self.receive_some(place, inbox);
        }
        self.dense = inbox.is_full();
    }

    /// Receives what those sockets have that have something.
    fn receive_from_all(&mut self, inbox: &mut Inbox) {
        self.found = 0;
        self.counters.calls += 1;
        debug_assert!(!self.sockets.is_one(), "a lone socket is asked itself");
        for place in self.sockets.ready().places() {
            self.receive_from(*place, inbox);
            self.hot = *place;
        }
    }

    /// Receives one train, or one datagram. Returns how many came; none if nothing is there.
    fn receive_some(&mut self, place: usize, inbox: &mut Inbox) -> usize {
        let Some(room) = inbox.room() else { return 0 };
        self.counters.calls += 1;
        match self.sockets.receive(place, room) {
            Ok(Some((from, came))) => {
                let (len, segment) = (came.len, came.segment);
                let count = inbox.accept(from, len, segment);
                debug_assert!(count > 0, "a receive brings at least one");
                self.counters.received += count as u64;
                self.counters.received_bytes += len as u64;
                count
            }
            Err(rustix::io::Errno::AGAIN) => 0,
            Ok(None) => {
                self.counters.dropped += 1;
                0
            }
            Err(_) => {
                // spec: NET-4
                self.counters.hints += u64::from(!self.take_errors());
                0
            }
        }
    }
}

/// The system takes no more datagrams for now.
pub(crate) struct Full;

const fn is_full(error: Errno) -> bool {
    matches!(error, Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::ENOMEM)
}

impl Net for Udp {
    fn send(&mut self, outbox: &mut Outbox, now: u64) {
        self.retry = None;
        while !outbox.is_empty() {
            if self.send_front(outbox).is_err() {
                self.retry = Some(now + RETRY_NANOS);
                debug_assert!(!outbox.is_empty(), "what is sent again later is kept");
                return;
            }
        }
    }

    fn receive(&mut self, inbox: &mut Inbox, _now: u64) {
        if self.found >= FOUND_MAX && !self.sockets.is_one() {
            return self.receive_from_all(inbox);
        }
        let before = inbox.len();
        self.receive_from(self.hot, inbox);
        if inbox.len() > before {
            self.idle = 0;
            self.found = self.found.saturating_add(1);
            return;
        }
        self.idle = self.idle.wrapping_add(1);
        if self.idle.is_multiple_of(IDLE_MAX) && !self.sockets.is_one() {
            self.receive_from_all(inbox);
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sockets.as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        self.retry
    }

    fn local(&self) -> SocketAddr {
        self.sockets.local()
    }

    // spec: NET-2
    fn datagram_max(&self, to: SocketAddr) -> usize {
        route_mtu(self.sockets.local(), to).map_or(DATAGRAM_SURE, |mtu| {
            let headers = if to.is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS };
            (mtu as usize).saturating_sub(headers).min(DATAGRAM_MAX)
        })
    }

    fn counters(&self) -> NetCounters {
        self.counters
    }

    // spec: NET-15
    fn check_address(&mut self, to: SocketAddr) {
        let now = clock::now();
        if self.checked.is_none_or(|at| now - at >= CHECK_AGAIN) {
            self.checked = Some(now);
            if !interfaces::is_here(self.sockets.local()) {
                self.move_to_way_of(to);
            }
        }
    }

    fn hints(&self) -> Hints {
        self.hints.clone()
    }
}

/// A socket that does not block, that no child inherits and whose datagrams no router cuts.
/// Routers' answers about lengths are asked for, as they may be wrong or out of date. Only a
/// datagram that is too long for the interface is refused.
// spec: NET-2, MTU-3
pub(crate) fn open(address: SocketAddr) -> io::Result<Descriptor> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket =
        descriptor::socket(family, SocketType::DGRAM, SocketFlags::NONBLOCK, Some(ipproto::UDP))?;
    if address.is_ipv4() {
        sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::PROBE)?;
    } else {
        sockopt::set_ipv6_v6only(&socket, true)?;
        sockopt::set_ipv6_mtu_discover(&socket, sockopt::Ipv6PathMtuDiscovery::PROBE)?;
    }
    Ok(socket)
}

/// Asks for large buffers: beyond the system's limit if this process may, else up to it. Any size
/// that is granted is enough to work with.
pub(crate) fn enlarge(socket: &Descriptor) {
    if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER_BYTES).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, BUFFER_BYTES);
    }
    if sockopt::set_socket_send_buffer_size_force(socket, BUFFER_BYTES).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(socket, BUFFER_BYTES);
    }
}

/// The MTU of the way to `to`: of the interface, or less if a router on the way has said so.
pub(crate) fn route_mtu(local: SocketAddr, to: SocketAddr) -> io::Result<u32> {
    let probe = open(to)?;
    rustix::net::bind(&probe, &SocketAddr::new(local.ip(), 0))?;
    rustix::net::connect(&probe, &to)?;
    Ok(if to.is_ipv4() { sockopt::ip_mtu(&probe)? } else { sockopt::ipv6_mtu(&probe)? })
}

/// Sends the first datagram.
fn send_first(sockets: &Sockets, outbox: &Outbox) -> Result<(), Errno> {
    let Some((to, bytes)) = outbox.iter().next() else { return Ok(()) };
    let sent = match sockets.connected(to) {
        Some(socket) => rustix::net::send(socket, bytes, SendFlags::empty()),
        None => rustix::net::sendto(sockets.common(), bytes, SendFlags::empty(), &to),
    };
    sent.map(|_| ()).map_err(|error| Errno::from_raw(error.raw_os_error()))
}

fn send_joined(sockets: &Sockets, outbox: &Outbox, train: &Train) -> Result<(), Errno> {
    let (socket, to) = match sockets.connected(train.to) {
        Some(socket) => (socket, None),
        None => (sockets.common(), Some(SockaddrStorage::from(train.to))),
    };
    let datagrams = outbox.iter().take(train.count).map(|(_, bytes)| bytes);
    let sent = send_train(socket.as_fd(), to.as_ref(), train.segment as u16, datagrams);
    sent.map_err(|error| Errno::from_raw(error.raw_os_error()))
}

/// Sends the first `count` datagrams; returns how many the system took, at least one.
fn send_each(socket: &Descriptor, outbox: &Outbox, count: usize) -> Result<usize, Errno> {
    let mut headers = MultiHeaders::preallocate(count, None);
    let (to, bytes): (Vec<_>, Vec<_>) = outbox
        .iter()
        .take(count)
        .map(|(to, bytes)| (Some(SockaddrStorage::from(to)), [IoSlice::new(bytes)]))
        .unzip();
    let fd = socket.as_raw_fd();
    Ok(socket::sendmmsg(fd, &mut headers, &bytes, to, [], MsgFlags::empty())?.count())
}

#[cfg(all(test, not(loom)))]
mod tests;

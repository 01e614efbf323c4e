//! Datagrams over UDP.
//!
//! One small datagram costs one plain system call each way; trains of equal length go out, and come
//! in, with one call and one pass through the system's network stack (segmentation offload).
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
use crate::sys::train::{TRAIN_MAX, send_train};
use nix::errno::Errno;
use nix::sys::socket::{self, MsgFlags, MultiHeaders, SockaddrStorage};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// From so many datagrams on, none of them in a train, one call for all is cheaper than one each.
const BATCH_MIN: usize = 4;
/// What the system is asked to buffer, each way; it grants what it may.
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
/// What goes everywhere: the least MTU of IPv6 less its headers.
const DATAGRAM_SURE: usize = 1280 - IPV6_HEADERS;

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
    /// What the system says: the address is not this host's, or in use.
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

    /// A socket reports by the next call what somebody has said of an earlier datagram, for
    /// whomever that was.
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

/// A socket that does not block, that no child inherits and whose datagrams no router cuts. What a
/// router says of their length is to be asked for, as it may be wrong or out of date: only what is
/// too long for the interface is refused.
// spec: NET-2, MTU-3
pub(crate) fn open(address: SocketAddr) -> io::Result<OwnedFd> {
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

/// Asks for large buffers: beyond the system's limit if this process may, else up to it. What is
/// granted is enough to work with in any case.
pub(crate) fn enlarge(socket: &OwnedFd) {
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
fn send_each(socket: &OwnedFd, outbox: &Outbox, count: usize) -> Result<usize, Errno> {
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
mod tests {
    use super::*;
    use crate::net::datagram::Shared;
    use bytes::BytesMut;
    use proptest::prelude::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::sync::Arc;

    fn pair(address: &str) -> (Udp, Udp) {
        let open = || Udp::bind(address.parse().unwrap()).expect("a socket of this host");
        (open(), open())
    }

    /// Waits until so many datagrams have come.
    fn take(net: &mut Udp, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut inbox, mut taken) = (Inbox::new(), Vec::new());
        while taken.len() < count {
            net.receive(&mut inbox, 0);
            taken.extend((0..inbox.len()).map(|index| {
                let (from, bytes) = inbox.get(index);
                (from, bytes.to_vec())
            }));
            if inbox.is_empty() {
                wait(net);
            }
            inbox.clear();
        }
        taken
    }

    fn outbox(datagrams: &[(SocketAddr, Vec<u8>)]) -> Outbox {
        let mut outbox = Outbox::new();
        for (to, bytes) in datagrams {
            outbox.push(*to, |buffer| buffer.extend_from_slice(bytes));
        }
        outbox
    }

    fn wait(net: &Udp) {
        poll(&mut [PollFd::from_borrowed_fd(net.as_fd(), PollFlags::IN)], None).unwrap();
    }

    fn answers(address: &str) {
        let (mut here, mut there) = pair(address);
        here.send(&mut outbox(&[(there.local(), b"question".to_vec())]), 0);
        assert_eq!(take(&mut there, 1), [(here.local(), b"question".to_vec())]);
        there.send(&mut outbox(&[(here.local(), b"answer".to_vec())]), 0);
        assert_eq!(take(&mut here, 1), [(there.local(), b"answer".to_vec())]);
    }

    #[test]
    fn both_families_carry_datagrams_both_ways() {
        answers("127.0.0.1:0");
        answers("[::1]:0");
    }

    #[test]
    fn a_lone_datagram_takes_one_call_each_way() {
        let (mut here, mut there) = pair("127.0.0.1:0");
        here.send(&mut outbox(&[(there.local(), vec![7; 8])]), 0);
        wait(&there);
        let mut inbox = Inbox::new();
        there.receive(&mut inbox, 0);
        assert_eq!(inbox.len(), 1);
        assert_eq!((here.counters().calls, there.counters().calls), (1, 1));
    }

    // spec: NET-1, NET-4
    #[test]
    fn who_is_sent_to_all_the_time_gets_a_socket_and_nobody_can_tell() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (mut here, mut there) = pair(address);
            let mut third = Udp::bind(address.parse().unwrap()).unwrap();
            for round in 0..200_u8 {
                here.send(&mut outbox(&[(there.local(), vec![round])]), 0);
                assert_eq!(take(&mut there, 1), [(here.local(), vec![round])]);
                there.send(&mut outbox(&[(here.local(), vec![1, round])]), 0);
                assert_eq!(take(&mut here, 1), [(there.local(), vec![1, round])]);
                third.send(&mut outbox(&[(here.local(), vec![2, round])]), 0);
                assert_eq!(take(&mut here, 1), [(third.local(), vec![2, round])]);
            }
            assert!(here.sockets.connected(there.local()).is_some());
            assert!(here.sockets.connected(third.local()).is_none(), "it was only heard");
            let gone = there.local();
            drop(there);
            for _ in 0..3 {
                here.send(&mut outbox(&[(gone, vec![3]), (third.local(), vec![4])]), 0);
                assert_eq!(take(&mut third, 1), [(here.local(), vec![4])]);
            }
            assert_eq!(here.counters().dropped, 0);
            let stranger = Udp::bind(here.local());
            assert!(stranger.is_err(), "the port is not shared with others");
        }
    }

    // spec: NET-11
    #[test]
    fn however_much_comes_from_one_others_are_heard() {
        let (mut here, mut eager) = pair("127.0.0.1:0");
        let mut other = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for _ in 0..100 {
            here.send(&mut outbox(&[(eager.local(), vec![1])]), 0);
        }
        let mut inbox = Inbox::new();
        let mut hears = |net: &mut Udp, whom: SocketAddr| {
            eager.send(&mut outbox(&[(net.local(), vec![2])]), 0);
            inbox.clear();
            net.receive(&mut inbox, 0);
            (0..inbox.len()).any(|index| inbox.get(index).0 == whom)
        };
        while here.hot == 0 {
            hears(&mut here, other.local());
        }
        other.send(&mut outbox(&[(here.local(), vec![3])]), 0);
        assert!((0..=FOUND_MAX).any(|_| hears(&mut here, other.local())), "within 17 looks");
    }

    #[test]
    fn few_destinations_have_sockets_of_their_own() {
        let (mut here, _) = pair("127.0.0.1:0");
        let others: Vec<_> = (0..20).map(|_| pair("127.0.0.1:0").0).collect();
        for other in &others {
            for _ in 0..100 {
                here.send(&mut outbox(&[(other.local(), vec![5])]), 0);
            }
        }
        let connected =
            others.iter().filter(|other| here.sockets.connected(other.local()).is_some());
        assert_eq!(connected.count(), 16);
    }

    #[test]
    fn a_train_takes_one_call_and_keeps_its_datagrams_apart() {
        let (mut here, mut there) = pair("127.0.0.1:0");
        let mut sent: Vec<_> = (0..40).map(|n| (there.local(), vec![n; 1024])).collect();
        sent.push((there.local(), vec![40; 10]));
        assert_eq!(outbox(&sent).front(64, DATAGRAM_MAX).map(|train| train.count), Some(41));
        here.send(&mut outbox(&sent), 0);
        assert_eq!(here.counters().calls, 1);
        let got = take(&mut there, sent.len());
        assert!(got.iter().all(|(from, _)| *from == here.local()));
        assert!(got.iter().map(|(_, bytes)| bytes).eq(sent.iter().map(|(_, bytes)| bytes)));
        assert_eq!(there.counters().received_bytes, here.counters().sent_bytes);
    }

    #[test]
    fn a_train_is_the_same_wherever_its_datagrams_lie() {
        let (mut here, mut there) = pair("127.0.0.1:0");
        let mut memory = BytesMut::new();
        (0..8).for_each(|number| memory.extend_from_slice(&[number; 640]));
        let pieces: Vec<Shared> = (0..8).map(|_| Arc::new(memory.split_to(640))).collect();
        let mut outbox = Outbox::new();
        // One behind the other, apart, the same again, and the outbox's own.
        for number in [0, 1, 2, 5, 6, 4, 3, 3, 8, 8, 7, 0] {
            match pieces.get(number) {
                Some(piece) => outbox.push_shared(there.local(), piece.clone(), 640),
                None => outbox.push(there.local(), |bytes| bytes.extend_from_slice(&[8; 640])),
            }
        }
        outbox.push_shared(there.local(), pieces[1].clone(), 9);
        here.send(&mut outbox, 0);
        assert_eq!((here.counters().calls, here.trains), (1, true));
        let got = take(&mut there, 13);
        let lens: Vec<_> = got.iter().map(|(_, bytes)| bytes.len()).collect();
        assert_eq!(lens, [vec![640; 12], vec![9]].concat());
        assert!(got.iter().all(|(_, bytes)| bytes.iter().all(|byte| *byte == bytes[0])));
        let numbers: Vec<_> = got.iter().map(|(_, bytes)| bytes[0]).collect();
        assert_eq!(numbers, [0, 1, 2, 5, 6, 4, 3, 3, 8, 8, 7, 0, 1]);
    }

    // spec: NET-2, NET-3
    #[test]
    fn what_is_too_long_is_dropped_and_counted_and_stops_nothing() {
        let (mut here, mut there) = pair("127.0.0.1:0");
        let longest = here.datagram_max(there.local());
        assert_eq!(longest, DATAGRAM_MAX, "the loopback interface carries whole datagrams");
        let lengths = [longest + 1, longest, longest + 1, longest + 1, 8];
        here.send(&mut outbox(&lengths.map(|len| (there.local(), vec![1; len]))), 0);
        let got = take(&mut there, 2);
        assert_eq!([got[0].1.len(), got[1].1.len()], [longest, 8]);
        assert_eq!((here.counters().sent, here.counters().dropped), (2, 3));
        assert_eq!(here.deadline(), None);
    }

    // spec: NET-3, NET-4
    #[test]
    fn a_peer_that_is_not_there_changes_nothing() {
        let (mut here, mut there) = pair("127.0.0.1:0");
        let gone = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap().local();
        for _ in 0..3 {
            here.send(&mut outbox(&[(gone, vec![1]), (there.local(), vec![2])]), 0);
        }
        assert_eq!(take(&mut there, 3).len(), 3);
        assert_eq!((here.counters().sent, here.counters().dropped), (6, 0));
    }

    // spec: NET-3
    #[test]
    fn what_the_system_does_not_take_now_stays_and_what_it_never_takes_goes() {
        let (mut here, there) = pair("127.0.0.1:0");
        let mut outbox = outbox(&vec![(there.local(), vec![3; 100]); 5]);
        assert!(here.settle(&mut outbox, 2, Err(Errno::EAGAIN)).is_err());
        assert_eq!((outbox.len(), here.counters().full, here.counters().dropped), (5, 1, 0));
        assert!(here.settle(&mut outbox, 2, Err(Errno::EHOSTUNREACH)).is_ok());
        assert_eq!((outbox.len(), here.counters().full, here.counters().dropped), (3, 1, 2));
        here.send(&mut outbox, 1000);
        assert_eq!((outbox.len(), here.deadline()), (0, None));
    }

    #[test]
    fn a_system_that_refuses_trains_gets_datagrams_instead() {
        let (mut here, mut there) = pair("127.0.0.1:0");
        let sent: Vec<_> = (0..200).map(|n| (there.local(), vec![n; 100])).collect();
        let mut outbox = outbox(&sent);
        assert!(here.send_unjoined(&mut outbox).is_ok());
        assert_eq!((here.trains, outbox.len()), (false, 199));
        here.send(&mut outbox, 0);
        assert_eq!((here.counters().sent, here.counters().dropped), (200, 0));
        let got = take(&mut there, 200).into_iter().map(|(_, bytes)| bytes);
        assert!(got.eq(sent.into_iter().map(|(_, bytes)| bytes)));
    }

    #[test]
    fn datagrams_that_are_too_long_do_not_end_trains() {
        let (mut here, there) = pair("127.0.0.1:0");
        let mut outbox = outbox(&[(there.local(), vec![0; 65_600]), (there.local(), vec![0; 8])]);
        assert!(here.send_unjoined(&mut outbox).is_ok());
        assert_eq!((here.trains, outbox.len(), here.counters().dropped), (true, 1, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        // spec: NET-1
        // Trains and batches are a matter of speed alone.
        #[test]
        fn whatever_is_sent_comes_whole_and_in_order(
            datagrams in prop::collection::vec((0..2usize, 0..40usize, 1..6usize), 1..60),
            trains: bool,
        ) {
            let (mut here, mut there) = pair("127.0.0.1:0");
            let mut other = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            here.trains = trains;
            let ends = [there.local(), other.local()];
            let sent: Vec<_> = datagrams
                .iter()
                .flat_map(|&(end, len, count)| vec![(ends[end], len); count])
                .enumerate()
                .map(|(index, (to, len))| (to, vec![index as u8; len]))
                .collect();
            here.send(&mut outbox(&sent), 0);
            for net in [&mut there, &mut other] {
                let meant = sent.iter().filter(|(to, _)| *to == net.local());
                let meant: Vec<_> = meant.map(|(_, bytes)| bytes.clone()).collect();
                let got = take(net, meant.len());
                prop_assert!(got.into_iter().map(|(_, bytes)| bytes).eq(meant));
            }
        }
    }
}

//! Datagrams straight over Ethernet, beside the system's IP and UDP: a small one takes half the
//! time, and to find that none has come takes no call. Trains go by UDP where that gets through.
//!
//! The price: it needs the right to open packet sockets (CAP_NET_RAW), and it reaches hosts of the
//! same Ethernet only. Addresses stay those of IP and UDP, so that a link does not notice; see
//! spec/92 for the format.
mod ring;
mod sieve;
mod trains;

use crate::wire::net::{Inbox, Net, NetCounters, Outbox};
use crate::wire::udp;
use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::{self, LinkAddr, MsgFlags, MultiHeaders};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{AddressFamily, Protocol, RawProtocol, RecvFlags};
use rustix::net::{SocketFlags, SocketType};
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ring::{Found, Ring, SLOTS};
use trains::{Front, Trains};

/// Of Ethernet: for local experiments, which no other protocol may be taken for.
const ETHERTYPE: u16 = 0x88b5;
const MAC_BYTES: usize = 6;
/// Bytes of Ethernet's header.
const ETHERNET_BYTES: usize = 2 * MAC_BYTES + 2;
/// Bytes of the header behind it.
const HEADER_BYTES: usize = 2 * (16 + 2) + 2;
const HEADERS: usize = ETHERNET_BYTES + HEADER_BYTES;
/// Longest datagram: a frame has room in an inbox.
const LONGEST: usize = 65_535 - HEADERS;
/// What goes everywhere, if the interface's MTU cannot be found out.
const DATAGRAM_SURE: usize = 1280 - HEADER_BYTES;
/// Hosts whose Ethernet address is remembered; the others are sent to all.
const NEIGHBOURS_MAX: usize = 4096;
/// From so many datagrams on, one call for all is cheaper than one each; and for how many at most.
const BATCH_MIN: usize = 4;
const BATCH_MAX: usize = 64;
/// When to try again after the system took no more.
const RETRY_NANOS: u64 = 80_000;
/// Looks that find nothing before the system is asked what it has to say.
const VAIN_LOOKS: u32 = 256;

/// An Ethernet address.
type Mac = [u8; MAC_BYTES];

const EVERYBODY: Mac = [0xff; MAC_BYTES];

/// A packet socket on one interface.
#[derive(Debug)]
pub(crate) struct Packet {
    socket: OwnedFd,
    ring: Ring,
    /// Its UDP socket claims the port, too: as long as it is there, that is nobody else's.
    trains: Trains,
    /// Can be read when either socket can.
    epoll: OwnedFd,
    local: SocketAddr,
    mac: Mac,
    /// Where hosts were last heard from.
    neighbours: HashMap<IpAddr, Mac>,
    /// The frame that is being sent alone.
    frame: Vec<u8>,
    /// Trains have left no room for frames when both were looked at last.
    owes_frames: bool,
    /// Looks that found nothing, since the system was last asked what it has to say.
    vain: u32,
    /// Set while the system takes no more.
    retry: Option<u64>,
    counters: NetCounters,
}

impl Packet {
    /// Opens a packet socket on the interface that has this address; port 0 has the system choose
    /// one. Ports are shared with UDP.
    ///
    /// # Errors
    ///
    /// No interface has the address, it is not one of Ethernet, the port is in use, or this process
    /// may not open packet sockets.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let link = link_of(address.ip())?;
        let mac = link.addr().ok_or(io::ErrorKind::Unsupported)?;
        let trains = Trains::bind(address)?;
        let local = trains.local();
        let socket = open()?;
        udp::enlarge(&socket);
        sieve::hear_only(&socket, local)?;
        let ring = Ring::of(&socket)?;
        socket::bind(socket.as_raw_fd(), &link)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for one in [socket.as_fd(), trains.as_fd()] {
            epoll::add(&epoll, one, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self {
            socket,
            ring,
            trains,
            epoll,
            local,
            mac,
            neighbours: HashMap::new(),
            frame: Vec::new(),
            owes_frames: false,
            vain: 0,
            retry: None,
            counters: NetCounters::default(),
        })
    }

    /// What stands in a frame before its datagram.
    // spec: NET-6
    fn head(&self, to: SocketAddr, len: usize) -> [u8; HEADERS] {
        let mac = self.neighbours.get(&to.ip()).unwrap_or(&EVERYBODY);
        let mut head = [0; HEADERS];
        let mut rest = &mut head[..];
        let mut put = |bytes: &[u8]| {
            let (place, behind) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            place.copy_from_slice(bytes);
            rest = behind;
        };
        put(mac);
        put(&self.mac);
        put(&ETHERTYPE.to_be_bytes());
        for end in [to, self.local] {
            put(&sixth(end.ip()).octets());
            put(&end.port().to_le_bytes());
        }
        put(&(len as u16).to_le_bytes());
        head
    }

    /// Sends the front of the outbox, one call; says whether the system takes more.
    // spec: NET-3
    fn send_front(&mut self, outbox: &mut Outbox, now: u64) -> bool {
        match self.trains.send_front(outbox, now) {
            Front::Frames(count) => self.send_frames(outbox, count),
            Front::Gone => true,
            Front::Waits => false,
        }
    }

    /// Sends some of the first `count` datagrams as frames.
    fn send_frames(&mut self, outbox: &mut Outbox, count: usize) -> bool {
        self.counters.calls += 1;
        let count = count.min(BATCH_MAX);
        let fitting = outbox.iter().take(count).take_while(|(_, bytes)| bytes.len() <= LONGEST);
        let fitting = fitting.count();
        let sent = match fitting {
            0 => Err(Errno::EMSGSIZE),
            1..BATCH_MIN => self.send_one(outbox),
            _ => self.send_batch(outbox, fitting),
        };
        match sent {
            Ok(count) => {
                self.counters.sent += count as u64;
                self.counters.sent_bytes += outbox.pop(count) as u64;
            }
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::ENOMEM) => {
                self.counters.full += 1;
                return false;
            }
            Err(_) => {
                self.counters.dropped += 1;
                outbox.pop(1);
            }
        }
        true
    }

    /// Sends the first datagram.
    fn send_one(&mut self, outbox: &Outbox) -> Result<usize, Errno> {
        let Some((to, bytes)) = outbox.iter().next() else { return Ok(0) };
        let head = self.head(to, bytes.len());
        self.frame.clear();
        self.frame.extend_from_slice(&head);
        self.frame.extend_from_slice(bytes);
        socket::send(self.socket.as_raw_fd(), &self.frame, MsgFlags::empty())?;
        Ok(1)
    }

    /// Sends the first `count` datagrams; returns how many the system took, at least one.
    fn send_batch(&self, outbox: &Outbox, count: usize) -> Result<usize, Errno> {
        let mut heads = [[0; HEADERS]; BATCH_MAX];
        let mut frames = [[IoSlice::new(&[]); 2]; BATCH_MAX];
        for (head, (to, bytes)) in heads.iter_mut().zip(outbox.iter()).take(count) {
            *head = self.head(to, bytes.len());
        }
        for ((frame, head), (_, bytes)) in frames.iter_mut().zip(&heads).zip(outbox.iter()) {
            *frame = [IoSlice::new(head), IoSlice::new(bytes)];
        }
        let mut headers = MultiHeaders::preallocate(count, None);
        // The socket is bound to its interface: a frame needs no address.
        let to = [None::<LinkAddr>; BATCH_MAX];
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
        Ok(socket::sendmmsg(socket, &mut headers, &frames, to, [], flags)?.count())
    }

    /// Tells a port that its UDP is heard here.
    // spec: NET-7
    fn say_hears(&mut self, to: SocketAddr) {
        self.counters.calls += 1;
        // Where it does not go, it is said again.
        let sent = socket::send(self.socket.as_raw_fd(), &self.head(to, 0), MsgFlags::empty());
        self.counters.hints += u64::from(sent.is_err());
    }

    /// Receives one frame; says whether there was one, for this port or not.
    fn receive_one(&mut self, inbox: &mut Inbox, now: u64) -> bool {
        let Some(room) = inbox.room() else { return false };
        let Some(found) = self.ring.take(room) else {
            self.look_in_vain();
            return false;
        };
        let len = match found {
            Found::Frame(len) => len,
            Found::Long => {
                self.counters.calls += 1;
                let received = rustix::net::recv(&self.socket, &mut *room, RecvFlags::empty());
                received.map_or(0, |(len, _)| len)
            }
        };
        // Others may have come before the sieve was there.
        let Some(letter) = Letter::read(&room[..len]).filter(|letter| letter.to == self.local)
        else {
            return true;
        };
        self.counters.received += 1;
        self.counters.received_bytes += letter.datagram.len() as u64;
        self.hear(letter.from.ip(), letter.mac);
        if letter.datagram.is_empty() {
            self.trains.on_hears(letter.from, now);
            return true;
        }
        inbox.accept_at(letter.from, letter.datagram);
        true
    }

    fn receive_trains(&mut self, inbox: &mut Inbox, now: u64) {
        let Self { trains, neighbours, .. } = self;
        let is_known = |port: SocketAddr| neighbours.contains_key(&port.ip());
        if let Some(heard) = trains.receive(inbox, now, is_known) {
            self.say_hears(heard);
        }
    }

    fn receive_frames(&mut self, inbox: &mut Inbox, now: u64) {
        // No more than wait at a time: frames that are of no use could go on for ever.
        for _ in 0..SLOTS {
            if !self.receive_one(inbox, now) {
                return;
            }
        }
    }

    /// What the system has to say beside frames (a cable was pulled) would wake a sleeper again and
    /// again until somebody hears it, and nobody calls the system to receive: so it is asked now
    /// and then.
    // spec: NET-4
    fn look_in_vain(&mut self) {
        self.vain = (self.vain + 1) % VAIN_LOOKS;
        if self.vain == 0 {
            self.counters.calls += 1;
            let said = rustix::net::sockopt::socket_error(&self.socket);
            self.counters.hints += u64::from(matches!(said, Ok(Err(_))));
        }
    }

    /// Remembers where a host was heard from.
    fn hear(&mut self, host: IpAddr, mac: Mac) {
        let is_full = self.neighbours.len() >= NEIGHBOURS_MAX;
        match self.neighbours.get_mut(&host) {
            Some(known) => *known = mac,
            None if is_full => {}
            None => drop(self.neighbours.insert(host, mac)),
        }
    }
}

impl Net for Packet {
    fn send(&mut self, outbox: &mut Outbox, now: u64) {
        self.retry = None;
        while !outbox.is_empty() {
            if !self.send_front(outbox, now) {
                self.retry = Some(now + RETRY_NANOS);
                return;
            }
        }
    }

    // spec: NET-11
    fn receive(&mut self, inbox: &mut Inbox, now: u64) {
        if std::mem::take(&mut self.owes_frames) {
            self.receive_frames(inbox, now);
            self.receive_trains(inbox, now);
        } else {
            self.receive_trains(inbox, now);
            self.owes_frames = inbox.is_full();
            self.receive_frames(inbox, now);
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        self.retry
    }

    fn local(&self) -> SocketAddr {
        self.local
    }

    fn datagram_max(&self, to: SocketAddr) -> usize {
        let frame = udp::route_mtu(self.local, to)
            .map_or(DATAGRAM_SURE, |mtu| (mtu as usize).saturating_sub(HEADER_BYTES).min(LONGEST));
        frame.min(self.trains.datagram_max(to))
    }

    fn counters(&self) -> NetCounters {
        self.counters.and(self.trains.counters())
    }
}

/// What a frame says of its datagram.
struct Letter {
    mac: Mac,
    to: SocketAddr,
    from: SocketAddr,
    /// Where the datagram lies in the frame.
    datagram: Range<usize>,
}

impl Letter {
    /// Reads a frame, which may have padding behind it. Total.
    // spec: NET-6
    fn read(frame: &[u8]) -> Option<Self> {
        let (ethernet, rest) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
        let mac = *ethernet[MAC_BYTES..].first_chunk()?;
        let (to, rest) = end(rest)?;
        let (from, rest) = end(rest)?;
        let (len, rest) = rest.split_first_chunk()?;
        let len = usize::from(u16::from_le_bytes(*len));
        (len <= rest.len()).then_some(Self { mac, to, from, datagram: HEADERS..HEADERS + len })
    }
}

/// The address and port at the front, and what lies behind them.
fn end(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (ip, rest) = bytes.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk()?;
    let ip = Ipv6Addr::from(*ip).to_canonical();
    Some((SocketAddr::new(ip, u16::from_le_bytes(*port)), rest))
}

fn sixth(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// A packet socket that does not block and hears its own kind of frames only.
fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let kind = RawProtocol::new(u32::from(ETHERTYPE.to_be())).map(Protocol::from_raw);
    Ok(rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, kind)?)
}

/// The Ethernet side of the interface that has an address.
fn link_of(ip: IpAddr) -> io::Result<LinkAddr> {
    let all: Vec<_> = getifaddrs()?.collect();
    let has = |entry: &&InterfaceAddress| entry.address.as_ref().and_then(ip_of) == Some(ip);
    let owner = all.iter().find(has).ok_or(io::ErrorKind::AddrNotAvailable)?;
    let mut links = all.iter().filter(|entry| entry.interface_name == owner.interface_name);
    let link = links.find_map(|entry| entry.address.as_ref()?.as_link_addr().copied());
    Ok(link.ok_or(io::ErrorKind::Unsupported)?)
}

fn ip_of(address: &socket::SockaddrStorage) -> Option<IpAddr> {
    let fourth = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
    fourth.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
}

#[cfg(all(test, not(loom)))]
mod tests;

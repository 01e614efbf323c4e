//! Frames of Ethernet, each with one datagram or a question: a packet socket on one interface.
use super::ring::{Found, Ring};
use super::{ETHERNET_BYTES, MAC_BYTES, Mac, filter, sixth};
use crate::net::datagram::{Inbox, NetCounters, Outbox};
use crate::net::no_room::NoRoom;
use crate::net::udp;
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::{self, LinkAddr, MsgFlags, MultiHeaders, SockaddrStorage};
use rustix::net::{AddressFamily, Protocol, RawProtocol, RecvFlags, SocketFlags, SocketType};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Of Ethernet: for local experiments, which no other protocol may be taken for.
const ETHERTYPE: u16 = 0x88b5;
/// Bytes of the header behind it.
pub(super) const HEADER_BYTES: usize = 2 * (16 + 2) + 2;
pub(super) const HEADERS: usize = ETHERNET_BYTES + HEADER_BYTES;
/// Longest datagram: a frame has room in an inbox.
pub(super) const LONGEST: usize = 65_535 - HEADERS;
/// Bytes of a question: fewer than any datagram of a link has.
pub(super) const QUESTION_BYTES: usize = 8;
/// The number of datagrams from which on one call for all is cheaper than a call for each, and the
/// most that one call sends.
const BATCH_MIN: usize = 4;
pub(super) const BATCH_MAX: usize = 64;
/// Looks that find nothing before the system is asked what it has to say.
pub(super) const VAIN_LOOKS: u32 = 256;
const _: () = assert!(LONGEST + HEADERS < 1 << 16, "a frame has room in an inbox");
const _: () = assert!(QUESTION_BYTES < ayre_proto::link::frame::HEADER_BYTES, "no datagram is one");
const _: () = assert!(BATCH_MIN <= BATCH_MAX, "a batch goes with one call");
/// Time between two looks whether the interface is what it was.
const LOOK_NANOS: u64 = 100_000_000;
/// The destination of a question before the MAC is known.
pub(super) const EVERYBODY: Mac = [0xff; MAC_BYTES];

/// A packet socket.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) socket: Descriptor,
    pub(super) ring: Ring,
    local: SocketAddr,
    /// The number of its interface, and when it was looked whether that is still its.
    index: usize,
    looked_at: u64,
    mac: Mac,
    /// Which bits of an address those of the same Ethernet have in common.
    mask: u128,
    /// The frame that is being sent alone.
    frame: Vec<u8>,
    /// Looks that found nothing, since the system was last asked what it has to say.
    vain: u32,
    no_room: NoRoom,
    counters: NetCounters,
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A datagram, which the inbox has accepted.
    Datagram,
    /// A question of this port, with its number.
    Question(SocketAddr, u64),
    /// A frame that is of no use.
    Foreign,
    /// Nothing, or the inbox takes no more.
    Nothing,
}

/// The fate of a datagram that is to go as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has left, or was dropped.
    Gone,
    /// The system takes no more.
    Full,
    /// It is too long for the interface, whose MTU may have become less.
    TooLong,
}

impl Frames {
    /// Opens a packet socket for a port's address, on the interface that has it.
    ///
    /// # Errors
    /// The interface is not one of Ethernet, or this process may not open packet sockets.
    pub(super) fn open(local: SocketAddr) -> io::Result<Self> {
        let Interface { link, mac, mask } = Interface::of(local.ip())?;
        let socket = open()?;
        udp::enlarge(&socket);
        filter::hear_only(&socket, local)?;
        let ring = Ring::of(&socket)?;
        socket::bind(socket.as_raw_fd(), &link)?;
        Ok(Self {
            socket,
            ring,
            local,
            index: link.ifindex(),
            looked_at: 0,
            mac,
            mask,
            frame: Vec::new(),
            vain: 0,
            no_room: NoRoom::default(),
            counters: NetCounters::default(),
        })
    }

    pub(super) fn counters(&self) -> NetCounters {
        self.counters
    }

    /// The MAC that is answered where a question has come.
    pub(super) fn mac(&self) -> Mac {
        self.mac
    }

    /// Whether its address is still one of its interface, and which MAC that has by now: looked for
    /// every 100 ms at most. Where nobody here has the address, there is nothing better.
    // spec: NET-16
    #[cold]
    pub(super) fn is_at_home(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.looked_at) < LOOK_NANOS {
            return true;
        }
        self.looked_at = now;
        let Ok(Interface { link, mac, .. }) = Interface::of(self.local.ip()) else { return true };
        self.mac = mac;
        link.ifindex() == self.index
    }

    /// Bytes of the longest datagram that goes to a port in a frame, as far as this host knows.
    // spec: NET-2
    pub(super) fn longest(&self, to: SocketAddr) -> usize {
        let mtu = udp::route_mtu(self.local, to).unwrap_or(0);
        (mtu as usize).saturating_sub(HEADER_BYTES).min(LONGEST)
    }

    /// Whether a host is one of the same Ethernet, by its address.
    pub(super) fn is_near(&self, host: IpAddr) -> bool {
        host.is_ipv4() == self.local.is_ipv4()
            && (bits(host) ^ bits(self.local.ip())) & self.mask == 0
    }

    /// The headers of a frame before its datagram.
    // spec: NET-6
    pub(super) fn head(&self, (to, mac): (SocketAddr, Mac), len: usize) -> [u8; HEADERS] {
        let mut head = [0; HEADERS];
        let mut rest = &mut head[..];
        let mut put = |bytes: &[u8]| {
            let (place, behind) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            place.copy_from_slice(bytes);
            rest = behind;
        };
        put(&mac);
        put(&self.mac);
        put(&ETHERTYPE.to_be_bytes());
        for end in [to, self.local] {
            put(&sixth(end.ip()).octets());
            put(&end.port().to_le_bytes());
        }
        put(&(len as u16).to_le_bytes());
        debug_assert!(rest.is_empty(), "a head has these parts");
        head
    }

    /// Sends some of the first datagrams, to these MACs; says what has become of the first.
    // spec: NET-3
    pub(super) fn send(&mut self, outbox: &mut Outbox, macs: &[Mac]) -> Fate {
        self.counters.calls += 1;
        let sent = match macs {
            [] => return Fate::Gone,
            [mac, ..] if macs.len() < BATCH_MIN => self.send_one(outbox, *mac),
            macs => self.send_batch(outbox, macs),
        };
        match sent {
            Ok(count) => {
                debug_assert!(count <= macs.len(), "as many as there are MACs");
                self.counters.sent += count as u64;
                self.counters.sent_bytes += outbox.pop(count) as u64;
                self.no_room.over();
            }
            Err(Errno::ENOBUFS) if self.no_room.is_in_vain() => {
                self.counters.dropped += 1;
                outbox.pop(1);
            }
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::ENOMEM) => {
                self.counters.full += 1;
                return Fate::Full;
            }
            Err(Errno::EMSGSIZE) => return Fate::TooLong,
            Err(_) => {
                self.counters.dropped += 1;
                outbox.pop(1);
            }
        }
        Fate::Gone
    }

    /// Sends the first datagram.
    fn send_one(&mut self, outbox: &Outbox, mac: Mac) -> Result<usize, Errno> {
        let Some((to, bytes)) = outbox.iter().next() else { return Ok(0) };
        let head = self.head((to, mac), bytes.len());
        self.frame.clear();
        self.frame.extend_from_slice(&head);
        self.frame.extend_from_slice(bytes);
        socket::send(self.socket.as_raw_fd(), &self.frame, MsgFlags::empty())?;
        Ok(1)
    }

    /// Sends a datagram to each of the MACs; returns how many the system took, at least one.
    fn send_batch(&self, outbox: &Outbox, macs: &[Mac]) -> Result<usize, Errno> {
        let count = macs.len().min(BATCH_MAX);
        let mut heads = [[0; HEADERS]; BATCH_MAX];
        let mut frames = [[IoSlice::new(&[]); 2]; BATCH_MAX];
        for ((head, mac), (to, bytes)) in heads.iter_mut().zip(macs).zip(outbox.iter()) {
            *head = self.head((to, *mac), bytes.len());
        }
        for ((frame, head), (_, bytes)) in frames.iter_mut().zip(&heads).zip(outbox.iter()) {
            *frame = [IoSlice::new(head), IoSlice::new(bytes)];
        }
        let mut headers = MultiHeaders::preallocate(count, None);
        // The socket is bound to its interface: a frame needs no address.
        let to = [None::<LinkAddr>; BATCH_MAX];
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
        let frames = &frames[..count];
        Ok(socket::sendmmsg(socket, &mut headers, frames, &to[..count], [], flags)?.count())
    }

    /// Asks a port whether it hears frames.
    // spec: NET-7
    pub(super) fn ask(&mut self, to: SocketAddr, (number, mac): (u64, Option<Mac>)) {
        self.counters.calls += 1;
        let head = self.head((to, mac.unwrap_or(EVERYBODY)), QUESTION_BYTES);
        let question = [&head[..], &number.to_le_bytes()].concat();
        // Where it does not go, it is asked again.
        let sent = socket::send(self.socket.as_raw_fd(), &question, MsgFlags::empty());
        self.counters.hints += u64::from(sent.is_err());
    }

    /// Receives one frame, if it is from where frames of its port are taken.
    // spec: NET-14
    pub(super) fn receive_one(
        &mut self,
        inbox: &mut Inbox,
        takes: impl FnOnce(SocketAddr, Mac) -> bool,
    ) -> Look {
        let Some(room) = inbox.room() else { return Look::Nothing };
        let Some(found) = self.ring.take(room) else {
            self.look_in_vain();
            return Look::Nothing;
        };
        let len = match found {
            Found::Frame(len) => len,
            Found::Long => {
                self.counters.calls += 1;
                let received = rustix::net::recv(&self.socket, &mut *room, RecvFlags::empty());
                received.map_or(0, |(len, _)| len)
            }
        };
        // Others may have come before the filter was there.
        let is_ours = |letter: &Letter| self.as_here(letter.to) == self.local;
        let Some(letter) = Letter::read(&room[..len]).filter(is_ours) else {
            return Look::Foreign;
        };
        let from = self.as_here(letter.from);
        if let Ok(number) = room[letter.datagram.clone()].try_into() {
            return Look::Question(from, u64::from_le_bytes(number));
        }
        if !takes(letter.from, letter.mac) {
            return Look::Foreign;
        }
        self.counters.received += 1;
        self.counters.received_bytes += letter.datagram.len() as u64;
        inbox.accept_at(from, letter.datagram);
        Look::Datagram
    }

    /// A link-local address that a frame names is one by this interface.
    fn as_here(&self, mut address: SocketAddr) -> SocketAddr {
        if let (SocketAddr::V6(address), SocketAddr::V6(local)) = (&mut address, self.local)
            && address.ip().is_unicast_link_local()
        {
            address.set_scope_id(local.scope_id());
        }
        address
    }

    /// Other events of the socket (a cable was pulled) would wake a sleeper again and again until
    /// somebody takes them, and no call receives from it. So the socket is asked for them now and
    /// then.
    // spec: NET-4
    fn look_in_vain(&mut self) {
        self.vain = (self.vain + 1) % VAIN_LOOKS;
        if self.vain == 0 {
            self.counters.calls += 1;
            let said = rustix::net::sockopt::socket_error(&self.socket);
            self.counters.hints += u64::from(matches!(said, Ok(Err(_))));
        }
    }
}

/// The source and the bytes of a frame's datagram.
pub(super) struct Letter {
    pub(super) to: SocketAddr,
    pub(super) from: SocketAddr,
    pub(super) mac: Mac,
    /// Where the datagram lies in the frame.
    pub(super) datagram: Range<usize>,
}

impl Letter {
    /// Reads a frame, which may have padding behind it. Total.
    // spec: NET-6
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let (ethernet, rest) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
        let mac = *ethernet[MAC_BYTES..].first_chunk()?;
        let (to, rest) = end(rest)?;
        let (from, rest) = end(rest)?;
        let (len, rest) = rest.split_first_chunk()?;
        let len = usize::from(u16::from_le_bytes(*len));
        (len <= rest.len()).then_some(Self { to, from, mac, datagram: HEADERS..HEADERS + len })
    }
}

/// The address and port at the front, and what lies behind them.
fn end(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (ip, rest) = bytes.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk()?;
    let ip = Ipv6Addr::from(*ip).to_canonical();
    Some((SocketAddr::new(ip, u16::from_le_bytes(*port)), rest))
}

fn bits(address: IpAddr) -> u128 {
    sixth(address).to_bits()
}

/// Packet sockets for frames of ours that this host has; none, where that cannot be found out.
pub(super) fn sockets_here() -> usize {
    let table = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default();
    let kind = format!("{ETHERTYPE:04x}");
    table.lines().filter(|line| line.split_whitespace().nth(3) == Some(&kind)).count()
}

/// A packet socket that does not block and hears its own kind of frames only.
fn open() -> io::Result<Descriptor> {
    let kind = RawProtocol::new(u32::from(ETHERTYPE.to_be())).map(Protocol::from_raw);
    Ok(descriptor::socket(AddressFamily::PACKET, SocketType::RAW, SocketFlags::NONBLOCK, kind)?)
}

/// The Ethernet side of an interface.
struct Interface {
    link: LinkAddr,
    mac: Mac,
    mask: u128,
}

impl Interface {
    /// That has this address.
    fn of(ip: IpAddr) -> io::Result<Self> {
        let all: Vec<_> = getifaddrs()?.collect();
        let has = |entry: &&InterfaceAddress| entry.address.as_ref().and_then(ip_of) == Some(ip);
        let owner = all.iter().find(has).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut links = all.iter().filter(|entry| entry.interface_name == owner.interface_name);
        let link = links.find_map(|entry| entry.address.as_ref()?.as_link_addr().copied());
        let link = link.ok_or(io::ErrorKind::Unsupported)?;
        let mac = link.addr().ok_or(io::ErrorKind::Unsupported)?;
        // All bits, where there is no mask: nobody else is near.
        let mask = owner.netmask.as_ref().and_then(ip_of).map_or(u128::MAX, bits);
        Ok(Self { link, mac, mask })
    }
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let fourth = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
    fourth.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
}

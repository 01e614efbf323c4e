//! UDP, and beside it Ethernet frames that bypass the system's IP and UDP. A short datagram takes
//! half the time, and a poll that finds nothing needs no system call.
//!
//! ```text
//!   trains, long ones, and all to ports that are not known to hear frames --> UDP
//!   one or two short ones ---- to ports that are ---------------------------> frames
//! ```
//!
//! It needs the right to open packet sockets (CAP_NET_RAW), and frames reach hosts of the same
//! Ethernet only. Addresses stay those of IP and UDP, so that a link does not notice; see spec/92
//! for the format.
mod filter;
mod frames;
mod reachability;
mod ring;

use super::datagram::{DATAGRAM_MAX, Inbox, Net, NetCounters, Outbox};
use super::hints::Hints;
use super::udp::{RETRY_NANOS, Udp};
use crate::sys::descriptor;
use crate::sys::descriptor::Descriptor;
use arrayvec::ArrayVec;
use ayre_proto::link::frame::HEADER_BYTES as LINK_HEADER_BYTES;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use frames::{BATCH_MAX, Fate, Frames, Look, QUESTION_BYTES};
use reachability::Reachability;
use ring::SLOTS;

/// Datagrams from which on a train goes by UDP: the system takes and gives it whole, in the time of
/// a few frames.
const TRAIN_MIN: usize = 3;
/// Datagrams that come by UDP in one look, from which on they are taken for a part of a stream.
const STREAM_MIN: usize = 16;
/// The time between two looks at UDP where nothing has come by it lately, and looks in vain after
/// something has come until it is so.
const LOOK_NANOS: u64 = 20_000;
const WARM_LOOKS: u32 = 64;
/// Packet sockets of a host with which there is one more: each of them is asked about each frame.
// spec: LIM-1
const SOCKETS_MAX: usize = 16;
/// Questions that are answered at most in so long a time.
const ANSWERS_MAX: u32 = 16;
const ANSWERS_NANOS: u64 = 1_000_000;
/// Bytes of an answer: the number of its question, a MAC, and nothing. Fewer than any datagram of a
/// link has.
const ANSWER_BYTES: usize = 16;

const MAC_BYTES: usize = 6;
const _: () = assert!(ANSWER_BYTES == QUESTION_BYTES + MAC_BYTES + 2, "an answer's parts");
const _: () = assert!(ANSWER_BYTES < LINK_HEADER_BYTES, "no datagram of a link is an answer");
const _: () = assert!(TRAIN_MIN <= BATCH_MAX, "what is no train goes with one call");
const _: () = assert!(ANSWERS_NANOS > LOOK_NANOS, "answers are counted over several looks");
/// Bytes of Ethernet's header.
const ETHERNET_BYTES: usize = 2 * MAC_BYTES + 2;

/// An Ethernet address.
type Mac = [u8; MAC_BYTES];

/// An address as IPv6 has it.
fn sixth(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// A UDP port, and a packet socket.
#[derive(Debug)]
pub(crate) struct Packet {
    udp: Udp,
    packet_socket: PacketSocket,
    reachability: Reachability,
    /// Can be read when either socket can.
    epoll: Descriptor,
    /// The last datagram came as a frame.
    by_frame: bool,
    /// When UDP was looked at last, and looks at it that are made at each poll, because something
    /// has come.
    looked_at: u64,
    warm: u32,
    /// UDP left no room for frames when both were polled last.
    owes_frames: bool,
    /// Since when questions are counted, and how many there were.
    answers: (u64, u32),
    /// Set while the system takes no more.
    retry: Option<u64>,
}

/// The packet socket.
#[derive(Debug)]
enum PacketSocket {
    /// It will be opened, if possible, when a short datagram is sent after one has come: where
    /// nothing comes from, frames are of no use.
    Later {
        has_come: bool,
    },
    Open(Box<Frames>),
    /// There can be none.
    Never,
}

impl Packet {
    /// Opens a UDP port at an address, with a packet socket beside it if possible; port 0 has the
    /// system choose one.
    ///
    /// # Errors
    /// As [`Udp::bind`].
    pub(crate) fn bind_optional(address: SocketAddr) -> io::Result<Self> {
        let udp = Udp::bind(address)?;
        // Nothing is faster than the loopback interface there.
        let packet_socket = if address.ip().is_loopback() {
            PacketSocket::Never
        } else {
            PacketSocket::Later { has_come: false }
        };
        Self::with(udp, packet_socket)
    }

    /// Opens a UDP port at an address, with a packet socket in any case.
    ///
    /// # Errors
    /// No interface has the address, it is not one of Ethernet, the port is in use, or this process
    /// may not open packet sockets.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let udp = Udp::bind(address)?;
        let frames = Frames::open(udp.local())?;
        let mut packet = Self::with(udp, PacketSocket::Never)?;
        packet.open(frames)?;
        Ok(packet)
    }

    fn with(udp: Udp, packet_socket: PacketSocket) -> io::Result<Self> {
        let epoll = descriptor::epoll()?;
        epoll::add(&epoll, udp.as_fd(), EventData::new_u64(0), EventFlags::IN)?;
        Ok(Self {
            udp,
            packet_socket,
            reachability: Reachability::default(),
            epoll,
            by_frame: false,
            looked_at: 0,
            warm: 0,
            owes_frames: false,
            answers: (0, 0),
            retry: None,
        })
    }

    /// Asserts what holds between two calls.
    fn check(&self) {
        debug_assert!(!self.by_frame || self.has_frames(), "frames come by a packet socket");
        debug_assert!(self.warm <= WARM_LOOKS, "looks in vain are counted from the last find");
    }

    fn has_frames(&self) -> bool {
        matches!(self.packet_socket, PacketSocket::Open(_))
    }

    fn open(&mut self, frames: Frames) -> io::Result<()> {
        assert!(!self.has_frames(), "there is one packet socket at a time");
        epoll::add(&self.epoll, &frames.socket, EventData::new_u64(0), EventFlags::IN)?;
        self.packet_socket = PacketSocket::Open(Box::new(frames));
        Ok(())
    }

    /// Frames have the address in them, and go by the interface that had it.
    // spec: NET-16
    #[cold]
    fn reset_frames(&mut self) {
        assert!(self.has_frames(), "only frames have the address in them");
        (self.packet_socket, self.reachability) =
            (PacketSocket::Later { has_come: false }, Reachability::default());
        self.by_frame = false;
    }

    /// Tries once to open the packet socket. Without the right to it, or where many are open on
    /// this host, the port goes on with UDP alone: the system shows each frame to each packet
    /// socket.
    #[cold]
    fn try_to_open(&mut self) {
        self.packet_socket = PacketSocket::Never;
        if frames::sockets_here() < SOCKETS_MAX
            && let Ok(frames) = Frames::open(self.udp.local())
        {
            let _ = self.open(frames);
        }
    }

    /// Sends the front of the outbox, one call; says whether the system takes more.
    fn send_front(&mut self, outbox: &mut Outbox, now: u64) -> bool {
        let macs = self.macs(outbox, now);
        debug_assert!(macs.len() <= outbox.len(), "each MAC is of a datagram");
        debug_assert!(macs.is_empty() || self.has_frames(), "frames go by a packet socket");
        match &mut self.packet_socket {
            PacketSocket::Open(frames) if !macs.is_empty() => match frames.send(outbox, &macs) {
                Fate::Gone => true,
                Fate::Full => false,
                Fate::TooLong => self.send_too_long(outbox),
            },
            _ => self.udp.send_front(outbox).is_ok(),
        }
    }

    /// The first datagram is too long for a frame: UDP finds out whether it is too long for
    /// everything else, too.
    // spec: MTU-2
    #[cold]
    fn send_too_long(&mut self, outbox: &mut Outbox) -> bool {
        if let Some((to, bytes)) = outbox.iter().next()
            && let PacketSocket::Open(frames) = &mut self.packet_socket
        {
            self.reachability.shorten(to, frames.longest(to).min(bytes.len() - 1));
        }
        self.udp.send_front(outbox).is_ok()
    }

    /// The MACs of the datagrams at the front that go as frames; there may be none.
    // spec: NET-7
    fn macs(&mut self, outbox: &Outbox, now: u64) -> ArrayVec<Mac, BATCH_MAX> {
        let none = ArrayVec::new();
        let Some(train) = outbox.front(TRAIN_MIN, DATAGRAM_MAX) else { return none };
        if train.count >= TRAIN_MIN {
            return none;
        }
        if let PacketSocket::Later { has_come: true } = self.packet_socket {
            self.try_to_open();
        }
        let PacketSocket::Open(frames) = &mut self.packet_socket else { return none };
        if !frames.is_near(train.to.ip()) {
            return none;
        }
        if let Some(question) =
            self.reachability.question(train.to, now, || frames.longest(train.to))
        {
            let is_lost =
                question.1.is_none() && self.reachability.is_no_longer_reachable(train.to, now);
            if is_lost && !frames.is_at_home(now) {
                self.reset_frames();
                return none;
            }
            frames.ask(train.to, question);
        }
        let alone = outbox.iter().take(train.count.max(outbox.alone()).min(BATCH_MAX));
        alone.map_while(|(to, bytes)| self.reachability.mac(to, bytes.len(), now)).collect()
    }

    fn receive_udp(&mut self, inbox: &mut Inbox, now: u64) {
        let is_due = now.saturating_sub(self.looked_at) >= LOOK_NANOS;
        if self.by_frame && self.warm == 0 && !is_due {
            return;
        }
        self.looked_at = now;
        let before = inbox.len();
        self.udp.receive(inbox, now);
        debug_assert!(inbox.len() >= before, "what was there stays");
        if let PacketSocket::Later { has_come } = &mut self.packet_socket {
            *has_come |= inbox.len() > before;
        }
        if !self.has_frames() {
            return;
        }
        if inbox.len() - before >= STREAM_MIN {
            // Nearly always all of it is from one port.
            self.reachability.on_stream(inbox.get(before).0, now);
        }
        for index in (before..inbox.len()).rev() {
            let (from, datagram) = inbox.get(index);
            if let Some(answer) = read_answer(datagram)
                && self.reachability.on_answer(from, answer, now)
            {
                inbox.remove(index);
            }
        }
        if inbox.len() > before {
            (self.by_frame, self.warm) = (false, WARM_LOOKS);
        } else {
            self.warm = self.warm.saturating_sub(1);
        }
    }

    fn receive_frames(&mut self, inbox: &mut Inbox, now: u64) {
        let PacketSocket::Open(frames) = &mut self.packet_socket else { return };
        // No more than wait at a time: frames that are of no use could go on for ever.
        for _ in 0..SLOTS {
            match frames.receive_one(inbox, |from, mac| self.reachability.accepts(from, mac, now)) {
                Look::Datagram => self.by_frame = true,
                Look::Question(from, number) => {
                    if is_within_bounds(&mut self.answers, now) {
                        if !frames.is_at_home(now) {
                            return self.reset_frames();
                        }
                        if !self.udp.say(from, &answer(number, frames.mac())) {
                            return self.check_address(from);
                        }
                        self.reachability.on_question(from, now, || frames.longest(from));
                    }
                }
                Look::Foreign => {}
                Look::Nothing => return,
            }
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
            self.receive_udp(inbox, now);
        } else {
            self.receive_udp(inbox, now);
            self.owes_frames = inbox.is_full();
            self.receive_frames(inbox, now);
        }
        self.check();
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<u64> {
        self.retry
    }

    fn local(&self) -> SocketAddr {
        self.udp.local()
    }

    fn datagram_max(&self, to: SocketAddr) -> usize {
        self.udp.datagram_max(to)
    }

    fn check_address(&mut self, to: SocketAddr) {
        let before = self.udp.local();
        self.udp.check_address(to);
        if self.udp.local() != before && self.has_frames() {
            self.reset_frames();
        }
    }

    fn hints(&self) -> Hints {
        self.udp.hints()
    }

    fn counters(&self) -> NetCounters {
        match &self.packet_socket {
            PacketSocket::Open(frames) => self.udp.counters().and(frames.counters()),
            _ => self.udp.counters(),
        }
    }
}

/// The answer by UDP to a question that came as a frame.
// spec: NET-7
fn answer(number: u64, mac: Mac) -> [u8; ANSWER_BYTES] {
    let mut answer = [0; ANSWER_BYTES];
    answer[..QUESTION_BYTES].copy_from_slice(&number.to_le_bytes());
    answer[QUESTION_BYTES..][..MAC_BYTES].copy_from_slice(&mac);
    answer
}

/// The number of the question, and the MAC.
// spec: NET-7
fn read_answer(datagram: &[u8]) -> Option<(u64, Mac)> {
    let (number, rest) = datagram.split_first_chunk()?;
    let (mac, rest) = rest.split_first_chunk()?;
    (rest == [0; 2]).then_some((u64::from_le_bytes(*number), *mac))
}

/// Whether another question may be answered. The number of answers in a time is limited, because
/// the sender of a question chooses their destination.
fn is_within_bounds((since, count): &mut (u64, u32), now: u64) -> bool {
    if now.saturating_sub(*since) >= ANSWERS_NANOS {
        (*since, *count) = (now, 0);
    }
    *count += 1;
    *count <= ANSWERS_MAX
}

#[cfg(all(test, not(loom)))]
mod tests;

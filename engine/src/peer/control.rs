//! The control channel of a connection: for set-up, capabilities and death. A Unix socket on one
//! host; in memory where a carrier stands for a peer of another one.
//!
//! Packets have eight words and at most four file descriptors. They carry no data and lie on no
//! hot path; that the socket closes, or that the process behind it ends, is how a peer's death is
//! noticed.
//!
//! The socket is the bell, too: a packet, of whatever kind, wakes all who sleep at its other end. A
//! port has two threads that sleep, its own and its engine's, if there is one. Both sleep on the
//! channel, and either may take what has come, under a lock. A thread that takes anything wakes the
//! other one, which looks itself before it sleeps again. Rings end there; other packets wait in the
//! channel's inbox for the port's thread.
//!
//! - A ring never blocks, and what becomes of it does not matter. Where the peer has something that
//!   it has not taken, it is awake or about to be, and no ring is sent. So rings take no room from
//!   other packets, however often a sleeper is rung.
//! - Of a peer that rings without end, each wake takes a bounded part.
//! - The inbox has bounds, and is never left full with packets behind it in the socket: what comes
//!   beyond them is dropped. So nobody is kept awake by what nobody takes.
use super::loss::Loss;
use super::mail::Mail;
use super::packet::{Arrival, Packet, PacketKind, WORDS};
use crate::error::SetupError;
use crate::sys::descriptor::Descriptor;
use crate::sys::{descriptor, peer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard};

/// Capabilities that a peer may offer before the program accepts any.
// spec: LIM-1
pub(crate) const OFFERS_MAX: usize = 256;
/// Packets that are taken from a socket at a time.
const TAKEN_MAX: usize = 512;
/// Most descriptors of a packet.
const FDS_MAX: usize = 4;

/// Our end of a control channel.
#[derive(Debug)]
pub(crate) enum Channel {
    Socket(Socket),
    Mail(Mail),
}

/// Our end of a socket, and the process at the other end.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: Descriptor,
    /// Can be read once the peer's process has ended, where the system shows that.
    life: Option<Arc<Descriptor>>,
    /// Packets for the port. The thread that takes packets from the socket holds the lock.
    inbox: Mutex<Inbox>,
}

/// Packets of a peer that the port has not looked at.
#[derive(Debug, Default)]
struct Inbox {
    packets: VecDeque<Packet>,
    /// The peer has said that it leaves.
    left: bool,
    end: Option<End>,
}

/// Why nothing comes any more.
#[derive(Clone, Copy, Debug)]
enum End {
    Malformed,
    Closed,
}

/// The result of a poll of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// Something was taken: all who sleep at this end are to look.
    pub(crate) any: bool,
    /// There is something for the port's thread.
    pub(crate) mail: bool,
    /// Nothing comes any more.
    pub(crate) is_over: bool,
}

impl Inbox {
    /// A packet of a connected peer. Those that may come are offers, one Bye, and rings.
    fn put(&mut self, mut packet: Packet) {
        match packet.kind {
            PacketKind::Ring => {}
            PacketKind::OfferRegion | PacketKind::OfferQueue | PacketKind::OfferInlet => {
                // Offers beyond the limit are dropped; earlier ones stay.
                if self.packets.len() < OFFERS_MAX {
                    let is_inlet = packet.kind == PacketKind::OfferInlet;
                    packet.fds.truncate(if is_inlet { 3 } else { 1 });
                    self.packets.push_back(packet);
                }
            }
            PacketKind::Bye if !self.left => {
                self.left = true;
                self.packets.push_back(packet);
            }
            _ => self.end = Some(End::Malformed),
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        let ended = || self.end.map(Arrival::from);
        self.packets.pop_front().map(Arrival::Packet).or_else(ended)
    }
}

impl From<End> for Arrival {
    fn from(end: End) -> Self {
        match end {
            End::Malformed => Self::Malformed,
            End::Closed => Self::Closed,
        }
    }
}

impl Socket {
    pub(crate) fn new(socket: Descriptor) -> Result<Self, SetupError> {
        let life = peer::life(socket.as_fd()).map_err(|_| SetupError::peer_left())?;
        Ok(Self { socket, life: life.map(Arc::new), inbox: Mutex::default() })
    }

    /// Takes what has come, up to a bound: rings end here.
    fn hear(&self) -> Heard {
        let mut inbox = self.inbox();
        let any = self.take_into(&mut inbox);
        let is_over = inbox.end.is_some();
        Heard { any, mail: is_over || !inbox.packets.is_empty(), is_over }
    }

    /// Returns whether there was anything.
    fn take_into(&self, inbox: &mut Inbox) -> bool {
        for taken in 0..TAKEN_MAX {
            if inbox.end.is_some() {
                return taken > 0;
            }
            match receive(self.socket.as_fd()) {
                Arrival::Nothing => return taken > 0,
                Arrival::Packet(packet) => inbox.put(packet),
                Arrival::Malformed => inbox.end = Some(End::Malformed),
                Arrival::Closed | Arrival::Restarted => inbox.end = Some(End::Closed),
            }
        }
        true
    }

    /// The next packet that was taken. A process that has ended counts as gone even if another one,
    /// such as a child of it, holds the other end; the packets that it has sent come before.
    // spec: LIFE-10, LIFE-12
    fn receive(&self) -> Arrival {
        let mut inbox = self.inbox();
        if let Some(arrival) = inbox.next() {
            return arrival;
        }
        if !self.has_ended() {
            return Arrival::Nothing;
        }
        // Rings among it wake nobody: what a peer has posted is served where its connection ends.
        self.take_into(&mut inbox);
        inbox.next().unwrap_or(Arrival::Closed)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn has_ended(&self) -> bool {
        let Some(life) = &self.life else { return false };
        let mut ended = [PollFd::new(life, PollFlags::IN)];
        matches!(poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1))
    }
}

impl Channel {
    /// Sends a packet; does not block.
    pub(crate) fn send(
        &self,
        kind: PacketKind,
        words: [u64; WORDS - 1],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), SetupError> {
        match self {
            Self::Socket(socket) => send(socket.socket.as_fd(), kind, words, fds),
            Self::Mail(mail) => {
                let fds = fds.iter().map(descriptor::copy).collect::<Result<_, _>>();
                let fds =
                    fds.map_err(|_| SetupError::exhausted("descriptor (raise `ulimit -n`)"))?;
                mail.send(Packet { kind, words, fds })
            }
        }
    }

    /// Wakes the peer, unless it has something to take: then it is awake, or about to be, and looks
    /// after it has taken that. The fate of the ring does not matter.
    // spec: WAIT-4
    #[cold]
    pub(crate) fn ring(&self) {
        if let Self::Socket(socket) = self
            && !peer::has_unread(socket.socket.as_fd())
        {
            let _ = self.send(PacketKind::Ring, [0; WORDS - 1], &[]);
        }
    }

    /// Takes what has come to a socket, for [`Channel::receive`]; does not block.
    pub(crate) fn hear(&self) -> Heard {
        match self {
            Self::Socket(socket) => socket.hear(),
            Self::Mail(_) => Heard::default(),
        }
    }

    /// The next packet of those that were taken; does not block.
    pub(crate) fn receive(&self) -> Arrival {
        match self {
            Self::Socket(socket) => socket.receive(),
            Self::Mail(mail) => mail.receive(),
        }
    }

    /// Why a link has ended that neither side has left.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match self {
            Self::Socket(_) => None,
            Self::Mail(mail) => mail.loss(),
        }
    }

    /// The descriptor to sleep on, where that is not the wire's business.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Socket(socket) => Some(socket.socket.as_fd()),
            Self::Mail(_) => None,
        }
    }

    /// Whether the program has not closed its socket.
    // spec: LIFE-40
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.socket.is_there(),
            Self::Mail(_) => true,
        }
    }

    /// The further descriptor to sleep on.
    pub(crate) fn life(&self) -> Option<&Arc<Descriptor>> {
        match self {
            Self::Socket(socket) => socket.life.as_ref(),
            Self::Mail(_) => None,
        }
    }
}

/// Sends a packet; does not block, so that a peer that reads none cannot hold us up.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    kind: PacketKind,
    words: [u64; WORDS - 1],
    fds: &[BorrowedFd<'_>],
) -> Result<(), SetupError> {
    let mut bytes = [0; WORDS * 8];
    bytes[..8].copy_from_slice(&(kind as u64).to_le_bytes());
    for (chunk, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(fds.len() <= FDS_MAX, "a packet carries at most four descriptors");
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let slices = [IoSlice::new(&bytes)];
    loop {
        match sendmsg(socket, &slices, &mut ancillary, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(SetupError::peer_left()),
            Err(Errno::AGAIN) => return Err(SetupError::exhausted("room for offers at the peer")),
            Err(errno) => return Err(SetupError::Os { call: "sendmsg", errno }),
        }
    }
}

/// Takes the next packet; does not block.
// spec: LIFE-18
pub(crate) fn receive(socket: BorrowedFd<'_>) -> Arrival {
    let mut bytes = [0; WORDS * 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut slices, &mut ancillary, flags) {
            // Who has gone leaves what it said before: the next look finds that, or the end.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            other => break other,
        }
    };
    let message = match received {
        // A packet without bytes looks the same as the end.
        Ok(message) if message.bytes > 0 => message,
        Err(Errno::AGAIN) => return Arrival::Nothing,
        _ => return Arrival::Closed,
    };
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(descriptor::received(rights));
        }
    }
    // The kernel cuts off what goes beyond the buffer, and says so.
    if message.bytes != bytes.len() || message.flags.contains(ReturnFlags::TRUNC) {
        return Arrival::Malformed;
    }
    parse(&bytes, fds).map_or(Arrival::Malformed, Arrival::Packet)
}

fn parse(bytes: &[u8; WORDS * 8], fds: Vec<Descriptor>) -> Option<Packet> {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
    let kind = words.next().and_then(PacketKind::from_word)?;
    let words = std::array::from_fn(|_| words.next().unwrap_or(0));
    Some(Packet { kind, words, fds })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::net::SocketType;

    fn pair() -> [Channel; 2] {
        let (near, far) = descriptor::socket_pair(SocketType::SEQPACKET).unwrap();
        [near, far].map(|socket| Channel::Socket(Socket::new(socket).unwrap()))
    }

    fn offer(channel: &Channel, name: u64) -> Result<(), SetupError> {
        channel.send(PacketKind::OfferRegion, [name, 0, 0, 0, 0, 0, 0], &[])
    }

    /// Names of the offers that were taken.
    fn offers(channel: &Channel) -> Vec<u64> {
        let packets = std::iter::from_fn(|| match channel.receive() {
            Arrival::Packet(packet) => Some(packet),
            _ => None,
        });
        packets.map(|packet| packet.words[0]).collect()
    }

    // spec: LANE-15
    #[test]
    fn kicks_take_no_room_from_offers() {
        let [near, far] = pair();
        (0..10_000).for_each(|_| near.ring());
        for name in 0..200 {
            offer(&near, name).expect("room");
            near.ring();
        }
        let heard = far.hear();
        assert!(heard.any && heard.mail && !heard.is_over);
        assert_eq!(offers(&far), Vec::from_iter(0..200));
        near.ring();
        let heard = far.hear();
        assert!(heard.any && !heard.mail, "it wakes, and leaves nothing");
        assert!(!far.hear().any, "it was taken");
    }

    // spec: LANE-15, LIM-1
    #[test]
    fn the_control_socket_is_always_drained() {
        let [near, far] = pair();
        for name in 0..1000 {
            offer(&near, name).expect("room");
            assert!(far.hear().any);
        }
        near.send(PacketKind::Bye, [0; 7], &[]).expect("room");
        assert!(far.hear().any && !far.hear().any);
        assert_eq!(offers(&far)[..OFFERS_MAX], Vec::from_iter(0..OFFERS_MAX as u64));
        near.send(PacketKind::Bye, [0; 7], &[]).expect("room");
        assert!(far.hear().is_over, "nobody leaves twice");
        assert!(matches!(far.receive(), Arrival::Malformed));
        drop(near);
        assert!(matches!(far.receive(), Arrival::Malformed), "the first reason counts");
    }

    // spec: LIFE-12
    #[test]
    fn packets_sent_before_the_end_are_received_before_it() {
        let [near, far] = pair();
        offer(&near, 5).expect("room");
        drop(near);
        assert!(far.hear().is_over);
        assert_eq!(offers(&far), [5]);
        assert!(matches!(far.receive(), Arrival::Closed));
    }
}

//! The control channel of a connection: for set-up, capabilities and death. A Unix socket on one
//! host; in memory where a carrier stands for a peer of another one.
//!
//! Packets have eight words and at most four file descriptors. They carry no data and lie on no
//! hot path; that the socket closes, or that the process behind it
//! ends, is how a peer's death is noticed. Between endpoints the socket is the bell, too: they have
//! no other thread to wake than the one that takes packets, and a descriptor less for each peer.
use crate::error::SetupError;
use crate::sys::{descriptor, peer};
use crate::wire::{Loss, Mail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Instant;

/// Rings that are taken at a time.
const RINGS_MAX: usize = 512;
/// Most descriptors of a packet.
const FDS_MAX: usize = 4;
const WORDS: usize = 8;

/// What a packet is; its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum PacketKind {
    Hello = 1,
    Welcome = 2,
    Refuse = 3,
    OfferRegion = 4,
    OfferQueue = 5,
    /// The peer leaves on purpose; its end of the socket closes next.
    Bye = 6,
    OfferInlet = 7,
    /// Wakes the endpoint that it goes to, and means nothing else.
    Ring = 8,
}

impl PacketKind {
    fn from_word(word: u64) -> Option<Self> {
        Some(match word {
            1 => Self::Hello,
            2 => Self::Welcome,
            3 => Self::Refuse,
            4 => Self::OfferRegion,
            5 => Self::OfferQueue,
            6 => Self::Bye,
            7 => Self::OfferInlet,
            8 => Self::Ring,
            _ => return None,
        })
    }
}

/// One packet.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) kind: PacketKind,
    pub(crate) words: [u64; WORDS - 1],
    pub(crate) fds: Vec<OwnedFd>,
}

/// What stands in the socket.
#[derive(Debug)]
pub(crate) enum Arrival {
    Packet(Packet),
    Nothing,
    /// The peer said something that is no packet.
    Malformed,
    /// The peer is gone.
    Closed,
    /// It is there again, and knows nothing of this channel.
    Restarted,
}

impl Arrival {
    /// As set-up sees it.
    pub(crate) fn packet(self) -> Result<Option<Packet>, SetupError> {
        match self {
            Self::Packet(packet) => Ok(Some(packet)),
            Self::Nothing => Ok(None),
            Self::Malformed => Err(SetupError::Protocol("what the peer said is no packet")),
            Self::Closed | Self::Restarted => Err(SetupError::peer_left()),
        }
    }
}

/// Our end of a control channel.
#[derive(Debug)]
pub(crate) enum Channel {
    Socket(Socket),
    Mail(Mail),
}

/// Our end of a socket, and the process at the other end.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: OwnedFd,
    /// Can be read once the peer's process has ended, where the system shows that.
    life: Option<Arc<OwnedFd>>,
    /// What wakes us comes here as well: between endpoints.
    is_bell: bool,
}

impl Socket {
    pub(crate) fn new(socket: OwnedFd, is_bell: bool) -> Result<Self, SetupError> {
        let life = peer::life(socket.as_fd()).map_err(|_| SetupError::peer_left())?;
        Ok(Self { socket, life: life.map(Arc::new), is_bell })
    }

    /// Takes rings, up to what is no ring. Returns whether there is such, or may be.
    fn take_rings(&self) -> bool {
        let mut kind = [0; 8];
        for _ in 0..RINGS_MAX {
            let (into, flags) = (&mut kind[..], RecvFlags::DONTWAIT);
            match recv(&self.socket, into, flags | RecvFlags::PEEK) {
                Ok((8, _)) if u64::from_le_bytes(kind) == PacketKind::Ring as u64 => {
                    // What else it brings is not looked at, and goes with it.
                    let _ = recv(&self.socket, &mut kind[..], flags);
                }
                Err(Errno::AGAIN | Errno::INTR) => return false,
                _ => return true,
            }
        }
        false
    }

    /// Takes the next packet. A process that has ended is gone whoever else, such as a child of it,
    /// holds the other end; what it has sent is there before.
    // spec: LIFE-10, LIFE-12
    fn receive(&self) -> Arrival {
        let socket = self.socket.as_fd();
        if self.is_bell && !self.take_rings() && !self.has_ended() {
            return Arrival::Nothing;
        }
        match receive(socket) {
            Arrival::Nothing if self.has_ended() => match receive(socket) {
                Arrival::Nothing => Arrival::Closed,
                arrival => arrival,
            },
            arrival => arrival,
        }
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

    /// Wakes the peer. What becomes of it does not matter: where there is no room for it, the peer
    /// has something to take, and is awake or about to be.
    #[cold]
    pub(crate) fn ring(&self) {
        let _ = self.send(PacketKind::Ring, [0; WORDS - 1], &[]);
    }

    /// Takes rings, where this is a bell as well. Returns whether there is something else.
    pub(crate) fn take_rings(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.take_rings(),
            Self::Mail(_) => false,
        }
    }

    /// Takes the next packet; does not block.
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

    /// What to sleep on, where that is not the wire's business.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Socket(socket) => Some(socket.socket.as_fd()),
            Self::Mail(_) => None,
        }
    }

    /// What to sleep on besides.
    pub(crate) fn life(&self) -> Option<&Arc<OwnedFd>> {
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

fn parse(bytes: &[u8; WORDS * 8], fds: Vec<OwnedFd>) -> Option<Packet> {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
    let kind = words.next().and_then(PacketKind::from_word)?;
    let words = std::array::from_fn(|_| words.next().unwrap_or(0));
    Some(Packet { kind, words, fds })
}

/// Waits until something happens to one of the descriptors, or until `deadline`.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], deadline: Instant) -> Result<(), SetupError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().min(1 << 40) as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(fds, Some(&timeout)) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SetupError::Os { call: "poll", errno }),
        }
    }
}

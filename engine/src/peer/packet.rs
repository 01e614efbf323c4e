//! Packets of a control channel.
use crate::error::SetupError;
use crate::sys::descriptor::Descriptor;

/// Words of a packet.
pub(super) const WORDS: usize = 8;

/// The kind of a packet: its first word.
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
    /// Wakes a sleeper at the other end, and means nothing else.
    Ring = 8,
}

impl PacketKind {
    pub(super) fn from_word(word: u64) -> Option<Self> {
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
    pub(crate) fds: Vec<Descriptor>,
}

/// The contents of the socket.
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

//! Messages between hosts: a tag and four words, then bytes of the ring.
//!
//! ```text
//!   tag     kind, 8 bits | slot of the one that receives, 24 bits | a number, 32 bits
//!   bytes   position or way | origin | head of the reader | its segment, and the known one | bytes
//!
//!   meet    kind, 8 bits | slot of the one that sends, 24 bits | 0
//!   bytes   token, 2 words | 0, 2 words
//! ```
use super::{Piece, Progress, Way};
use crate::endpoint::SHORT_MAX;
use crate::envelope::AHEAD_MIN;
use crate::lane::Malformed;
use crate::socket::Taken;

/// Words in front of the ring's bytes.
pub const HEAD_WORDS: usize = 4;

const HEAD_BYTES: u64 = 8 * HEAD_WORDS as u64;

/// Bytes of the ring in a message: one that leaves at once, however little room there is.
pub const BYTES_MOST: u64 = AHEAD_MIN as u64 - HEAD_BYTES;
const _: () = assert!(HEAD_BYTES < SHORT_MAX as u64);

/// Slots that a tag can name.
const SLOTS: u32 = 1 << 24;

/// A message about one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The program has written.
    Write {
        /// Bytes, or the beginning of a segment.
        piece: Piece,
        /// How far it has read.
        progress: Progress,
    },
    /// The program has read.
    Progress(Progress),
    /// The program's reader wants bytes in another way.
    Wish {
        /// Wishes are counted.
        number: u32,
        /// The way.
        way: Way,
        /// How far it has read.
        progress: Progress,
    },
    /// The program's writer keeps to a wish for the kernel.
    Heard {
        /// The number of the wish.
        number: u32,
    },
    /// The program writes nothing any more.
    End,
    /// The program uses the connection no longer. The last message.
    Leave,
}

const WRITE: u8 = 1;
const PROGRESS: u8 = 2;
const WISH: u8 = 3;
const HEARD: u8 = 4;
const END: u8 = 5;
const LEAVE: u8 = 6;
const MEET: u8 = 7;

/// Random bits that name a connection: the accepting process has made them up, and has told the
/// connecting one.
pub type Token = [u64; 2];

/// All that one host sends another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// The sender's end of a connection has this slot at the sender. Both ends have the connection
    /// as soon as each has told the other.
    Meet {
        /// The sender's slot.
        slot: u32,
        /// The connection.
        token: Token,
    },
    /// A message about a connection.
    About {
        /// The receiver's slot.
        slot: u32,
        /// The message.
        message: Message,
    },
}

/// A letter as an endpoint carries it, without the ring's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The tag.
    pub tag: u64,
    /// The first words of its bytes.
    pub words: [u64; HEAD_WORDS],
}

const fn tag(kind: u8, slot: u32, number: u32) -> u64 {
    (kind as u64) << 56 | (slot as u64) << 32 | number as u64
}

impl Letter {
    /// As an endpoint carries it.
    pub fn to_envelope(&self) -> Envelope {
        match *self {
            Self::Meet { slot, token: [a, b] } => {
                Envelope { tag: tag(MEET, slot, 0), words: [a, b, 0, 0] }
            }
            Self::About { slot, message } => message.to_envelope(slot),
        }
    }

    /// The letter. `len` is the number of the ring's bytes.
    ///
    /// # Errors
    /// [`Malformed`] where there is no such letter.
    pub fn of_envelope(envelope: &Envelope, len: u64) -> Result<Self, Malformed> {
        let Envelope { tag, words: [a, b, c, d] } = *envelope;
        let slot = (tag >> 32) as u32 % SLOTS;
        if (tag >> 56) as u8 != MEET {
            return Ok(Self::About { slot, message: Message::of_envelope(envelope, len)? });
        }
        let is_meet = len == 0 && tag as u32 == 0 && [c, d] == [0, 0];
        if is_meet { Ok(Self::Meet { slot, token: [a, b] }) } else { Err(Malformed) }
    }
}

impl Message {
    fn to_envelope(self, slot: u32) -> Envelope {
        debug_assert!(slot < SLOTS, "slots have small numbers");
        let words = |first: u64, origin: u64, of: Progress| {
            let segments = u64::from(of.taken.segment) | u64::from(of.known) << 32;
            [first, origin, of.taken.head, segments]
        };
        let none = [0; HEAD_WORDS];
        let (kind, number, words) = match self {
            Self::Write { piece, progress } => {
                (WRITE, piece.segment, words(piece.at, piece.origin, progress))
            }
            Self::Progress(progress) => (PROGRESS, 0, words(0, 0, progress)),
            Self::Wish { number, way, progress } => {
                (WISH, number, words(way_number(way), 0, progress))
            }
            Self::Heard { number } => (HEARD, number, none),
            Self::End => (END, 0, none),
            Self::Leave => (LEAVE, 0, none),
        };
        Envelope { tag: tag(kind, slot, number), words }
    }

    fn of_envelope(envelope: &Envelope, len: u64) -> Result<Self, Malformed> {
        let Envelope { tag, words: [first, origin, head, segments] } = *envelope;
        let number = tag as u32;
        let taken = Taken { head, segment: segments as u32 };
        let progress = Progress { taken, known: (segments >> 32) as u32 };
        let message = match (tag >> 56) as u8 {
            WRITE if len <= BYTES_MOST => {
                let piece = Piece { segment: number, at: first, origin, len };
                Self::Write { piece, progress }
            }
            PROGRESS => Self::Progress(progress),
            WISH => Self::Wish { number, way: way_of(first)?, progress },
            HEARD => Self::Heard { number },
            END => Self::End,
            LEAVE => Self::Leave,
            _ => return Err(Malformed),
        };
        let has_bytes = matches!(message, Self::Write { .. });
        if has_bytes || len == 0 { Ok(message) } else { Err(Malformed) }
    }
}

const fn way_number(way: Way) -> u64 {
    match way {
        Way::Kernel => 0,
        Way::Ring => 1,
        Way::Gone => 2,
    }
}

const fn way_of(number: u64) -> Result<Way, Malformed> {
    match number {
        0 => Ok(Way::Kernel),
        1 => Ok(Way::Ring),
        2 => Ok(Way::Gone),
        _ => Err(Malformed),
    }
}

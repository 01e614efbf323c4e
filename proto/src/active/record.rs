//! Records: what short messages of a messenger say.
use super::{ARGUMENTS_MAX, NAME_MAX, STATIC_IDS};
use crate::lane::Malformed;
use arrayvec::ArrayVec;

/// The reason why a message was dropped.
// spec: AM-7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropCause {
    /// Its destination has no such handler, or another one by this id.
    Unknown = 1,
    /// It has fewer bytes than its handler takes arguments, or more than its destination takes.
    Malformed = 2,
    /// The handler panicked.
    Panicked = 3,
}

/// A record that is about messages, or a message without any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A handler's name.
    Announce {
        /// Its id.
        id: u32,
        /// Arguments that it takes.
        arguments: u8,
        /// The name.
        name: &'a str,
    },
    /// A long message begins.
    Long {
        /// The handler's, or one that is no handler's: then the message is a feature's, and its
        /// records have this tag.
        id: u32,
        /// Bytes of the payload.
        total: u64,
        /// Bytes of the first piece.
        piece: u64,
        /// The arguments, in bytes.
        arguments: &'a [u8],
    },
    /// The next bytes of the long message: their number.
    Piece(u64),
    /// Bytes of the landing that were taken in all.
    Room(u64),
    /// A landing is wanted.
    Want,
    /// A landing of this number of bytes was handed over.
    Landing(u64),
    /// A message to this id was dropped.
    Failed(u32, DropCause),
    /// This sync has begun.
    Sync(u64),
    /// A message without arguments and payload, to this id.
    Empty(u32),
    /// A long message lies in its sender's memory, for the receiver to read there.
    Pull {
        /// The handler's id.
        id: u32,
        /// Bytes of the payload.
        total: u64,
        /// Its address in the sender's memory.
        address: u64,
        /// The arguments, in bytes.
        arguments: &'a [u8],
    },
    /// The answer to a pull request.
    Pulled(Pulled),
}

/// A receiver's answer to the request to read a message from its sender's memory.
// spec: INJ-7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Pulled {
    /// The receiver cannot read there: this message is to come by the landing, and so are all later
    /// ones.
    Never = 0,
    /// The message was read, whole, or is not wanted.
    Whole = 1,
    /// This message is to come by the landing.
    NotNow = 2,
}

/// Tags of features, which are numbered along with these, stand with each.
const ANNOUNCE: u32 = 1;
const LONG: u32 = 2;
const PIECE: u32 = 3;
const ROOM: u32 = 4;
const WANT: u32 = 5;
const LANDING: u32 = 6;
const FAILED: u32 = 7;
const SYNC: u32 = 8;
const EMPTY: u32 = 9;
const PULL: u32 = 16;
const PULLED: u32 = 17;

/// Three words, and the arguments or the name.
pub const RECORD_BYTES: usize = 24 + NAME_MAX;
/// A record's bytes.
pub type Bytes = ArrayVec<u8, RECORD_BYTES>;

const _: () = assert!(NAME_MAX >= 8 * ARGUMENTS_MAX, "either fits");

/// Whether messages carry this tag, rather than records.
#[inline(always)]
pub const fn is_handler(tag: u32) -> bool {
    tag >= *STATIC_IDS.start()
}

impl<'a> Record<'a> {
    /// Its tag and its bytes.
    ///
    /// # Panics
    /// If a name or arguments are longer than the limits.
    // spec: AM-15
    pub fn encode(&self) -> (u32, Bytes) {
        let (tag, words, rest): (_, [u64; 3], &[u8]) = match *self {
            Self::Announce { id, arguments, name } => {
                (ANNOUNCE, [id.into(), arguments.into(), 0], name.as_bytes())
            }
            Self::Long { id, total, piece, arguments } => {
                (LONG, [id.into(), total, piece], arguments)
            }
            Self::Pull { id, total, address, arguments } => {
                (PULL, [id.into(), total, address], arguments)
            }
            Self::Pulled(pulled) => (PULLED, [pulled as u64, 0, 0], &[]),
            Self::Piece(len) => (PIECE, [len, 0, 0], &[]),
            Self::Room(taken) => (ROOM, [taken, 0, 0], &[]),
            Self::Want => (WANT, [0; 3], &[]),
            Self::Landing(bytes) => (LANDING, [bytes, 0, 0], &[]),
            Self::Failed(id, cause) => (FAILED, [id.into(), cause as u64, 0], &[]),
            Self::Sync(round) => (SYNC, [round, 0, 0], &[]),
            Self::Empty(id) => (EMPTY, [id.into(), 0, 0], &[]),
        };
        let mut bytes = Bytes::new();
        for word in &words[..words_of(tag)] {
            bytes.try_extend_from_slice(&word.to_le_bytes()).expect("three words fit");
        }
        bytes.try_extend_from_slice(rest).expect("within the limits");
        debug_assert!(!is_handler(tag), "a record is no handler's message");
        debug_assert!(words[words_of(tag)..].iter().all(|word| *word == 0), "no word is left out");
        (tag, bytes)
    }

    /// Reads what a peer says: total.
    // spec: AM-15
    pub fn parse(tag: u32, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (words, rest) = bytes.split_at_checked(8 * words_of(tag)).ok_or(Malformed)?;
        let mut word = words
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of eight")));
        let mut next = || word.next().unwrap_or(0);
        let takes_bytes = matches!(tag, ANNOUNCE | LONG | PULL);
        if !takes_bytes && !rest.is_empty() {
            return Err(Malformed);
        }
        match tag {
            ANNOUNCE => announced(next(), next(), rest),
            LONG => {
                let (id, arguments) = (number(next())?, arguments(rest)?);
                Ok(Self::Long { id, total: next(), piece: next(), arguments })
            }
            PULL => {
                let (id, arguments) = (handler(next())?, arguments(rest)?);
                Ok(Self::Pull { id, total: next(), address: next(), arguments })
            }
            PULLED => match next() {
                0 => Ok(Self::Pulled(Pulled::Never)),
                1 => Ok(Self::Pulled(Pulled::Whole)),
                2 => Ok(Self::Pulled(Pulled::NotNow)),
                _ => Err(Malformed),
            },
            PIECE => Ok(Self::Piece(next())),
            ROOM => Ok(Self::Room(next())),
            WANT if next() == 0 => Ok(Self::Want),
            LANDING => Ok(Self::Landing(next())),
            FAILED => Ok(Self::Failed(handler(next())?, cause(next())?)),
            SYNC => Ok(Self::Sync(next())),
            EMPTY => Ok(Self::Empty(handler(next())?)),
            _ => Err(Malformed),
        }
    }
}

const fn words_of(tag: u32) -> usize {
    match tag {
        LONG | PULL => 3,
        ANNOUNCE | FAILED => 2,
        _ => 1,
    }
}

fn announced(id: u64, arguments: u64, name: &[u8]) -> Result<Record<'_>, Malformed> {
    let id = u32::try_from(id).map_err(|_| Malformed)?;
    let name = core::str::from_utf8(name).map_err(|_| Malformed)?;
    let sound = (1..=NAME_MAX).contains(&name.len()) && super::id_of(name) == id;
    match u8::try_from(arguments) {
        Ok(arguments) if sound && usize::from(arguments) <= ARGUMENTS_MAX => {
            Ok(Record::Announce { id, arguments, name })
        }
        _ => Err(Malformed),
    }
}

const fn arguments(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let sound = bytes.len().is_multiple_of(8) && bytes.len() <= 8 * ARGUMENTS_MAX;
    if sound { Ok(bytes) } else { Err(Malformed) }
}

fn number(word: u64) -> Result<u32, Malformed> {
    u32::try_from(word).map_err(|_| Malformed)
}

fn handler(word: u64) -> Result<u32, Malformed> {
    u32::try_from(word).ok().filter(|id| is_handler(*id)).ok_or(Malformed)
}

const fn cause(word: u64) -> Result<DropCause, Malformed> {
    match word {
        1 => Ok(DropCause::Unknown),
        2 => Ok(DropCause::Malformed),
        3 => Ok(DropCause::Panicked),
        _ => Err(Malformed),
    }
}

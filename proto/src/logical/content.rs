//! The header of a message, or of a part of one.
use crate::active::record::is_handler;
use crate::lane::Malformed;

/// The tag of a message by a channel, and the id of a part of a long one.
// spec: CHAN-8
pub const CHANNEL: u32 = 18;
/// The tag of [`Back`].
// spec: CHAN-9
pub const BACK: u32 = 19;

/// The cost of a channel that was given back in all: see
/// [`ChannelReceiver`](super::ChannelReceiver).
// spec: CHAN-3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Back {
    /// The channel's number.
    pub number: u8,
    /// The cost.
    pub back: u64,
}

impl Back {
    /// The format on the wire.
    pub const fn encode(self) -> [u8; 16] {
        (self.number as u128 | (self.back as u128) << 64).to_le_bytes()
    }

    /// Reads what a peer says: total.
    // spec: CHAN-9
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let ([number, back], []) = bytes.as_chunks::<8>() else { return Err(Malformed) };
        match u8::try_from(u64::from_le_bytes(*number)) {
            Ok(number @ 1..) => Ok(Self { number, back: u64::from_le_bytes(*back) }),
            _ => Err(Malformed),
        }
    }
}

/// Bytes of a head.
pub(super) const HEAD_BYTES: usize = 8;

/// The channel of a part, and the message if one begins here.
///
/// ```text
///  63           32 31           9   8   7        0
/// +---------------+--------------+-----+----------+
/// | handler's id  |    zeros     | 1st |  number  |
/// +---------------+--------------+-----+----------+
/// ```
// spec: CHAN-8
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The channel's number.
    pub number: u8,
    /// The handler of the message that begins here; none where one goes on.
    pub begins: Option<u32>,
}

/// The header of a part of a longer message.
// spec: CHAN-8
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The first part: the bytes of the whole message, and its handler.
    First {
        /// The handler's id.
        id: u32,
        /// Bytes of the message.
        total: u64,
    },
    /// It is a later part.
    Later,
}

impl Head {
    /// The format on the wire.
    pub const fn encode(self) -> [u8; HEAD_BYTES] {
        let (id, first) = match self.begins {
            Some(id) => (id, 1),
            None => (0, 0),
        };
        ((id as u64) << 32 | first << 8 | self.number as u64).to_le_bytes()
    }

    /// Reads what a peer says: total.
    // spec: CHAN-9
    pub fn parse(bytes: [u8; HEAD_BYTES]) -> Result<Self, Malformed> {
        let word = u64::from_le_bytes(bytes);
        let (number, id) = (word as u8, (word >> 32) as u32);
        let begins = match (word as u32) >> 8 {
            0 if id == 0 => None,
            1 if is_handler(id) => Some(id),
            _ => return Err(Malformed),
        };
        if number == 0 { Err(Malformed) } else { Ok(Self { number, begins }) }
    }
}

impl Start {
    /// The words that travel with a part on this channel, and how many they are.
    pub const fn encode(self, number: u8) -> ([u8; 2 * HEAD_BYTES], usize) {
        let (begins, total) = match self {
            Self::First { id, total } => (Some(id), total),
            Self::Later => (None, 0),
        };
        let (head, total) = (Head { number, begins }.encode(), total.to_le_bytes());
        let mut words = [0; 2 * HEAD_BYTES];
        words.first_chunk_mut::<HEAD_BYTES>().expect("two words").copy_from_slice(&head);
        words.last_chunk_mut::<HEAD_BYTES>().expect("two words").copy_from_slice(&total);
        (words, if begins.is_some() { 2 * HEAD_BYTES } else { HEAD_BYTES })
    }

    /// Reads them: total.
    // spec: CHAN-9
    pub fn parse(words: &[u8]) -> Result<(u8, Self), Malformed> {
        let (head, total) = words.split_first_chunk().ok_or(Malformed)?;
        let Head { number, begins } = Head::parse(*head)?;
        match (begins, <[u8; HEAD_BYTES]>::try_from(total)) {
            (Some(id), Ok(total)) => {
                Ok((number, Self::First { id, total: u64::from_le_bytes(total) }))
            }
            (None, _) if total.is_empty() => Ok((number, Self::Later)),
            _ => Err(Malformed),
        }
    }
}

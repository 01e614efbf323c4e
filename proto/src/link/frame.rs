//! A frame: one datagram of a link, a header and the records of one channel.
//!
//! ```text
//! header, 96 bytes, twelve little-endian words
//!          63       56 55       48 47             32 31       24 23     16 15   10 9 8 7  4 3  0
//!          +-----------+-----------+-----------------+-----------+---------+-------+---+----+----+
//!  word 0  | 0         | sack chan |     length      | echo path |  path   | flags |ch.|kind|ver.|
//!          +-----------+-----------+-----------------+-----------+---------+-------+---+----+----+
//!  word 1  | generation 32                           | to 32                                     |
//!  word 2  | token 64                                                                            |
//!  word 3  | packet 64                                                                           |
//!  word 4  | stamp 32                                | seq 32                                    |
//!  word 5  | ack of channel 1, 32                    | ack of channel 0, 32                      |
//!  word 6  | limit of channel 0, 32                  | ack of channel 2, 32                      |
//!  word 7  | limit of channel 2, 32                  | limit of channel 1, 32                    |
//!  word 8  | sack 128, its lower half                                                            |
//!  word 9  |           its upper half                                                            |
//!  word 10 | held 32                                 | echo 32                                   |
//!  word 11 | CRC of the 92 bytes before, 32          | CRC of the payload, 32                    |
//!          +-----------------------------------------+-------------------------------------------+
//!
//! record, 8 bytes and its own, then zeros up to a multiple of 8
//!          63                    32 31             16 15        8 7         0
//!          +-----------------------+-----------------+-----------+-----------+
//!  head    | tag                   |     length      |     0     |   kind    |
//!          +-----------------------+-----------------+-----------+-----------+
//! ```
//!
//! The header has a CRC of its own, so that a receiver can act on it, and decide where the payload
//! belongs, before the payload is checked. The CRC is an argument, because processors and adapters
//! compute it each in their own way.
use crate::command::{COMMAND_BYTES, RESPONSE_BYTES};
use crate::lane::Malformed;
use crate::limits::EAGER_MAX;
use core::array;
use core::ops::RangeInclusive;

/// Bytes of a frame before its payload.
pub const HEADER_BYTES: usize = 96;
/// Longest payload: the most whole words whose bytes the length field can count.
pub const PAYLOAD_MAX: usize = u16::MAX as usize & !7;
/// Bytes of a record before its own.
pub const HEAD_BYTES: usize = 8;
/// Channels of a link, in each direction.
pub const CHANNELS: usize = 3;
/// Paths that a link may use.
pub const PATHS_MAX: u8 = 4;

const VERSION: u64 = 1;
const WORDS: usize = HEADER_BYTES / 8;
/// Where the header's own CRC stands; it covers everything before.
const CRC_AT: usize = HEADER_BYTES - 4;

/// The purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Carries records, or none and only what the header says.
    Data = 1,
    /// Asks for a link.
    Open = 2,
    /// Agrees to one.
    Accept = 3,
    /// Asks the other side where its channels stand, or says so.
    Resync = 4,
    /// There is no such link, or no longer.
    Reset = 5,
    /// Asks for a sign of life on its path.
    Probe = 6,
    /// The sender leaves.
    Close = 7,
    /// A part of a frame that is longer than its path takes.
    Piece = 8,
}

impl Kind {
    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Data),
            2 => Some(Self::Open),
            3 => Some(Self::Accept),
            4 => Some(Self::Resync),
            5 => Some(Self::Reset),
            6 => Some(Self::Probe),
            7 => Some(Self::Close),
            8 => Some(Self::Piece),
            _ => None,
        }
    }
}

/// The needs of a frame's records at the other side. Order is kept within a channel; none is
/// promised between two.
// spec: LINK-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Channel {
    /// Nothing: puts, messages, records of queues.
    Posted = 0,
    /// A response: gets and fetching atomics.
    NonPosted = 1,
    /// Nothing, and somebody waits for them: responses.
    Response = 2,
}

impl Channel {
    /// All channels, in the order of their codes.
    pub const ALL: [Self; CHANNELS] = [Self::Posted, Self::NonPosted, Self::Response];

    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Posted),
            1 => Some(Self::NonPosted),
            2 => Some(Self::Response),
            _ => None,
        }
    }

    /// The channel's place in what a header has for each, and in [`Channel::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

const _: () = {
    let mut index = 0;
    while index < CHANNELS {
        assert!(Channel::ALL[index].index() == index, "each once, in the order of their codes");
        index += 1;
    }
};

bitflags::bitflags! {
    /// Statements of a sender, one bit each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Flags: u8 {
        /// The payload may be put in place before earlier frames of its channel have come.
        const EARLY = 1;
        /// The sender of this frame misses the one that [`Header::ack`] of the channel of
        /// [`Header::sack`] waits for.
        const NACK = 2;
        /// This resync, close or probe answers one of the other side's.
        const ANSWER = 8;
    }
}

/// The bit among the flags that is the header's own: the echo's fields are valid.
const ECHO: u8 = 4;

/// Frames of one channel that arrived out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sack {
    /// Which channel.
    pub channel: Channel,
    /// Bit i: frame `ack + 1 + i` of this channel has arrived.
    pub arrived: u128,
}

/// The newest frame that the sender has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The stamp of that frame.
    pub stamp: u32,
    /// Nanoseconds from that frame's arrival to the sending of this one.
    pub held: u32,
    /// The path on which that frame came.
    pub path: u8,
    /// For how long it may have waited for the sender to look, see [`Looks::late`].
    ///
    /// [`Looks::late`]: super::looks::Looks::late
    pub late: u8,
}

/// The length and the checksum of a payload, as a header has them. It stays the same when the frame
/// is sent again.
// spec: FRAME-10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Bytes of the payload.
    pub len: u16,
    /// CRC of the payload.
    pub crc: u32,
}

impl Digest {
    /// The digest of a payload of at most [`PAYLOAD_MAX`] bytes.
    // spec: FRAME-4
    pub fn of(payload: &[u8], crc: impl Fn(&[u8]) -> u32) -> Self {
        assert!(payload.len() <= PAYLOAD_MAX, "a payload's length fits its field");
        Self { len: payload.len() as u16, crc: crc(payload) }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The purpose of the frame.
    pub kind: Kind,
    /// The channel of its records.
    pub channel: Channel,
    /// The sender's statements, one bit each.
    pub flags: Flags,
    /// The path on which the frame is sent, below [`PATHS_MAX`].
    pub path: u8,
    /// The receiver's own index of the link, which it gave at set-up.
    pub to: u32,
    /// Of the link: tells it from what it was before a restart of either side.
    pub generation: u32,
    /// Of this link and direction; nobody else can guess it.
    pub token: u64,
    /// Number of the transmission on this direction of the link; never repeated.
    pub packet: u64,
    /// Number of the frame on its channel.
    pub seq: u32,
    /// The sender's clock: the low half of its nanoseconds.
    pub stamp: u32,
    /// By channel: the sender of this frame has every frame before this number.
    pub ack: [u32; CHANNELS],
    /// By channel: the receiver of this frame may send frames before this number.
    pub limit: [u32; CHANNELS],
    /// The frames beyond `ack` that the sender has on one channel.
    pub sack: Sack,
    /// The newest frame that the sender received, if there was one.
    pub echo: Option<Echo>,
    /// Length and CRC of the payload.
    pub payload: Digest,
}

impl Header {
    /// A header that says nothing of channels.
    pub(super) const fn bare(kind: Kind, generation: u32, token: u64) -> Self {
        Self {
            kind,
            channel: Channel::Posted,
            flags: Flags::empty(),
            path: 0,
            to: 0,
            generation,
            token,
            packet: 0,
            seq: 0,
            stamp: 0,
            ack: [0; CHANNELS],
            limit: [0; CHANNELS],
            sack: Sack { channel: Channel::Posted, arrived: 0 },
            echo: None,
            payload: Digest { len: 0, crc: 0 },
        }
    }

    /// The bytes that travel.
    // spec: FRAME-2, FRAME-4
    pub fn encode(&self, crc: impl Fn(&[u8]) -> u32) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let (places, _) = bytes.as_chunks_mut();
        for (place, word) in places.iter_mut().zip(self.words()) {
            *place = word.to_le_bytes();
        }
        let sum = crc(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// All words; the header's own CRC is still 0.
    const fn words(&self) -> [u64; WORDS] {
        let ([ack0, ack1, ack2], [limit0, limit1, limit2]) = (self.ack, self.limit);
        let (echo, held) = match self.echo {
            Some(echo) => (echo.stamp, echo.held),
            None => (0, 0),
        };
        [
            self.first_word(),
            pair(self.to, self.generation),
            self.token,
            self.packet,
            pair(self.seq, self.stamp),
            pair(ack0, ack1),
            pair(ack2, limit0),
            pair(limit1, limit2),
            self.sack.arrived as u64,
            (self.sack.arrived >> 64) as u64,
            pair(echo, held),
            pair(self.payload.crc, 0),
        ]
    }

    const fn first_word(&self) -> u64 {
        let (echo_flag, echo_path, late) = match self.echo {
            Some(echo) => (ECHO, echo.path, echo.late),
            None => (0, 0, 0),
        };
        debug_assert!(self.path < PATHS_MAX && echo_path < PATHS_MAX, "a link has so many paths");
        u64::from_le_bytes([
            VERSION as u8 | (self.kind as u8) << 4,
            self.channel as u8 | (self.flags.bits() | echo_flag) << 2,
            self.path,
            echo_path,
            self.payload.len as u8,
            (self.payload.len >> 8) as u8,
            self.sack.channel as u8,
            late,
        ])
    }

    /// Reads what came; the payload may follow in `bytes` and is not looked at. Total.
    // spec: FRAME-3, FRAME-4, FRAME-6
    pub fn parse(bytes: &[u8], crc: impl Fn(&[u8]) -> u32) -> Result<Self, Malformed> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Malformed)?;
        let (places, _) = bytes.as_chunks();
        let words: [u64; WORDS] = array::from_fn(|index| u64::from_le_bytes(places[index]));
        if high(words[WORDS - 1]) != crc(&bytes[..CRC_AT]) {
            return Err(Malformed);
        }
        Self::from_words(&words).ok_or(Malformed)
    }

    const fn from_words(words: &[u64; WORDS]) -> Option<Self> {
        let [first, ends, token, packet, number, acks, both, limits, sack0, sack1, echo, sums] =
            *words;
        let [of_kind, of_channel, path, echo_path, len0, len1, of_sack, late] = first.to_le_bytes();
        let echo = match of_channel >> 2 & ECHO {
            0 => None,
            _ => Some(Echo { stamp: low(echo), held: high(echo), path: echo_path, late }),
        };
        let is_path = path < PATHS_MAX && (echo.is_none() || echo_path < PATHS_MAX);
        if first & 15 != VERSION || !is_path {
            return None;
        }
        let Some(kind) = Kind::from_code(of_kind >> 4) else { return None };
        let Some(channel) = Channel::from_code(of_channel & 3) else { return None };
        let Some(sack_channel) = Channel::from_code(of_sack) else { return None };
        Some(Self {
            kind,
            channel,
            flags: Flags::from_bits_truncate(of_channel >> 2),
            path,
            to: low(ends),
            generation: high(ends),
            token,
            packet,
            seq: low(number),
            stamp: high(number),
            ack: [low(acks), high(acks), low(both)],
            limit: [high(both), low(limits), high(limits)],
            sack: Sack { channel: sack_channel, arrived: sack0 as u128 | (sack1 as u128) << 64 },
            echo,
            payload: Digest { len: u16::from_le_bytes([len0, len1]), crc: low(sums) },
        })
    }

    /// Whether everything that came behind the header is the payload that its sender meant.
    // spec: FRAME-1, FRAME-5
    pub fn check_payload(
        &self,
        payload: &[u8],
        crc: impl Fn(&[u8]) -> u32,
    ) -> Result<(), Malformed> {
        let Digest { len, crc: sum } = self.payload;
        if payload.len() != usize::from(len) || crc(payload) != sum {
            return Err(Malformed);
        }
        Ok(())
    }
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn low(word: u64) -> u32 {
    word as u32
}

const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The kind of a record of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A command, and a put's data; the tag is the command's number.
    Command = 1,
    /// An answer to a command, and a get's data.
    Response = 2,
    /// The number of commands that precede it, and a short message; the tag is the message's.
    Message = 3,
    /// A record of the remote queue that the tag names, or the last part of one.
    Queue = 4,
    /// A word from engine to engine; the tag tells which.
    Control = 5,
    /// A part of a queue's record that is not its last.
    QueuePart = 6,
    /// Nothing: it makes its frame as long as the sender likes its frames.
    Filler = 7,
    /// The next bytes of the ring that the sender's endpoint writes.
    Ring = 8,
}

impl RecordKind {
    /// Reads a code from a peer.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Command),
            2 => Some(Self::Response),
            3 => Some(Self::Message),
            4 => Some(Self::Queue),
            5 => Some(Self::Control),
            6 => Some(Self::QueuePart),
            7 => Some(Self::Filler),
            8 => Some(Self::Ring),
            _ => None,
        }
    }

    /// How many bytes a record of this kind has, its head not counted.
    // spec: FRAME-8
    pub const fn lengths(self) -> RangeInclusive<usize> {
        let most = PAYLOAD_MAX - HEAD_BYTES;
        match self {
            Self::Command => COMMAND_BYTES..=most,
            Self::Response => RESPONSE_BYTES..=most,
            Self::Message => 8 + 1..=8 + EAGER_MAX,
            Self::Queue | Self::QueuePart | Self::Ring => 1..=most,
            Self::Control => 8..=most,
            Self::Filler => 0..=most,
        }
    }
}

/// A record of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its kind.
    pub kind: RecordKind,
    /// Belongs to the kind.
    pub tag: u32,
    /// Its tag.
    pub bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// The first words of the record and the bytes behind them, if it is long enough.
    pub fn split<const N: usize>(&self) -> Option<([u64; N], &'a [u8])> {
        let (words, data) = self.bytes.split_at_checked(8 * N)?;
        let (places, _) = words.as_chunks();
        Some((array::from_fn(|index| u64::from_le_bytes(places[index])), data))
    }

    /// The record at the front of `bytes`, and what comes behind it.
    // spec: FRAME-7, FRAME-8
    fn first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (head, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
        let head = u64::from_le_bytes(*head);
        let kind = RecordKind::from_code(head as u8).ok_or(Malformed)?;
        let len = usize::from((head >> 16) as u16);
        if !kind.lengths().contains(&len) {
            return Err(Malformed);
        }
        let (bytes, rest) = rest.split_at_checked(padded(len)).ok_or(Malformed)?;
        Ok((Self { kind, tag: high(head), bytes: &bytes[..len] }, rest))
    }
}

/// The bytes that `len` bytes take with the zeros behind them.
const fn padded(len: usize) -> usize {
    len.next_multiple_of(8)
}

/// The payload of a data frame: records that were all found good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Reads all records, so that the first one has no effect if the last is malformed. Total.
    // spec: FRAME-9
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = Record::first(rest)?.1;
        }
        Ok(Self { bytes })
    }

    /// The records, in order.
    pub const fn records(&self) -> Records<'a> {
        Records { rest: self.bytes }
    }
}

/// The records of a payload.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    /// Whole records.
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let first = Record::first(self.rest);
        debug_assert!(self.rest.is_empty() || first.is_ok(), "all records were found good");
        let (record, rest) = first.ok()?;
        self.rest = rest;
        Some(record)
    }
}

/// The record does not fit the payload any more; it belongs in the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Lays records one behind the other into a buffer of the caller's.
#[derive(Debug)]
pub struct Packer<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Packer<'a> {
    /// An empty payload, which may take the whole buffer.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Goes on behind the first `len` bytes, which are whole records.
    pub fn behind(buffer: &'a mut [u8], len: usize) -> Self {
        assert!(len <= buffer.len() && len.is_multiple_of(8), "whole records end at a word");
        Self { buffer, len }
    }

    /// Bytes of the longest record that still fits, its head not counted; `None` if not even the
    /// head does.
    pub fn room(&self) -> Option<usize> {
        let end = self.buffer.len().min(PAYLOAD_MAX) & !7;
        (end - self.len).checked_sub(HEAD_BYTES)
    }

    /// Appends a record of some words and `data` behind them, or nothing.
    pub fn push<const N: usize>(
        &mut self,
        head: (RecordKind, u32),
        words: [u64; N],
        data: &[u8],
    ) -> Result<(), Full> {
        self.reserve(head, words, data.len())?.copy_from_slice(data);
        Ok(())
    }

    /// Appends a record whose last `data_len` bytes the caller still has to write, where they are
    /// to be read from memory that others may write. They are not cleared.
    // spec: FRAME-7
    pub fn reserve<const N: usize>(
        &mut self,
        (kind, tag): (RecordKind, u32),
        words: [u64; N],
        data_len: usize,
    ) -> Result<&mut [u8], Full> {
        let len = 8 * N + data_len;
        debug_assert!(kind.lengths().contains(&len), "a record has a length of its kind");
        if self.room().is_none_or(|room| len > room) {
            return Err(Full);
        }
        let end = self.len + HEAD_BYTES + padded(len);
        debug_assert!(end <= self.buffer.len().min(PAYLOAD_MAX), "records fit their payload");
        let head = u64::from(kind as u8) | (len as u64) << 16 | u64::from(tag) << 32;
        let (front, bytes) = self.buffer[self.len..].split_at_mut(HEAD_BYTES + 8 * N);
        let (places, _) = front.as_chunks_mut();
        for (place, word) in places.iter_mut().zip([head].into_iter().chain(words)) {
            *place = word.to_le_bytes();
        }
        self.len += HEAD_BYTES + padded(len);
        debug_assert!(self.len.is_multiple_of(8), "records end at a word");
        let (data, padding) = bytes[..padded(data_len)].split_at_mut(data_len);
        // What the buffer held before is no business of the peer's.
        padding.fill(0);
        Ok(data)
    }

    /// The payload so far.
    pub fn payload(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

//! The formats of messages between endpoints: the records of a message lane between two of them.
//!
//! ```text
//! tag of the record   bit 0..3  what it is   bit 4  tagged   bit 5  with data   bit 6  answered
//!
//!   short       tag    data   bytes of the message
//!   short, answered
//!               tag    data   id     bytes
//!   long        tag    data   id     length   place       the message lies in the ring
//!   RTS         tag    data   id     length   address     the message waits for its receive
//!   CTS         id     peer's id     length               so many bytes of it are wanted
//!   fragment    peer's id     length   place              in the ring
//!   frag. here  peer's id     bytes
//!   FIN         id                                        the message is where it belongs
//!   refused     id     fault
//!   ahead       longest                                   longer messages begin with an RTS
//! ```
//!
//! FIN, the fragments and refused answer RMA, too: see [`crate::rma`]. An *id* is the sender's own
//! name of what is under way, which the other side gives back.
use crate::fault::Fault;
use crate::lane::Malformed;
use crate::limits::EAGER_MAX;

/// Words of the longest record head.
pub const ENVELOPE_WORDS: usize = 5;
/// Words of a short message's head.
pub const SHORT_WORDS: usize = 2;

/// Bytes of the longest message in the ring; longer ones wait for their receive.
pub const LONG_MAX: usize = 64 << 10;
/// Bytes of the longest message in the ring to an endpoint of the same host. There, asking takes no
/// time, and a waiting message can be copied once.
pub const LONG_MAX_HERE: usize = 16 << 10;

/// Messages of up to this number of bytes are sent before their receive is known, at any time. So
/// they may be injected: the program can reuse the memory at once.
pub const AHEAD_MIN: usize = 4 << 10;

/// The sender's description of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The tag by which receives are chosen; a message without one goes to the plain space.
    pub tag: Option<u64>,
    /// Immediate data for the receiver.
    pub data: Option<u64>,
}

/// The contents of a record. Lengths are claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A message, whose bytes follow.
    Short {
        /// The envelope of the message.
        envelope: Envelope,
        /// The name of the operation that waits for the end.
        answer: Option<u64>,
    },
    /// A message in the ring.
    Long {
        /// The envelope of the message.
        envelope: Envelope,
        /// The name of the operation that waits for the end.
        answer: Option<u64>,
        /// Bytes.
        len: u64,
        /// Its position in the ring.
        place: u64,
    },
    /// A message that waits for its receive.
    Rts {
        /// The envelope of the message.
        envelope: Envelope,
        /// The sender's name of it.
        id: u64,
        /// Whether its sender waits for its end.
        answered: bool,
        /// Bytes.
        len: u64,
        /// Its address in the sender's memory; 0 if it is not to be read there.
        address: u64,
    },
    /// An asked message is wanted.
    Cts {
        /// Its sender's name of it.
        id: u64,
        /// Its receiver's.
        to: u64,
        /// Its number of bytes.
        len: u64,
    },
    /// The next part of a wanted message, in the ring.
    Fragment {
        /// Its receiver's name of it.
        to: u64,
        /// Bytes.
        len: u64,
        /// Its position in the ring.
        place: u64,
    },
    /// The next part of a wanted message, whose bytes follow.
    FragmentHere {
        /// Its receiver's name of it.
        to: u64,
    },
    /// A message is where it belongs, or what was to be done has been done.
    Fin {
        /// Its sender's name of it.
        id: u64,
    },
    /// The operation was not done, or only in part.
    Refused {
        /// Its initiator's name of it.
        id: u64,
        /// Why: its code.
        fault: Fault,
    },
    /// Which messages may go before a receive is known to want them.
    Ahead {
        /// Bytes of the longest.
        longest: u64,
    },
}

/// This name refuses all messages that wait for a receive, and all later ones that would: memory is
/// used up.
pub const ALL: u64 = u64::MAX;

const SHORT: u32 = 1;
const LONG: u32 = 2;
const ASK: u32 = 3;
const GO: u32 = 4;
const PART: u32 = 5;
const PART_HERE: u32 = 6;
const DONE: u32 = 7;
const REFUSED: u32 = 8;
// 9 to 13 are RMA operations.
const AHEAD: u32 = 14;

const CODE_MASK: u32 = 0xf;
const TAGGED: u32 = 1 << 4;
const WITH_DATA: u32 = 1 << 5;
const ANSWERED: u32 = 1 << 6;

impl Envelope {
    const fn flags(&self) -> u32 {
        let tagged = if self.tag.is_some() { TAGGED } else { 0 };
        tagged | if self.data.is_some() { WITH_DATA } else { 0 }
    }

    #[inline(always)]
    const fn words(&self) -> [u64; 2] {
        [or_zero(self.tag), or_zero(self.data)]
    }

    #[inline(always)]
    const fn read(flags: u32, [tag, data, ..]: [u64; ENVELOPE_WORDS]) -> Self {
        Self {
            tag: if flags & TAGGED != 0 { Some(tag) } else { None },
            data: if flags & WITH_DATA != 0 { Some(data) } else { None },
        }
    }

    /// The contents of a short message's record that asks for no answer; `None` for any other
    /// record.
    #[inline(always)]
    pub const fn of_short(tag: u32, [match_tag, data]: [u64; SHORT_WORDS]) -> Option<Self> {
        if !Self::is_of_short(tag) {
            return None;
        }
        Some(Self::read(tag, [match_tag, data, 0, 0, 0]))
    }

    /// Whether a record of this tag is a short message that nobody waits for.
    #[inline(always)]
    pub const fn is_of_short(tag: u32) -> bool {
        tag & !(TAGGED | WITH_DATA) == SHORT
    }

    /// Tag and head of the record of a short message that nobody waits for.
    #[inline(always)]
    pub const fn short(&self) -> (u32, [u64; SHORT_WORDS]) {
        debug_assert!(Self::is_of_short(SHORT | self.flags()), "nobody waits for a short one");
        (SHORT | self.flags(), self.words())
    }
}

impl Record {
    /// Tag of the lane's record, its head, and how many words of that count.
    // spec: ENV-1
    #[inline]
    pub const fn encode(&self) -> (u32, [u64; ENVELOPE_WORDS], usize) {
        let (tag, head, words) = self.lay_out();
        debug_assert!(
            !matches!(Self::parse(tag, head, words * 8), Ok((_, all)) if all != words),
            "the other side reads as many words as are said"
        );
        (tag, head, words)
    }

    #[inline(always)]
    const fn lay_out(&self) -> (u32, [u64; ENVELOPE_WORDS], usize) {
        match self {
            Self::Short { envelope, answer } => {
                let [tag, data] = envelope.words();
                let words = if answer.is_some() { 3 } else { SHORT_WORDS };
                let head = [tag, data, or_zero(*answer), 0, 0];
                (SHORT | envelope.flags() | answered(answer.is_some()), head, words)
            }
            Self::Long { envelope, answer, len, place } => {
                let [tag, data] = envelope.words();
                let head = [tag, data, or_zero(*answer), *len, *place];
                (LONG | envelope.flags() | answered(answer.is_some()), head, 5)
            }
            Self::Rts { envelope, id, answered: is_answered, len, address } => {
                let [tag, data] = envelope.words();
                let head = [tag, data, *id, *len, *address];
                (ASK | envelope.flags() | answered(*is_answered), head, 5)
            }
            Self::Cts { id, to, len } => (GO, [*id, *to, *len, 0, 0], 3),
            Self::Fragment { to, len, place } => (PART, [*to, *len, *place, 0, 0], 3),
            Self::FragmentHere { to } => (PART_HERE, [*to, 0, 0, 0, 0], 1),
            Self::Fin { id } => (DONE, [*id, 0, 0, 0, 0], 1),
            Self::Refused { id, fault } => (REFUSED, [*id, fault.code() as u64, 0, 0, 0], 2),
            Self::Ahead { longest } => (AHEAD, [*longest, 0, 0, 0, 0], 1),
        }
    }

    /// Reads a record of `len` bytes: its contents, and the number of words of its head. In short
    /// messages and parts, up to [`EAGER_MAX`] bytes of the message follow; other records have no
    /// more bytes.
    ///
    /// # Errors
    /// [`Malformed`] if no sender writes this record.
    // spec: ENV-1, ENV-2
    #[inline]
    pub const fn parse(
        tag: u32,
        head: [u64; ENVELOPE_WORDS],
        len: usize,
    ) -> Result<(Self, usize), Malformed> {
        let is_answered = tag & ANSWERED != 0;
        let envelope = Envelope::read(tag, head);
        let [a, b, c, d, e] = head;
        let answer = if is_answered { Some(c) } else { None };
        let known = match tag & CODE_MASK {
            SHORT | LONG | ASK => TAGGED | WITH_DATA | ANSWERED | CODE_MASK,
            _ => CODE_MASK,
        };
        let (record, words, has_bytes) = match tag & CODE_MASK {
            SHORT if is_answered => (Self::Short { envelope, answer }, 3, true),
            SHORT => (Self::Short { envelope, answer }, SHORT_WORDS, true),
            LONG if d <= LONG_MAX as u64 => {
                (Self::Long { envelope, answer, len: d, place: e }, 5, false)
            }
            ASK => {
                let answered = is_answered;
                (Self::Rts { envelope, id: c, answered, len: d, address: e }, 5, false)
            }
            GO => (Self::Cts { id: a, to: b, len: c }, 3, false),
            PART => (Self::Fragment { to: a, len: b, place: c }, 3, false),
            PART_HERE => (Self::FragmentHere { to: a }, 1, true),
            DONE => (Self::Fin { id: a }, 1, false),
            AHEAD => (Self::Ahead { longest: a }, 1, false),
            REFUSED => match refusal(a, b) {
                Some(fault) => (Self::Refused { id: a, fault }, 2, false),
                None => return Err(Malformed),
            },
            _ => return Err(Malformed),
        };
        let bytes_max = if has_bytes { EAGER_MAX } else { 0 };
        // Fewer bytes than the head has wrap to more than there can be.
        let fits = len.wrapping_sub(words * 8) <= bytes_max;
        if fits && tag & !known == 0 { Ok((record, words)) } else { Err(Malformed) }
    }
}

/// The faults that a target finds, and what a receiver has no memory for.
const fn refusal(id: u64, code: u64) -> Option<Fault> {
    match code {
        1 | 3 | 4 if id != ALL => Some(Fault::from_code(code as u8)),
        16 if id == ALL => Some(Fault::NoMemory),
        _ => None,
    }
}

const fn answered(is: bool) -> u32 {
    if is { ANSWERED } else { 0 }
}

const fn or_zero(word: Option<u64>) -> u64 {
    match word {
        Some(word) => word,
        None => 0,
    }
}

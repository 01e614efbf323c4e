//! The messages of ports about streams, in bytes.
use super::{Entry, EntryAnswer, FailureReason, StreamEnd, StreamFailure, StreamName, Way};
use crate::lane::Malformed;
use crate::units::PeerId;
use arrayvec::ArrayVec;

/// Bytes of the longest message.
pub const MESSAGE_BYTES: usize = 64;
/// A message's bytes.
pub type Bytes = ArrayVec<u8, MESSAGE_BYTES>;

/// A message. `number` is that of a stream between the two ports.
// spec: PIPE-18
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A stream begins.
    Open {
        /// Its number.
        number: u32,
        /// The stage of its items.
        way: Way,
    },
    /// This number of units was returned.
    Credit {
        /// The stream's number.
        number: u32,
        /// Number of units.
        units: u8,
    },
    /// Nothing follows.
    End {
        /// The stream's number.
        number: u32,
        /// Why.
        end: StreamEnd,
    },
    /// The stream is over: nothing more is taken.
    Stop {
        /// The stream's number.
        number: u32,
        /// The kind of end: never cut.
        end: StreamEnd,
    },
    /// An entry is to be set.
    Set {
        /// The asker's number of this.
        request: u32,
        /// Which stream's.
        name: StreamName,
        /// The entry.
        entry: Entry,
    },
    /// An entry is to be cleared.
    Clear {
        /// The asker's number of this.
        request: u32,
        /// Which stream's.
        name: StreamName,
        /// Only if no stream uses it.
        if_unused: bool,
    },
    /// The result of a request.
    Answer {
        /// The asker's number of it.
        request: u32,
        /// That.
        answer: EntryAnswer,
    },
}

const OPEN: u32 = 1;
const CREDIT: u32 = 2;
const END: u32 = 3;
const STOP: u32 = 4;
const SET: u32 = 5;
const CLEAR: u32 = 6;
const ANSWER: u32 = 7;

impl Message {
    /// Its bytes.
    // spec: PIPE-18
    pub fn encode(&self) -> Bytes {
        let mut bytes = Bytes::new();
        let mut words = |words: &[u32]| {
            for word in words {
                bytes.try_extend_from_slice(&word.to_le_bytes()).expect("a message is short");
            }
        };
        let arguments = match self {
            Self::Open { number, way } => {
                words(&[OPEN, *number, way.stage, way.goes_on.into()]);
                &way.arguments[..]
            }
            Self::Credit { number, units } => {
                words(&[CREDIT, *number, (*units).into()]);
                &[]
            }
            Self::End { number, end } => {
                let (why, at) = end.to_words();
                words(&[END, *number, why, at]);
                &[]
            }
            Self::Stop { number, end } => {
                let (why, at) = end.to_words();
                words(&[STOP, *number, why, at]);
                &[]
            }
            Self::Set { request, name, entry } => {
                let (peer, to) = (name.peer.0.into(), entry.to.peer.0.into());
                words(&[SET, *request, peer, name.number, to, entry.to.number]);
                words(&[entry.way.stage, flags(entry.way.goes_on, entry.lasts)]);
                &entry.way.arguments[..]
            }
            Self::Clear { request, name, if_unused } => {
                words(&[CLEAR, *request, name.peer.0.into(), name.number, (*if_unused).into()]);
                &[]
            }
            Self::Answer { request, answer } => {
                words(&[ANSWER, *request, *answer as u32]);
                &[]
            }
        };
        for argument in arguments {
            bytes.try_extend_from_slice(&argument.to_le_bytes()).expect("a message is short");
        }
        let is_said = !matches!(self, Self::Stop { end: StreamEnd::Cut, .. });
        debug_assert!(!is_said || Self::parse(&bytes) == Ok(*self), "what is said can be read");
        bytes
    }

    /// Reads what a peer says: total.
    // spec: PIPE-18
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { rest: bytes };
        let message = reader.message()?;
        if reader.rest.is_empty() { Ok(message) } else { Err(Malformed) }
    }
}

const fn flags(goes_on: bool, lasts: bool) -> u32 {
    goes_on as u32 | (lasts as u32) << 1
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn message(&mut self) -> Result<Message, Malformed> {
        let (kind, number) = (self.word()?, self.word()?);
        match kind {
            OPEN => {
                let (stage, flags) = (self.word()?, self.flags(1)?);
                let way = Way { stage, arguments: self.arguments()?, goes_on: flags == 1 };
                Ok(Message::Open { number, way })
            }
            CREDIT => {
                let units = u8::try_from(self.word()?).map_err(|_| Malformed)?;
                Ok(Message::Credit { number, units })
            }
            END => Ok(Message::End { number, end: self.end()? }),
            STOP => match self.end()? {
                StreamEnd::Cut => Err(Malformed),
                end => Ok(Message::Stop { number, end }),
            },
            SET => {
                let (name, to, stage) = (self.name()?, self.name()?, self.word()?);
                let flags = self.flags(3)?;
                let (goes_on, lasts) = (flags & 1 != 0, flags & 2 != 0);
                let way = Way { stage, arguments: self.arguments()?, goes_on };
                Ok(Message::Set { request: number, name, entry: Entry { to, way, lasts } })
            }
            CLEAR => {
                let (name, if_unused) = (self.name()?, self.flags(1)? == 1);
                Ok(Message::Clear { request: number, name, if_unused })
            }
            ANSWER => {
                let answer = EntryAnswer::from_word(self.word()?).ok_or(Malformed)?;
                Ok(Message::Answer { request: number, answer })
            }
            _ => Err(Malformed),
        }
    }

    fn word(&mut self) -> Result<u32, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*word))
    }

    fn flags(&mut self, all: u32) -> Result<u32, Malformed> {
        let flags = self.word()?;
        if flags & !all == 0 { Ok(flags) } else { Err(Malformed) }
    }

    fn peer(&mut self) -> Result<PeerId, Malformed> {
        u16::try_from(self.word()?).map(PeerId).map_err(|_| Malformed)
    }

    fn name(&mut self) -> Result<StreamName, Malformed> {
        Ok(StreamName { peer: self.peer()?, number: self.word()? })
    }

    fn arguments(&mut self) -> Result<[u64; 4], Malformed> {
        let mut arguments = [0; 4];
        for argument in &mut arguments {
            let (word, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
            self.rest = rest;
            *argument = u64::from_le_bytes(*word);
        }
        Ok(arguments)
    }

    fn end(&mut self) -> Result<StreamEnd, Malformed> {
        let (why, at) = (self.word()?, self.peer()?);
        match (why, at.0) {
            (0, 0) => Ok(StreamEnd::Closed),
            (1, 0) => Ok(StreamEnd::Cut),
            _ => {
                let why = FailureReason::from_word(why).ok_or(Malformed)?;
                Ok(StreamEnd::Failed(StreamFailure { why, at }))
            }
        }
    }
}

impl StreamEnd {
    const fn to_words(self) -> (u32, u32) {
        match self {
            Self::Closed => (0, 0),
            Self::Cut => (1, 0),
            Self::Failed(StreamFailure { why, at }) => (why as u32, at.0 as u32),
        }
    }
}

//! A sender's end of the long messages to one peer.
use super::{PART, is_landing};
use crate::active::record::{Pulled, Record, is_handler};
use crate::lane::Malformed;
use crate::ring::Writer;
use crate::ring::asking::Asking;

/// Bytes of a piece at most. Of a message of two pieces both ends copy one at the same time.
const PIECE_MAX: usize = 1 << 15;

/// The way of records and pieces to the receiver.
pub trait Way {
    /// The reason why something is not sent now, or never will be.
    type Error;
    /// Says a record.
    ///
    /// # Errors
    /// The record is not sent.
    fn say(&mut self, record: &Record<'_>) -> Result<(), Self::Error>;
    /// Opens the landing of `bytes` bytes, which is handed over outside of the records.
    ///
    /// # Errors
    /// The landing is not there yet, or never will be.
    fn open(&mut self, bytes: u64) -> Result<(), Self::Error>;
    /// Puts bytes into the landing, from this one on.
    ///
    /// # Errors
    /// They are not put.
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Bytes of the longest put that waits for nobody.
    fn longest_put(&mut self) -> usize;
    /// The address at which the receiver may read a message, which stays there until it has
    /// answered. Returns `None` if the receiver is not to be asked.
    fn offers(&self, message: &Message<'_>) -> Option<u64>;
}

/// A long message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The handler's id, or one that is a feature's.
    pub id: u32,
    /// The arguments, in bytes.
    pub arguments: &'a [u8],
    /// The payload: a byte at least.
    pub payload: &'a [u8],
}

/// The receiver's landing for us.
#[derive(Clone, Debug, Default)]
enum Landing {
    #[default]
    Unknown,
    /// A landing was asked for.
    Wanted,
    /// The landing is about to be handed over.
    Promised(Writer),
    Open(Writer),
}

/// The state of a message that the receiver is to read in the sender's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pull {
    /// There is no such message.
    #[default]
    Idle,
    /// The receiver was told the address, and may be reading.
    Asked,
    /// The receiver has read it.
    Read,
    /// The receiver wants it by the landing.
    Wanted,
    /// The receiver cannot read in the sender's memory: all messages go by the landing.
    Refused,
}

/// A sender's end.
#[derive(Clone, Debug, Default)]
pub struct LongSender {
    landing: Landing,
    pull: Pull,
    asking: Asking,
    /// Somebody is in the middle of a message.
    is_held: bool,
}

impl LongSender {
    /// Whether all else waits until a message is sent whole.
    #[inline(always)]
    pub const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Has all else wait, or no longer.
    pub const fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Whether the receiver may be reading a message in the sender's memory.
    pub const fn is_being_read(&self) -> bool {
        matches!(self.pull, Pull::Asked)
    }

    /// Sends as much of the message as there is room for, and adds it to `sent`. Returns true once
    /// all of it is sent, and false if the rest waits for a record of the receiver.
    ///
    /// # Errors
    /// Those of the way. Bytes sent before the error count as sent.
    // spec: AM-12, AM-13, INJ-7
    pub fn advance<W: Way>(
        &mut self,
        way: &mut W,
        message: Message<'_>,
        sent: &mut usize,
    ) -> Result<bool, W::Error> {
        let Message { id, arguments, payload } = message;
        debug_assert!(*sent <= payload.len() && !payload.is_empty(), "something is to be sent");
        match self.pull {
            Pull::Asked => return Ok(false),
            Pull::Read => {
                debug_assert!(*sent == 0, "what is read goes by no landing");
                (self.pull, *sent) = (Pull::Idle, payload.len());
                return Ok(true);
            }
            Pull::Idle | Pull::Wanted | Pull::Refused => {}
        }
        let may_ask = self.pull == Pull::Idle && *sent == 0 && is_handler(id);
        let offer = if may_ask { way.offers(&message) } else { None };
        if let Some(address) = offer.filter(|_| !self.asking.is_spared()) {
            let total = payload.len() as u64;
            way.say(&Record::Pull { id, total, address, arguments })?;
            self.pull = Pull::Asked;
            return Ok(false);
        }
        if !self.find_landing(way)? {
            return Ok(false);
        }
        let total = payload.len() as u64;
        let longest = way.longest_put();
        while *sent < payload.len() {
            let begins = *sent == 0;
            let record = |piece| match begins {
                true => Record::Long { id, total, piece, arguments },
                false => Record::Piece(piece),
            };
            let Some(len) = self.put(way, longest, &payload[*sent..], record)? else { break };
            *sent += len;
            if begins {
                offer.into_iter().for_each(|_| self.asking.on_gone());
                // The next one may be read again.
                self.pull = if self.pull == Pull::Wanted { Pull::Idle } else { self.pull };
            }
        }
        debug_assert!(*sent <= payload.len(), "no more is sent than there is");
        Ok(*sent == payload.len())
    }

    /// Puts as many of these bytes as a piece may have, says so by a record, and returns their
    /// number. Returns `None` while there is no landing, or no room for a piece.
    ///
    /// # Errors
    /// The way's: then no piece was put.
    // spec: AM-12, AM-13
    pub fn put<'r, W: Way>(
        &mut self,
        way: &mut W,
        longest: usize,
        bytes: &[u8],
        record: impl FnOnce(u64) -> Record<'r>,
    ) -> Result<Option<usize>, W::Error> {
        let Landing::Open(ring) = &mut self.landing else { return Ok(None) };
        let len = bytes.len().min(longest).min(PIECE_MAX).min((ring.bytes() / PART) as usize);
        debug_assert!(len > 0, "a piece has bytes");
        // find(), not next(): a piece that was found and not put is looked for again, and may be
        // shorter then.
        let Some(at) = ring.find(len, |_| false) else { return Ok(None) };
        let offset = ring.place(at);
        debug_assert!(offset + len as u64 <= ring.bytes(), "a piece lies in one");
        way.put(offset, &bytes[..len])?;
        way.say(&record(len as u64))?;
        ring.wrote(at, len);
        Ok(Some(len))
    }

    /// Whether the receiver's landing is there; it is asked for, and opened, if not.
    ///
    /// # Errors
    /// The way's.
    // spec: AM-12
    pub fn find_landing<W: Way>(&mut self, way: &mut W) -> Result<bool, W::Error> {
        match &self.landing {
            Landing::Open(_) => Ok(true),
            Landing::Wanted => Ok(false),
            Landing::Unknown => {
                way.say(&Record::Want)?;
                self.landing = Landing::Wanted;
                Ok(false)
            }
            Landing::Promised(ring) => {
                way.open(ring.bytes())?;
                self.landing = Landing::Open(ring.clone());
                Ok(true)
            }
        }
    }

    /// The receiver is about to hand a landing over.
    ///
    /// # Errors
    /// [`Malformed`] if no landing was asked for, or none may have this size.
    // spec: AM-12, AM-15
    pub fn on_landing(&mut self, bytes: u64) -> Result<(), Malformed> {
        match self.landing {
            Landing::Wanted if is_landing(bytes) => {
                // The receiver says what it has of the budget for rings.
                self.landing = Landing::Promised(Writer::new(bytes, bytes));
                Ok(())
            }
            _ => Err(Malformed),
        }
    }

    /// The receiver reports the bytes that it has taken.
    ///
    /// # Errors
    /// [`Malformed`] where that was not put.
    // spec: AM-13, AM-15
    pub const fn on_room(&mut self, taken: u64) -> Result<(), Malformed> {
        match &mut self.landing {
            Landing::Open(ring) => ring.on_taken(taken),
            _ => Err(Malformed),
        }
    }

    /// The receiver answers the pull request.
    ///
    /// # Errors
    /// [`Malformed`] where it was not asked.
    // spec: INJ-7, AM-15
    pub const fn on_pulled(&mut self, pulled: Pulled) -> Result<(), Malformed> {
        if !self.is_being_read() {
            return Err(Malformed);
        }
        self.asking.on_answer(matches!(pulled, Pulled::NotNow));
        self.pull = match pulled {
            Pulled::Whole => Pull::Read,
            Pulled::NotNow => Pull::Wanted,
            Pulled::Never => Pull::Refused,
        };
        Ok(())
    }
}

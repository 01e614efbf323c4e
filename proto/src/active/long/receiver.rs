//! A receiver's end of the long messages of one peer.
use super::{PART, Piece, is_landing};
use crate::active::record::{DropCause, Pulled};
use crate::lane::Malformed;
use crate::ring::Reader;

/// Our landing for the sender.
#[derive(Clone, Debug)]
struct Landing {
    ring: Reader,
    /// Bytes taken, as last reported to the sender.
    told: u64,
}

/// A receiver's end.
#[derive(Clone, Debug, Default)]
pub struct LongReceiver {
    landing: Option<Landing>,
    /// The sender waits for it.
    is_wanted: bool,
    /// The message that is coming, or came last: its handler, and the reason why it is dropped.
    id: u32,
    dropped: Option<DropCause>,
    /// Bytes that it still lacks.
    left: u64,
    /// The answer to the last pull request, until it is sent.
    pulled: Option<Pulled>,
}

/// A piece that was taken, of the message that is coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its place in the landing.
    pub piece: Piece,
    /// The message is whole.
    pub is_last: bool,
}

/// The reason to drop a message to a handler that takes `takes` arguments; `takes` is `None` if
/// there is no handler of this name.
// spec: AM-5, AM-7
pub fn cause_to_drop(
    takes: Option<u8>,
    arguments: &[u8],
    (total, longest): (u64, u64),
) -> Option<DropCause> {
    match takes {
        None => Some(DropCause::Unknown),
        Some(takes) if 8 * usize::from(takes) != arguments.len() || total > longest => {
            Some(DropCause::Malformed)
        }
        Some(_) => None,
    }
}

impl LongReceiver {
    /// Invariants that hold between two steps, for all input of the sender.
    fn check(&self) {
        debug_assert!(self.left == 0 || self.landing.is_some(), "what comes goes by the landing");
        let landing = self.landing.as_ref();
        debug_assert!(
            landing.is_none_or(|landing| landing.told <= landing.ring.taken()),
            "what is told was taken"
        );
    }

    /// The sender wants a landing.
    ///
    /// # Errors
    /// [`Malformed`] where it has one, or has asked already.
    // spec: AM-12, AM-15
    pub const fn on_want(&mut self) -> Result<(), Malformed> {
        if self.landing.is_some() || self.is_wanted {
            return Err(Malformed);
        }
        self.is_wanted = true;
        Ok(())
    }

    /// Whether the sender is to be told of a landing.
    pub const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Makes a landing of `bytes` bytes.
    ///
    /// # Panics
    /// If no landing may have this size.
    // spec: AM-12
    pub fn make(&mut self, bytes: u64) {
        assert!(is_landing(bytes), "a power of two within the limits");
        debug_assert!(self.is_wanted && self.landing.is_none(), "one, if it is wanted");
        self.landing = Some(Landing { ring: Reader::new(bytes), told: 0 });
    }

    /// The sender was told of the landing.
    pub const fn gave(&mut self) {
        debug_assert!(self.landing.is_some(), "what is given was made");
        self.is_wanted = false;
    }

    /// A message of `total` bytes begins.
    ///
    /// # Errors
    /// [`Malformed`] where another one is not whole, this one has no bytes, or there is no landing.
    // spec: AM-15
    pub fn begin(
        &mut self,
        id: u32,
        total: u64,
        dropped: Option<DropCause>,
    ) -> Result<(), Malformed> {
        if self.landing.is_none() || self.left > 0 || total == 0 {
            return Err(Malformed);
        }
        (self.id, self.dropped, self.left) = (id, dropped, total);
        self.check();
        Ok(())
    }

    /// A piece has come, and is taken at once.
    ///
    /// # Errors
    /// [`Malformed`] where there can be no such piece.
    // spec: AM-12, AM-15
    pub fn take(&mut self, len: u64) -> Result<Taken, Malformed> {
        let Landing { ring, .. } = self.landing.as_mut().ok_or(Malformed)?;
        if len == 0 || len > ring.bytes() / PART || len > self.left {
            return Err(Malformed);
        }
        let at = ring.next(len as usize);
        ring.check(at, len as usize)?;
        let piece = Piece { offset: ring.place(at), len };
        ring.take(at, len as usize);
        self.left -= len;
        self.check();
        Ok(Taken { piece, is_last: self.left == 0 })
    }

    /// The handler of the message that is coming, or came last, and the reason why it is dropped,
    /// if it is.
    pub const fn message(&self) -> (u32, Option<DropCause>) {
        (self.id, self.dropped)
    }

    /// Bytes taken in all, if they are to be reported to the sender now.
    // spec: AM-13
    pub fn room_due(&self) -> Option<u64> {
        let Landing { ring, told } = self.landing.as_ref()?;
        (ring.taken() - told >= ring.bytes() / PART).then(|| ring.taken())
    }

    /// The sender was told of the bytes taken.
    pub fn told(&mut self, taken: u64) {
        if let Some(landing) = &mut self.landing {
            debug_assert!(landing.told <= taken, "counts can only grow");
            landing.told = taken;
        }
        self.check();
    }

    /// The sender asks to have a message of `total` bytes read from its memory.
    ///
    /// # Errors
    /// [`Malformed`] where another one is not whole, or was not answered, or this one has no bytes.
    // spec: INJ-7, AM-15
    pub const fn on_pull(
        &mut self,
        id: u32,
        total: u64,
        dropped: Option<DropCause>,
    ) -> Result<(), Malformed> {
        if total == 0 || self.left > 0 || self.pulled.is_some() {
            return Err(Malformed);
        }
        (self.id, self.dropped) = (id, dropped);
        Ok(())
    }

    /// Sets the answer to the pull request.
    pub const fn answer(&mut self, pulled: Pulled) {
        debug_assert!(self.pulled.is_none() && self.left == 0, "each is answered once");
        self.pulled = Some(pulled);
    }

    /// The answer that is to be sent, if there is one.
    pub const fn pulled_due(&self) -> Option<Pulled> {
        self.pulled
    }

    /// The sender was told the answer.
    pub const fn told_pulled(&mut self) {
        debug_assert!(self.pulled.is_some(), "something was due");
        self.pulled = None;
    }
}

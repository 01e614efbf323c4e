//! The answers of an acceptor: to an open that gets no accept, or to a frame that belongs to
//! nothing.
//!
//! ```text
//!  32 bytes, four little-endian words
//!  word 0  code: of the refusal, or 2^32: the open is to come again
//!  word 1  detail of the refusal, or the cookie
//!  word 2  proof, 128 bits, that the words come from a holder of the key; or 0
//! ```
use super::frame::{Digest, Header, Kind};
use crate::lane::Malformed;
use crate::refusal::Refusal;

/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 32;
/// Stands in place of a refusal's code.
const AGAIN: u64 = 1 << 32;

/// The answer of an acceptor in place of an accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No, and why.
    Refused(Refusal),
    /// Come again with this cookie.
    Again(u64),
}

impl Answer {
    /// The two words that a proof is of.
    // spec: OPEN-23
    pub const fn words(self) -> [u64; 2] {
        match self {
            Self::Refused(refusal) => {
                debug_assert!(refusal.to_words()[0] < AGAIN, "no refusal says to come again");
                refusal.to_words()
            }
            Self::Again(cookie) => [AGAIN, cookie],
        }
    }

    /// The bytes that travel.
    // spec: OPEN-23
    pub fn encode(self, proof: [u64; 2]) -> [u8; ANSWER_BYTES] {
        let [code, detail] = self.words();
        let mut bytes = [0; ANSWER_BYTES];
        let (places, _) = bytes.as_chunks_mut();
        for (place, word) in places.iter_mut().zip([code, detail, proof[0], proof[1]]) {
            *place = u64::to_le_bytes(word);
        }
        bytes
    }

    /// Reads what came, with its proof. Total. No bytes are a refusal without a reason.
    ///
    /// # Errors
    /// [`Malformed`] where it has another length.
    // spec: OPEN-23
    pub fn parse(bytes: &[u8]) -> Result<(Self, [u64; 2]), Malformed> {
        if bytes.is_empty() {
            return Ok((Self::Refused(Refusal::Unknown), [0; 2]));
        }
        let bytes: &[u8; ANSWER_BYTES] = bytes.try_into().map_err(|_| Malformed)?;
        let (places, _) = bytes.as_chunks();
        let [code, detail, first, second] =
            core::array::from_fn(|index| u64::from_le_bytes(places[index]));
        let answer = match code {
            AGAIN => Self::Again(detail),
            _ => Self::Refused(Refusal::from_words([code, detail])),
        };
        Ok((answer, [first, second]))
    }
}

/// The header of an answer to an open: a reset that is no longer than the open was; none where it
/// would be.
// spec: OPEN-11, OPEN-23
pub const fn answer_header(open: &Header, now: u64, payload: Digest) -> Option<Header> {
    if !matches!(open.kind, Kind::Open) || open.payload.len < payload.len {
        return None;
    }
    match reset_header(open, now) {
        Some(header) => Some(Header { payload, ..header }),
        None => None,
    }
}

/// A reset that answers a frame which belongs to nothing here: an open that is not wanted, or a
/// frame of a link that is no more. It repeats what only that frame's sender knows. There is none
/// for what is itself an answer, so that two that do not know each other soon fall silent.
// spec: OPEN-11
pub const fn reset_header(unwanted: &Header, now: u64) -> Option<Header> {
    if matches!(unwanted.kind, Kind::Accept | Kind::Reset) {
        return None;
    }
    let header = Header::bare(Kind::Reset, unwanted.generation, unwanted.token);
    let (packet, seq) = (unwanted.packet, unwanted.to);
    Some(Header { path: unwanted.path, packet, seq, stamp: now as u32, ..header })
}

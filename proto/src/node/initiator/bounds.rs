//! The greatest lengths of records, and their effect on cutting.
use crate::command::{COMMAND_BYTES, RESPONSE_BYTES};
use crate::execute::Action;
use crate::lane::lines_for;
use crate::limits::{LINE_PAYLOAD, RECORD_MAX};
use crate::segment::Shape;

/// The greatest lengths of a connection's records, in bytes, heads included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that the lane of commands holds; `None` if they go into frames.
    pub requests: Option<usize>,
    /// Bytes that the lane of answers holds.
    pub responses: usize,
    /// The longest record.
    pub most: usize,
    /// The longest one that is worth posting now: it goes whole.
    pub worth: usize,
}

/// Half a lane, so that one piece is filled while the one before is taken.
const fn half_of(lane: usize) -> usize {
    (lane / 2).next_multiple_of(LINE_PAYLOAD)
}

impl Bounds {
    /// Bytes of data in the longest command. A batch finds room for all of it or for none, so what
    /// it posts is cut as if paths never changed.
    // spec: MTU-1, BATCH-2
    #[inline]
    pub fn longest_request(&self, is_batch: bool) -> u64 {
        debug_assert!(self.worth <= self.most, "what is worth posting is possible");
        let longest = match self.requests {
            Some(lane) => half_of(lane).min(self.most),
            None if is_batch => self.most,
            None => self.worth,
        };
        debug_assert!(longest > COMMAND_BYTES, "a command carries data");
        (longest - COMMAND_BYTES) as u64
    }

    /// Bytes of data in the longest piece of an operation.
    #[inline]
    pub(super) fn longest_piece(&self, action: Action, is_batch: bool) -> u64 {
        if action != Action::Get {
            return self.longest_request(is_batch);
        }
        let longest = half_of(self.responses).min(self.worth.min(RECORD_MAX & !7));
        debug_assert!(longest > RESPONSE_BYTES, "an answer carries data");
        (longest - RESPONSE_BYTES) as u64
    }

    /// The room that a put of a batch takes, in lines or in frames.
    pub(super) fn units(&self, shape: &Shape) -> u64 {
        let longest = self.longest_request(true);
        if self.requests.is_none() {
            return shape.count(longest);
        }
        let pieces = shape.pieces(longest);
        pieces.map(|piece| u64::from(lines_for(COMMAND_BYTES + piece.len as usize))).sum()
    }
}

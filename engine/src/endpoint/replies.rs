//! Answers that wait for room.
use ayre_proto::envelope::Record;

/// What an answer that waits for room counts for, and a read whose bytes have not all gone: no
/// less than it takes besides its bytes.
pub(super) const ANSWER: u64 = 64;

/// What a remote is to be answered, and the bytes that belong to it.
pub(super) type Reply = (Record, Box<[u8]>);

/// What an answer that waits for room counts for.
pub(super) fn cost((_, bytes): &Reply) -> u64 {
    ANSWER + bytes.len() as u64
}

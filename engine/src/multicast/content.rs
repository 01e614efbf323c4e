//! What all members of a group get: a handler's number, its arguments and the payload, one behind
//! the other.
use crate::mem::map::Mapping;
use aligned_vec::{AVec, ConstAlign};
use std::sync::Arc;

/// The bytes of a message, which several may need for a while.
pub(super) type Content = Arc<Vec<u8>>;

/// Bytes that begin at a multiple of 64.
pub(super) type Buffer = AVec<u8, ConstAlign<64>>;

/// Where a content lies on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: u32,
    pub(super) len: u32,
}

/// What a member's machine holds of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Own(Content),
    /// On the board of the root, which leaves it there as long as somebody may lack it.
    OnBoard(Place),
}

/// What lies on a board, in memory of our own.
pub(super) fn copy_of(board: &Mapping, place: Place) -> Content {
    let mut bytes = vec![0; place.len as usize];
    board.read(place.at.into(), &mut bytes);
    bytes.into()
}

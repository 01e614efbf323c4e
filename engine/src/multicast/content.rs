//! The content of a message: the id of a handler, its arguments and the payload, one behind the
//! other.
use crate::mem::map::Mapping;
use aligned_vec::{AVec, ConstAlign};
use std::sync::Arc;

/// The bytes of a message, shared by all that still need them.
pub(super) type Content = Arc<Vec<u8>>;

/// A buffer that begins at a multiple of 64.
pub(super) type Buffer = AVec<u8, ConstAlign<64>>;

/// The place of a content in a shared log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: u32,
    pub(super) len: u32,
}

/// The payload of a message in a member's state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Own(Content),
    /// In the shared log of the root, which keeps it as long as a member may lack it.
    InLog(Place),
}

/// Copies a content out of a shared log.
pub(super) fn copy_of(log: &Mapping, place: Place) -> Content {
    let mut bytes = vec![0; place.len as usize];
    log.read(place.at.into(), &mut bytes);
    bytes.into()
}

//! Receives that wait, and messages that wait for one.
use super::ends::Context;
use super::origin::{Origin, There};
use crate::mem::span::Spans;
use ayre_proto::matching::ReceiveId;

/// What each message that is kept, and each operation of our own, counts for: no less than it takes
/// besides its bytes, tables that have just doubled included.
pub(super) const RECORD: u64 = 512;

/// A receive that waits, or whose message is coming.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) into: Spans,
    pub(super) context: Context,
    pub(super) id: Option<ReceiveId>,
    pub(super) is_tagged: bool,
    /// It takes no more; what it has taken is still coming.
    pub(super) released: bool,
    /// Messages that are still coming.
    pub(super) coming: usize,
}

/// A message that no receive has taken yet.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) origin: Origin,
    pub(super) place: BodyPlace,
}

#[derive(Debug)]
pub(super) enum BodyPlace {
    Here(Box<[u8]>),
    /// With its sender, who has asked.
    There(There),
}

impl Body {
    /// What keeping it counts for.
    pub(super) fn cost(&self) -> u64 {
        match &self.place {
            BodyPlace::Here(bytes) => RECORD + bytes.len() as u64,
            BodyPlace::There(_) => RECORD,
        }
    }
}

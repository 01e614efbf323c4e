//! Messages that are coming from senders that had to ask.
use super::origin::{Origin, There};
use crate::tuning::Method;
use std::time::Instant;

/// A message that is coming in parts.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) receive: usize,
    pub(super) origin: Origin,
    /// Where it begins in the receive's memory.
    pub(super) offset: u64,
    /// Bytes that were asked for.
    pub(super) len: u64,
    pub(super) got: u64,
    /// Where its sender has it.
    pub(super) there: There,
    /// How it comes.
    pub(super) by: Method,
    /// Since when it is wanted, where that is timed.
    pub(super) since: Option<Instant>,
}

impl Transfer {
    /// Into a receive, from so many bytes on, so many.
    pub(super) fn new(
        (receive, offset, len): (usize, u64, u64),
        origin: &Origin,
        there: There,
    ) -> Self {
        Self {
            receive,
            origin: *origin,
            offset,
            len,
            got: 0,
            there,
            by: Method::Pipeline,
            since: None,
        }
    }
}

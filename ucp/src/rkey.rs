//! Memory of peers, as a program knows it by an unpacked key.

use crate::abi::status::Status;
use crate::context::Context;
use crate::key::Key;
use crate::status::of_fault;
use crate::sys::window::Reachable;
use ayre::{Fault, Rights};

/// A key of a peer's memory.
#[derive(Debug)]
pub(crate) struct Rkey {
    pub(crate) key: Key,
    /// The memory, if loads and stores reach it.
    pub(crate) reachable: Option<Reachable>,
}

impl Rkey {
    pub(crate) fn new(context: &Context, key: Key) -> Self {
        let reachable = match context.is_own(&key) {
            true => Some(Reachable::own(&key)),
            false => context.window(&key).map(Reachable::of),
        };
        Self { key, reachable }
    }

    /// How far behind the beginning of the memory a range lies.
    ///
    /// # Errors
    /// *out of range*; *rejected* where the memory was mapped without such rights.
    #[inline]
    pub(crate) fn offset(
        &self,
        (address, len): (u64, usize),
        rights: Rights,
    ) -> Result<usize, Status> {
        if !self.key.rights.contains(rights) {
            return Err(of_fault(Fault::Rights));
        }
        self.key.offset_of(address, len).ok_or_else(|| of_fault(Fault::Bounds))
    }
}

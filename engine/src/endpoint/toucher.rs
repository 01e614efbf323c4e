//! What is under way of a remote that touches our windows.
use super::windows::Claim;
use crate::error::Fault;
use std::collections::VecDeque;

/// What is kept of a remote's touching our windows.
#[derive(Debug, Default)]
pub(super) struct Toucher {
    /// Why the write that is coming in parts is refused.
    pub(super) refused: Option<Fault>,
    /// Reads whose bytes have not all gone, the oldest first.
    pub(super) reads: VecDeque<Reading>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) claim: Claim,
    /// The reader's name of it.
    pub(super) id: u64,
    pub(super) gone: u64,
}

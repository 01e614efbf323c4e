//! The state of one remote's access to our memory regions.
use crate::fault::Fault;
use crate::units::RmaClaim;
use alloc::collections::VecDeque;

/// The state of one remote's access to our memory regions.
#[derive(Debug, Default)]
pub(super) struct RmaTarget {
    /// Why the write that is coming in parts is refused.
    refused: Option<Fault>,
    /// Reads whose bytes have not all gone, the oldest first.
    reads: VecDeque<Reading>,
}

/// A read, and how many bytes of it have gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) claim: RmaClaim,
    /// The reader's name of it.
    pub(super) id: u64,
    pub(super) gone: u64,
}

impl RmaTarget {
    /// Begins with bytes of a write, behind `before` others of it. An error is the fault of an
    /// earlier fragment.
    pub(super) fn begin_fragment(&mut self, before: u64) -> Result<(), Fault> {
        if before == 0 {
            self.refused = None;
        }
        self.refused.map_or(Ok(()), Err)
    }

    /// They are in their place, or why not.
    pub(super) fn end_fragment(&mut self, refused: Option<Fault>) {
        debug_assert!(self.refused.is_none() || self.refused == refused, "a refusal stays");
        self.refused = refused;
    }

    /// The last bytes of a write have come: whether all are in their place.
    pub(super) fn end_write(&mut self) -> Result<(), Fault> {
        self.refused.take().map_or(Ok(()), Err)
    }

    /// Bytes are to leave. Whether this is the only read.
    pub(super) fn begin_read(&mut self, claim: RmaClaim, id: u64) -> bool {
        debug_assert!(claim.len > 0, "what has no bytes is answered at once");
        self.reads.push_back(Reading { claim, id, gone: 0 });
        self.reads.len() == 1
    }

    /// The read whose bytes leave.
    pub(super) fn read(&self) -> Option<Reading> {
        self.reads.front().copied()
    }

    /// Counts `count` more of its bytes as sent.
    pub(super) fn has_gone(&mut self, count: u64) {
        let Some(reading) = self.reads.front_mut() else { return };
        debug_assert!(count > 0, "each part has bytes");
        reading.gone += count;
        debug_assert!(reading.gone <= reading.claim.len, "no more goes than was read");
    }

    /// All of its bytes have gone, or it was refused.
    pub(super) fn end_read(&mut self) {
        let read = self.reads.pop_front();
        debug_assert!(read.is_some(), "a read ends once");
    }

    /// The remote touches nothing any more: how many reads are over by that.
    pub(super) fn end(&mut self) -> usize {
        core::mem::take(self).reads.len()
    }
}

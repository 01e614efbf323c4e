//! The writer of records into frames.
use crate::link::frame::{Channel, Full, RecordKind};

/// The frames that records are packed into.
pub trait Pack {
    /// Appends a record of `len` bytes, which `fill` writes, to a frame of the channel.
    ///
    /// # Errors
    /// [`Full`] where the frame has no room for it, nor may another one be begun.
    fn pack(
        &mut self,
        channel: Channel,
        head: (RecordKind, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Full>;
    /// Longest record.
    fn longest(&self) -> usize;
    /// Longest record that goes whole by the link's paths.
    fn whole(&self) -> usize;
    /// Longest record that is worth packing next on a channel: what fills the frame that is being
    /// filled up, or else a new one.
    fn share(&self, channel: Channel) -> usize;
    /// Whether a record of `len` bytes finds room on a channel.
    fn has_room(&self, channel: Channel, len: usize) -> bool;
    /// Whether as many frames are ready as go at a time: what is in no hurry is packed behind them.
    // spec: WIRE-16
    fn is_laden(&self) -> bool {
        false
    }
    /// A channel on which a frame is about to go anyway.
    fn begun(&self) -> Option<Channel>;
    /// Nanoseconds.
    fn now(&self) -> u64;
}

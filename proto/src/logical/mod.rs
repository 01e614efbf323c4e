//! Logical channels: messages between two ends in streams that do not delay each other.
//!
//! ```text
//!   sender                                          receiver
//!   [channel 1] --.                            .--> [channel 1] --.
//!   [channel 2] ---+-- turns --- records ------+--> [channel 2] ---+-- turns --> handlers
//!   [channel 9] --'                            '--> [channel 9] --'
//!        ^                                               |
//!        '------------- room, for each channel ----------'
//! ```
//!
//! [`ChannelSender`] tells the channel that sends next, and how much. [`ChannelReceiver`] tells how
//! much of a channel is to be given back. [`Turns`] gives the order of channels at either end.
mod content;
mod receiver;
mod sender;
mod turns;

pub use content::{BACK, Back, CHANNEL, Head, Start};
pub use receiver::{ChannelReceiver, Due};
pub use sender::{ChannelSender, Turn};
pub use turns::Turns;

/// The numbers of channels.
// spec: CHAN-1
pub const NUMBERS: core::ops::RangeInclusive<u8> = 1..=255;
/// The number of channel numbers, with the one that is no channel's.
const PLACES: usize = 256;
/// Priorities: the highest goes first.
// spec: CHAN-6
pub const PRIORITIES: u8 = 8;
/// The greatest weight.
// spec: CHAN-6
pub const WEIGHT_MAX: u8 = 16;
/// Bytes that a turn of weight 1 has.
// spec: CHAN-6
pub const SHARE: u32 = 1 << 13;
/// The window: the cost that may be under way on a channel until its receiver gives it back.
// spec: CHAN-3
pub const WINDOW: u64 = 1 << 18;
/// Bytes of the longest message that is sent in one part.
// spec: CHAN-8
pub const SHORT_MAX: usize = crate::limits::EAGER_MAX - content::HEAD_BYTES;
/// Bytes of the shortest part of a longer one that is worth a turn, unless it is the last.
// spec: CHAN-8
pub const PART_MIN: u64 = 1 << 12;
/// Bytes of the longest part.
// spec: CHAN-8
pub const PART_MAX: u64 = 1 << 15;
/// The cost of the shortest messages.
// spec: CHAN-3
const COST_MIN: u64 = 64;

/// The cost of a message of `bytes` bytes.
// spec: CHAN-3
pub const fn cost(bytes: u64) -> u64 {
    if bytes < COST_MIN { COST_MIN } else { bytes }
}

//! Long messages: round a ring in memory of the receiver, its *landing* for one sender, or read by
//! the receiver where the sender has them.
//!
//! ```text
//!   LongSender                                    LongReceiver
//!     want                      ------->         makes a landing and hands it over
//!     waits                     <-------         landing
//!     puts a piece; long, piece ------->         copies it out; the last one ends the message
//!     finds room                <-------         room, at the latest when a quarter was taken
//!
//!     pull: the address         ------->         reads there, or not
//!     leaves it as it is        <-------         pulled
//! ```
//!
//! Both ends hold numbers: the bytes lie in the program's memory and in the landing.
mod receiver;
mod sender;

pub use receiver::{LongReceiver, Taken, cause_to_drop};
pub use sender::{LongSender, Message, Way};

/// Bytes of the longest message that goes by the landing unasked, where nothing is said of it: to
/// ask would take a good part of its time.
// spec: INJ-2
pub const UNASKED_MAX: usize = 1 << 16;
/// Bytes of the smallest landing.
pub const LANDING_MIN: u64 = 1 << 12;
/// Bytes of the largest landing.
const LANDING_MAX: u64 = 1 << 24;
/// A piece, and the bytes taken without a report, are at most this part of the landing.
const PART: u64 = 4;

/// Whether a landing may have this number of bytes.
// spec: AM-12
pub const fn is_landing(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes >= LANDING_MIN && bytes <= LANDING_MAX
}

/// The place of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte in the landing.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

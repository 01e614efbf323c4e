//! The link: what joins two ports of different hosts over a network that loses, repeats, reorders
//! and damages what it carries.
//!
//! A link has three [`frame::Channel`]s in each direction, so that requests never stand in the way
//! of responses. A *frame* is one datagram: it carries records of one channel, numbered on that
//! channel, and for all channels of the other direction what has arrived and how much room there
//! is. Both are cumulative counts, so that one that is lost or repeated does no harm.
//!
//! ```text
//!   records -> frame, seq n --- Sender ---> network ---> Receiver ---> frames in order -> records
//!                                 ^                         |
//!                                 '--- ack, sack, limit ----'      limit: buffers that are there
//! ```
//!
//! Nothing here knows a socket or a clock: time is an argument, in nanoseconds of the caller's own
//! clock, and what is to be sent again is asked for.
//!
//! | module | machine or format | specification |
//! |---|---|---|
//! | [`frame`] | header and records of a datagram | spec/91 |
//! | [`open`] | how a link is asked for and agreed on | spec/87 |
//! | [`door`] | links that are asked for and not yet confirmed | spec/87 |
//! | [`answer`] | what is said to an open that is not accepted, or not yet | spec/87 |
//! | [`ration`] | how much is done for those of whom nothing is known | spec/87 |
//! | [`send`] | sender's end of a channel: numbers, credit, what must be sent again | spec/85 |
//! | [`receive`] | receiver's end of a channel: order, acknowledgement, room | spec/85 |
//! | [`end`] | one end of a link: what drives its channels | spec/85 |
//! | [`life`] | whether the other side is still there; how a link is left | spec/85 |
//! | [`replay`] | which packets have come | spec/85 |
//! | [`rtt`] | how long an answer takes, and how long to wait for it | spec/86 |
//! | [`looks`] | what of that is a host's own | spec/86 |
//! | [`congestion`] | how many frames may be in flight | spec/86 |
//! | [`paths`] | which way the next frame takes | spec/86 |
//! | [`path_mtu`] | how long a datagram may be on each | spec/86 |
//! | [`pieces`] | how a frame goes that is longer | spec/91 |
//! | [`assembly`] | frames that come so, until they are whole | spec/91 |
//! | [`race`] | which of several ways leads to a port | spec/87 |
pub mod answer;
pub mod assembly;
pub mod congestion;
pub mod end;
pub mod frame;
pub mod half_open;
pub mod life;
pub mod looks;
pub mod open;
pub mod path_mtu;
pub mod paths;
pub mod pieces;
pub mod race;
pub mod receive;
mod reminder;
pub mod replay;
mod resync;
pub mod rtt;
pub mod send;
pub mod token_bucket;

/// Frames of one channel that are under way at a time; what a [`receive::Receiver`] can put in
/// order, and what an acknowledgement can tell apart.
// spec: LINK-6
pub const WINDOW: u32 = 128;

/// Paths of a link, as places in a table.
const PATHS: usize = frame::PATHS_MAX as usize;

/// How what was lost is sent again; agreed at set-up, for both ends act on it.
// spec: LINK-9, LINK-10
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Repair {
    /// A frame that comes before its turn is dropped, and everything from the lost one on is sent
    /// again: the least state at the receiver.
    GoBackN,
    /// A frame that comes before its turn is kept, and only lost ones are sent again. With several
    /// paths, where frames overtake each other all the time, there is no other way.
    #[default]
    Selective,
}

/// Whether a number of a channel comes before another one: numbers wrap.
#[inline]
const fn precedes(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Where a table of the frames under way has this one.
#[inline]
const fn slot(seq: u32) -> usize {
    (seq % WINDOW) as usize
}

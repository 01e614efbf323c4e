//! The link: what joins two ports of different hosts over a network that loses, repeats, reorders
//! and damages what it carries.
//!
//! A link has three [`frame::Channel`]s in each direction, so that requests never stand in the way
//! of responses. A *frame* is one datagram. It carries records of one channel, numbered on that
//! channel. For all channels of the other direction, it carries what has arrived and how much room
//! there is. Both are cumulative counts, so that one that is lost or repeated does no harm.
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
//! | [`open`] | the opening of a link, and its agreement | spec/87 |
//! | [`half_open`] | links that are asked for and not yet confirmed | spec/87 |
//! | [`answer`] | answers to an open that is not accepted, or not yet | spec/87 |
//! | [`token_bucket`] | limits of what is done for senders of which nothing is known | spec/87 |
//! | [`send`] | sender's end of a channel: numbers, credit, what must be sent again | spec/85 |
//! | [`receive`] | receiver's end of a channel: order, acknowledgement, room | spec/85 |
//! | [`end`] | one end of a link: what drives its channels | spec/85 |
//! | [`life`] | signs of life of the other side; the end of a link | spec/85 |
//! | [`replay`] | the packets that have come | spec/85 |
//! | [`rtt`] | the round trip and the retransmission timeout | spec/86 |
//! | [`looks`] | the part of a round trip that is a host's own | spec/86 |
//! | [`congestion`] | the number of frames that may be in flight | spec/86 |
//! | [`paths`] | the path that the next frame takes | spec/86 |
//! | [`path_mtu`] | the length of datagrams on each path | spec/86 |
//! | [`pieces`] | the pieces of frames that are too long for their path | spec/91 |
//! | [`assembly`] | frames that come in pieces, until they are whole | spec/91 |
//! | [`race`] | the choice among several ways to a port | spec/87 |
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

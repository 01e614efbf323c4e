//! Frames of EXTOLL's link, in phits of two bytes (section 7.3).
//!
//! The thesis gives flits of at most 64 phits and 41 cycles for a VELO message of 56 bytes. The
//! division of the other 13 phits is reconstructed: a packet begins with its routing string and
//! its header. Each flit has a start, an end, a CRC and credits.
//!
//! ```text
//!   | start 1 | routing 4 | header 4 | payload ... | CRC 2 | credits 1 | end 1 |
//!   '--------------------------- at most 64 phits in a flit --------------------'
//! ```

/// Bytes of a phit.
pub const PHIT: u32 = 2;
/// Phits of a flit, at most.
pub const FLIT: u32 = 64;
/// Phits of a flit that are not the packet's.
const AROUND: u32 = 5;
/// Phits of a packet's routing string, which has 64 bits.
const ROUTING: u32 = 4;
/// Phits of a packet's header.
const HEADER: u32 = 4;
/// Phits of the descriptor that an RMA packet carries besides: a command has 16 bytes.
const DESCRIPTOR: u32 = 8;

/// Cycles that a packet takes on a link.
pub fn cycles(payload: u32, with_descriptor: bool) -> u32 {
    let descriptor = if with_descriptor { DESCRIPTOR } else { 0 };
    let own = ROUTING + HEADER + descriptor + payload.div_ceil(PHIT);
    own + own.div_ceil(FLIT - AROUND) * AROUND
}

/// The share of a link that is payload.
pub fn efficiency(payload: u32, with_descriptor: bool) -> f64 {
    f64::from(payload) / f64::from(cycles(payload, with_descriptor) * PHIT)
}

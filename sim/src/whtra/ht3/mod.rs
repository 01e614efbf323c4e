//! HyperTransport 3 on an FPGA (paper D).
//!
//! - [`lanes`]: training, deskew and scrambling.
//! - [`packet`]: the CRC of each packet, and stomping.
//! - [`retry`]: the acknowledgement counter and the retry.
//! - [`credits`]: the rates that the credits of the virtual channels allow.
pub mod credits;
pub mod lanes;
pub mod packet;
pub mod retry;

use crate::link::LinkTiming;
use crate::time::Time;

/// A direction of a link of 8 bits at HT1600 (section V): 3.2 Gb/s a lane, so 3.2 GB/s.
pub const HT1600_8: LinkTiming = LinkTiming { phit: Time(1_250), width: 4, wire: Time::ZERO };

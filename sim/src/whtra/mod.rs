//! The WHTRA collection: four papers about HyperTransport.
//!
//! - [`bridge`]: HyperTransport's packets in frames of Ethernet (paper B).
//! - [`sharing`]: the saving where the blades of a centre share memory and accelerators (paper B).
//! - [`memory`]: a memory that an FPGA emulates behind a processor's link (paper C).
//! - [`ht3`]: HyperTransport 3 on an FPGA (paper D).
//! - [`x4600`]: collectives among eight sockets, and their links' loads (paper A).
mod recent;

pub mod bridge;
pub mod ht3;
pub mod memory;
pub mod sharing;
pub mod x4600;

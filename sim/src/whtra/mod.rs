//! The WHTRA collection: four papers about HyperTransport.
//!
//! - [`sharing`]: the saving where the blades of a centre share memory and accelerators (paper B).
//! - [`memory`]: a memory that an FPGA emulates behind a processor's link (paper C).
mod recent;

pub mod memory;
pub mod sharing;

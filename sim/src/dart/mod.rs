//! DART and the hybrid deposit model: an interface for ATM, and its emulation in a kernel.
//!
//! Source: Osborne, "A Hybrid Deposit Model for Low Overhead Communication in High Speed LANs".
//! The instructions are those of `ayre_proto::deposit`, and messages are decided by its machine.
pub mod append;
pub mod cell;
pub mod emulation;
pub mod logic;
pub mod receive;
pub mod send;

pub use cell::data_time;
pub use logic::{Work, all_work, period};

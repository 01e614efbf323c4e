//! Hybrid deposit: messages whose effect is a function of their contents and of the state of their
//! destination.
//!
//! ```text
//!   message --> inlet --> instruction --> machine --> outcome: transfer, writes, notification
//!               rights    carried, or      |   ^
//!               windows   stored here      v   |
//!                                         registers of the depot
//! ```
//!
//! [`run`] decides everything and changes nothing; its caller commits the [`Outcome`] as a whole. A
//! fault therefore leaves no trace but the [`Standing`] of the inlet.
pub mod append;
pub mod carried;
pub mod instruction;
pub mod machine;
pub mod message;
pub mod primitive;
pub mod program;
pub mod reply;
pub mod standing;
pub mod text;

pub use append::{Append, Appended};
pub use carried::Carried;
pub use instruction::Instruction;
pub use machine::{Depot, Inlet, Outcome, Protection, Stored, Transfer, Window, Writes, run};
pub use message::{DepositMessage, Form, Mask};
pub use primitive::{AddressMode, Condition, Kind, OpCode, Operand, Slot};
pub use program::Program;
pub use reply::Reply;
pub use standing::Standing;

/// Registers of a depot.
// spec: LIM-1
pub const REGISTERS: usize = 256;
/// Instructions that a depot stores.
pub const INSTRUCTIONS: usize = 256;
/// Inlets of a depot.
pub const INLETS: usize = 64;
/// Most instructions that one message goes through.
pub const SEQUENCE_MAX: usize = 4;
/// Most register writes of one message.
pub const WRITES_MAX: usize = 2 * SEQUENCE_MAX;
/// Longest data of a message: it is deposited as a whole or not at all, and so travels in one
/// record, as the longest short message does.
pub const DATA_MAX: usize = crate::limits::EAGER_MAX;
/// Steps of the longest instruction: three registers read, an address, two operations, a test, two
/// registers written.
pub const STEPS_MAX: u32 = 9;

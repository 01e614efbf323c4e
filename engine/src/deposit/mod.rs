//! Hybrid deposit: depots at their owner, inlets at their holders, and the messages in between.
//!
//! ```text
//!   holder                                owner
//!   RemoteInlet -- Deposit -->  direct:   the holder carries it out, inside the depot
//!                               mediated: the responder does          (depot/carry.rs)
//! ```
//!
//! A bounded queue that several peers append to, one message each, and that none can overrun:
//!
//! ```no_run
//! use ayre::deposit::{AddressMode, Deposit, InletOptions, Program, Register, X, Y, Z};
//! use ayre::{Port, PostOptions, RegionOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut port = Port::join()?; // started by `ayre run -n 2 -- program`
//! let peer = port.peer(port.rank() ^ 1).ok_or("start two ranks")?;
//! if port.rank() == 0 {
//!     let (region, depot) = (port.alloc(4096, RegionOptions::new())?, port.create_depot()?);
//!     let (tail, size, limit) = (Register::At(0), Register::At(1), Register::At(2));
//!     let append =
//!         Program::new().decline_if(X.ge(Z)).write(AddressMode::Wrapped).then(X.add(Y));
//!     depot.store(0, &[append.store([tail, size, limit])])?;
//!     depot.set_register(1, 64)?; // a record
//!     depot.set_register(2, 4096)?; // what there is room for
//!     let options = InletOptions::new().entries(0..1).longest(64);
//!     port.share_inlet(peer, &depot, (&region, 0..4096), &options, 0)?;
//! } else {
//!     let inlet = port.accept_inlet(peer, 0)?;
//!     port.deposit(&inlet, &Deposit::enter(0).data(&[7; 64]), PostOptions::new())?;
//! }
//! # Ok(())
//! # }
//! ```
mod message;
mod offer;
mod owner;
mod post;
mod reply;

pub use ayre_proto::deposit::program::{ALWAYS, OPERAND, Program, Register, X, Y, Z};
pub use ayre_proto::deposit::text::{TextError, assemble};
pub use ayre_proto::deposit::{
    AddressMode, Condition, DATA_MAX, DepositMessage, Form, INLETS, INSTRUCTIONS, Instruction,
    Kind, Mask, OpCode, Operand, Protection, REGISTERS, SEQUENCE_MAX, STEPS_MAX, Slot, Stored,
};
pub use message::Deposit;
pub use offer::InletOptions;
pub use owner::{Depot, Frozen, HeldMessage, Inlet};
pub use post::{DepositReply, RemoteInlet};
pub use reply::Reply;

use ayre_proto::command::COMMAND_BYTES;
use ayre_proto::deposit::message::Posted;
use ayre_proto::fault::Fault;
use ayre_proto::units::Key;

/// Parses the words of a message, as a capture shows them: returns the inlet's key, the epoch, and
/// the message.
///
/// # Errors
/// [`Fault::Malformed`] where the words are no deposit message.
pub fn read_message(words: &[u64; COMMAND_BYTES / 8]) -> Result<(Key, u8, DepositMessage), Fault> {
    let Posted { key, epoch, message, .. } = Posted::parse(words, Posted::brought(words))?;
    Ok((key, epoch, message))
}

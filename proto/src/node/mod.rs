//! A node: what a port decides above links and lanes.
//!
//! A node has peers. Its operations on them become commands; their commands are checked, performed
//! and answered. The machines here have no memory files, threads, sockets or clock: they act
//! through traits. [`Node`] is all of a node: operations, frames, records and time come in, effects
//! go out. The engine implements the traits of the single machines over shared memory and the
//! network.
//!
//! | module | machine |
//! |---|---|
//! | [`command_record`] | a command as the way to its target sees it |
//! | [`initiator`] | operations on a peer: cutting, credit, what an answer ends |
//! | [`target`] | one peer's commands as their target serves them: order, credit, answers |
//! | [`carrier`] | the far side of a connection's lanes, where frames of a link lead to the peer |
//! | [`linked`] | a peer of another host: the link's end, the carrier, the frames between |
//! | [`message`], [`notes`] | short messages, and when they may be taken; a port's notifications |
//! | [`lane`], `ring`, [`connection`] | a lane, a ring, and all of a connection, in plain memory |
//! | `same_host`, `posting` | a peer of the same host; the way of commands to either |
//! | [`effects`] | what a node acts on: its program, and the ways to its peers |
//! | [`peer`], [`Node`] | a peer with all of that; the whole node |
pub mod carrier;
pub mod command_record;
pub mod connection;
pub mod effects;
pub mod initiator;
pub mod lane;
pub mod linked;
pub mod message;
pub mod notes;
pub mod peer;
mod posting;
mod ring;
mod same_host;
pub mod target;
mod whole;

pub use posting::Order;
pub use whole::{Node, PostError};

//! What the ports at both ends of a mediated connection decide.
//!
//! Such a connection brings its initiator's commands to the target, which checks and performs them,
//! and answers. Both ends stand here without memory, lanes, sockets or clock: what a machine
//! does to those, it does through traits, which the engine implements over shared memory.
//!
//! | module | machine |
//! |---|---|
//! | [`ask`] | a command as the way to its target sees it |
//! | [`carrier`] | the far side of a connection's lanes, where frames of a link lead to the peer |
//! | [`initiator`] | one port's operations on a peer: cutting, credit, what an answer ends |
//! | [`linked`] | a peer of another host: the link's end, the carrier, the frames between |
//! | [`target`] | one peer's commands as their target serves them: order, credit, answers |
pub mod ask;
pub mod carrier;
pub mod initiator;
pub mod linked;
pub mod target;

//! Services for libraries built over this crate, which live in the process of their program.
//!
//! Bells, threads that handle no signal, and descriptors apart from the standard streams. State of
//! their own for forked children. Values that a thread of the library uses while the program is
//! outside, and large arrays made without the stack.

/// Resets the locks and the process-wide state in forked children. Opening a port or an endpoint
/// does this, too.
// spec: LIFE-35
pub fn watch_forks() {
    fork::count();
    crate::mem::watch_forks();
    crate::endpoint::watch_forks();
}

pub use crate::mem::biased::Biased;
pub use crate::sys::{bell, descriptor, fork, thread};
pub use ayre_proto::heap;

/// For the conformance suite: a record of all calls that a device was given.
pub mod trace {
    pub use crate::port::device::{Given, Trace, Traced};
}

//! What a library owes to the program whose process it is in, for the skins over this crate: bells,
//! threads in which no signal is handled, descriptors that are none of the standard streams,
//! forked children that have a library of their own, values that a thread of the library uses in
//! the program's absence, and arrays that do not come over its stack.

/// Has forked children begin with locks that are free, and without what is their parent's. Done by
/// whatever is opened, too.
// spec: LIFE-35
pub fn watch_forks() {
    fork::count();
    crate::mem::watch_forks();
    crate::endpoint::watch_forks();
}

pub use crate::mem::biased::Biased;
pub use crate::sys::{bell, descriptor, fork, thread};
pub use ayre_proto::heap;

/// What the conformance suite looks at: all that a device was given.
pub mod trace {
    pub use crate::port::device::{Given, Trace, Traced};
}

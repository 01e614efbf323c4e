//! Unsafe code below the calls: objects that C points to, cells without a lock, and the functions
//! of libfabric's core.
pub(crate) mod cell;
pub(crate) mod copy;
pub(crate) mod core;
pub(crate) mod object;

//! What takes unsafe code below the calls: objects that C points to, cells without a lock, trees
//! that C frees, the functions of libfabric's core, and signals.
pub(crate) mod cell;
pub(crate) mod copy;
pub(crate) mod core;
pub(crate) mod object;
pub(crate) mod signals;
pub(crate) mod tree;

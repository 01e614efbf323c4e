//! Unsafe code below the calls: objects and structures that C points to, the program's promise
//! about its threads, and the functions of libfabric's core.
pub(crate) mod core;
pub(crate) mod object;
pub(crate) mod structure;
pub(crate) mod threads;

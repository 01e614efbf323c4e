//! Unsafe code below the calls: the C library's own functions, memory that C points to, and errno.
pub(crate) mod forks;
pub(crate) mod memory;
pub(crate) mod real;
pub(crate) mod wait;

//! The machine that this process runs on, as far as it may use it: which host and how many ranks,
//! processors and memory, with the limits of control groups.
pub(crate) mod cgroup;
pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod memory_file;
pub(crate) mod processors;

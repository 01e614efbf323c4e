//! The machine as far as this process may use it: the host, ranks, processors and memory, within
//! the limits of control groups.
pub(crate) mod cgroup;
pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod memory_file;
pub(crate) mod processors;

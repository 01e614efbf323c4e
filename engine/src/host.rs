//! Limits of this host: the memory that the process may use, and the folder for files that replace
//! memory files (`memfd_create`) where the kernel refuses those.
pub use crate::machine::memory::limit as usable_memory;
pub use crate::machine::memory_file::{FallbackFolder, fallback_folder};

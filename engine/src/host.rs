//! Limits of this host: how much memory the process may use, and which folder holds files in place
//! of memory files where the kernel refuses those.
pub use crate::machine::memory::limit as usable_memory;
pub use crate::machine::memory_file::{FallbackFolder, fallback_folder};

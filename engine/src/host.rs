//! What this host allows: memory that the process may use, and what stands in for memory files
//! where the kernel's are refused.
pub use crate::machine::memory::limit as usable_memory;
pub use crate::machine::memory_file::{FallbackFolder, fallback_folder};

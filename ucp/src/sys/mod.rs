//! Objects and memory whose addresses C has.
//!
//! | file | subject |
//! |---|---|
//! | `handle.rs` | objects that the program knows by their address |
//! | `handler.rs` | the program's functions for active messages |
//! | `window.rs` | memory that several processes have mapped, and accesses to it |
//! | `memory.rs` | a program's mapped memory |
//! | `atomic.rs` | atomics on one number |
//! | `packing.rs` | memory in many pieces, and datatypes of the program's |
//! | `text.rs` | streams of C |
//! | `request.rs` | requests in memory, and the program's functions for their ends |
//! | `threads.rs` | the program's promise about its threads |

pub(crate) mod atomic;
pub(crate) mod handle;
pub(crate) mod handler;
pub(crate) mod memory;
pub(crate) mod packing;
pub(crate) mod request;
pub(crate) mod text;
pub(crate) mod threads;
pub(crate) mod window;

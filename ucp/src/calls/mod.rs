//! The functions that programs call, by their names in C.
//!
//! Each takes pointers as UCP's headers describe them, converts them for the rest of the crate, and
//! returns a status. The headers make programs responsible for their handles: these are trusted.
//!
//! | file | subject |
//! |---|---|
//! | `param.rs` | parameters and results of all operations |
//! | `context.rs`, `config.rs` | contexts and settings |
//! | `worker.rs`, `ep.rs` | workers and endpoints |
//! | `wakeup.rs` | sleeping until something comes |
//! | `tag.rs`, `am.rs` | tagged messages; active messages |
//! | `datatype.rs` | datatypes that the program packs |
//! | `memory.rs`, `rkey.rs` | mapped memory; its keys |
//! | `rma.rs`, `atomic.rs` | writing and reading peers' memory; atomics on it |
//! | `request.rs` | requests |
//! | `refused.rs` | functions that are not there yet: each says so |

mod am;
mod atomic;
mod config;
mod context;
mod datatype;
mod ep;
mod memory;
mod param;
mod refused;
mod request;
mod rkey;
mod rma;
mod tag;
mod wakeup;
mod worker;

//! Ayre under the interface of UCX: a `libucp` that programs load unchanged.
//!
//! Its files are its layers, from the bottom to the top; each imports only from those before it:
//!
//! | file | subject |
//! |---|---|
//! | [`abi`] | the binary interface of UCP, declared |
//! | [`status`] | the status for each error of the engine |
//! | `log.rs`, `config.rs` | warnings; settings |
//! | `address.rs`, `key.rs` | addresses of workers, and keys of memory, as bytes |
//! | `sys/` | objects and memory whose addresses C has: requests, streams |
//! | `context.rs`, `rkey.rs` | contexts and their mapped memory; memory of peers |
//! | `worker/` | workers and their endpoints, and what goes on by them |
//! | `calls/` | the functions that programs call |
//!
//! Unsafe code is in `abi/`, `sys/` and `calls/` alone.

pub mod abi;
pub mod status;

mod address;
mod calls;
mod config;
mod context;
mod key;
mod log;
mod rkey;
mod sys;
mod worker;

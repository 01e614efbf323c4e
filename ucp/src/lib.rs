//! Ayre under the interface of UCX: a `libucp` that programs load unchanged.
//!
//! Its files are its layers, from the bottom to the top; each imports only from those before it:
//!
//! | file | subject |
//! |---|---|
//! | [`abi`] | the binary interface of UCP, declared |
//! | [`status`] | the status for each error of the engine |
//! | `log.rs`, `config.rs`, `address.rs` | warnings; settings; addresses of workers |
//! | `sys/` | objects and memory whose addresses C has: requests, streams |
//! | `context.rs` | contexts |
//! | `worker/`, `ep.rs` | workers, and what goes on by them; endpoints |
//! | `calls/` | the functions that programs call |
//!
//! Unsafe code is in `abi/`, `sys/` and `calls/` alone.

pub mod abi;
pub mod status;

mod address;
mod calls;
mod config;
mod context;
mod ep;
mod log;
mod sys;
mod worker;

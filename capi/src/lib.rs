//! Ayre for C: the functions of `ayre.h`.
//!
//! Each function takes C's arguments, calls the engine, and gives C's result. Nothing is decided
//! here.
//!
//! ```text
//!   ayre_put(port, remote, ...)      a C program
//!      border    pointers that C gives
//!      place     handles: alive, of the right kind, not in use
//!      engine    Port::put
//!      error     a ticket or a code; the text of an error stays with the thread
//! ```
//!
//! The documentation of the functions and types here is that of the header, which is made of it:
//! `cargo xtask header`.
#![allow(non_camel_case_types, reason = "the names of C")]

pub mod access;
pub mod active;
pub mod border;
pub mod channel;
pub mod collective;
pub mod deposit;
pub mod endpoint;
pub mod error;
pub mod error_text;
pub mod group;
pub mod interface;
pub mod memory;
pub mod message;
pub mod multicast;
pub mod operation;
pub mod place;
pub mod port;
pub mod queue;
pub mod rest;
pub mod stream;
pub mod together;

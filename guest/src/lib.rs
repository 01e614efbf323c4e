//! The common part of libraries that give Ayre another library's interface, and live in the process
//! of a program that does not know of Ayre.
//!
//! The engine's `ayre::guest` has what no such library can do without. Here are policies that they
//! share, and that programs in Rust do not need. Each file imports only from those before it:
//!
//! | file | subject |
//! |---|---|
//! | [`cell`] | state that calls and our own thread use, with locks and without |
//! | [`copy`] | copies between a program's memory and ours |
//! | [`layout`] | declared structures, and what a compiler of C says of them |
//! | [`error`] | words for the log: each once, and about calls without an answer |
//! | [`wait`] | sleeping at a descriptor, and waking those who sleep |
//! | [`progress`] | our own thread, which serves peers while the program does not call |
//!
//! Unsafe code is in `cell.rs` and `copy.rs` alone. Errors are the engine's, or the system's: each
//! library has numbers of its own for them.

pub mod cell;
pub mod copy;
pub mod error;
pub mod layout;
pub mod progress;
pub mod wait;

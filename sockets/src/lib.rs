//! Stream sockets of unmodified programs over Ayre: a library that a program loads before the C
//! library (`LD_PRELOAD`).
//!
//! The program's descriptors stay the kernel's sockets. Between two programs with this library, the
//! bytes of their connections go by rings in shared memory, as far as both see how the other one
//! waits ([`ayre::socket`]). All else stays with the kernel.
//!
//! | file or folder | subject |
//! |---|---|
//! | `abi/` | the functions that programs call, one for one |
//! | `sys/` | the C library's own functions, memory that C points to |
//! | `table.rs` | what the descriptors of the process are |
//! | `listener.rs` | how two programs find each other |
//! | `far.rs` | connections with other hosts |
//! | `stream.rs` | one socket: reading and writing |
//! | `watch.rs` | the sleepers of a socket, and what its peer is told of them |
//! | `waiter.rs`, `patience.rs` | how threads wait, and how long |
//! | `epoll.rs`, `poll.rs` | many descriptors at once |
//! | `names.rs` | duplicates, closing, forks |
//! | `policy.rs`, `report.rs` | what may go by rings, and what did |
pub mod abi;
mod epoll;
mod far;
mod listener;
mod names;
mod patience;
mod policy;
mod poll;
mod report;
mod stream;
mod sys;
mod table;
mod waiter;
mod watch;

//! Memory of other processes: regions, puts, gets and atomics on them, notifications, locks.
//!
//! An owner allocates a region ([`Port::alloc`](crate::Port::alloc)) and shares a range of it with
//! one peer, under a name and with rights ([`Port::share`](crate::Port::share)). That makes a
//! [`Grant`], which the owner can revoke. The peer accepts it as a
//! [`RemoteRegion`](crate::RemoteRegion) and then accesses the memory without the owner's program.
//!
//! | I want to | use |
//! |---|---|
//! | write or read remote memory | `Port::put`, `Port::get` |
//! | write or read rows of a matrix | [`Strided`] |
//! | take data from a registered region | [`LocalSlice`] |
//! | count, exchange, compare and swap | `Port::atomic`, `Port::fetch` |
//! | be notified of completions and arrivals | [`Classes`], `Port::wait_notification` |
//! | exclude other processes | [`Lock`] |
pub use crate::mem::file::Pages;
pub use crate::port::batch::Batch;
pub use crate::port::capability::{Fenced, Grant};
pub use crate::port::lock::{Lock, try_epoch_step};
pub use crate::port::ops::Strided;
pub use crate::port::options::{GetDestination, LocalSlice, PutSource};
pub use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
pub use ayre_proto::lock::{EpochStep, LockMode};
pub use ayre_proto::notify::{Classes, Operation};
pub use ayre_proto::units::{Key, Ticket};

//! Ayre for Python: the module `ayre._ayre`, whose classes the package `ayre` gives out.
//!
//! Each method takes Python's arguments, calls the engine, and gives Python's result. Nothing is
//! decided here.
//!
//! ```text
//!   port.put(remote, 0, array)     a Python program
//!      buffer   the bytes of the array
//!      port     the port: not in use, not closed, not a parent's; the interpreter's lock
//!      engine   Port::put
//!      error    a ticket or an exception
//! ```
//!
//! The comments on classes and methods here are their docstrings.

mod active;
mod awaiting;
mod buffer;
mod call;
mod channel;
mod collective;
mod deposit;
mod endpoint;
mod error;
mod export;
mod interface;
mod memory;
mod message;
mod multicast;
mod operation;
mod port;
mod queue;
mod shared;
mod signals;
mod stream;
mod together;
mod value;

/// The part of the package `ayre` that is written in Rust.
// A thread that comes while a port is in use gets an exception, so no lock of the interpreter's is
// needed.
#[pyo3::pymodule(gil_used = false)]
mod _ayre {
    #[pymodule_export]
    use crate::active::{DroppedCall, Messenger};
    #[pymodule_export]
    use crate::call::Call;
    #[pymodule_export]
    use crate::channel::Channel;
    #[pymodule_export]
    use crate::collective::{Group, Pending};
    #[pymodule_export]
    use crate::deposit::{
        Deposit, Depot, Frozen, HeldMessage, Inlet, InletOptions, RemoteInlet, Reply, Stored,
        assemble,
    };
    #[pymodule_export]
    use crate::endpoint::{Endpoint, Posted, Received, Remote};
    #[pymodule_export]
    use crate::memory::{Grant, LocalSlice, Region, RemoteRegion};
    #[pymodule_export]
    use crate::message::{Message, Messages, Notifications};
    #[pymodule_export]
    use crate::multicast::{Membership, View};
    #[pymodule_export]
    use crate::port::{Counters, Port, is_launched};
    #[pymodule_export]
    use crate::queue::{Queue, Record, RemoteQueue};
    #[pymodule_export]
    use crate::shared::{SharedLock, SharedQueue};
    #[pymodule_export]
    use crate::stream::{DirectoryEntry, Run, Stream};
    #[pymodule_export]
    use crate::together::{Batch, Lock};
    #[pymodule_export]
    use crate::value::{Atomic, Notification, PostOptions, Strided};
}

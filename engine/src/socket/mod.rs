//! Byte streams between two processes of one host that have a connection of TCP or of Unix sockets.
//! Each direction goes by a ring in shared memory where its reader is known to look there, and by
//! the kernel otherwise.
//!
//! | file | subject |
//! |---|---|
//! | `pair.rs` | two processes that share memory, and the bells by which they wake each other |
//! | `ends.rs` | the memory of this process's ends |
//! | `connection.rs` | one connection: its beginning and its end |
//! | `connection/reading.rs`, `writing.rs` | read and write, without blocking |
//! | `connection/large.rs` | rings that a process uses beyond their first bytes, a bounded number |
//! | `connection/owed.rs` | bytes of the ring whose reader has gone |
//! | `connection/wishes.rs` | by which way bytes are to come, and who is woken |
//! | `meeting.rs` | how a connecting process finds the one that listens |
//! | `owner.rs` | users: which of them has the TCP socket at an address |
//! | `seen.rs` | the connections of another process |
//! | `far/` | connections with processes of other hosts, by an endpoint |
//!
//! `proto::socket` decides the way of each byte; `mem/socket.rs` and `mem/seat.rs`
//! have the layout of the memory.
mod connection;
mod ends;
mod far;
mod meeting;
mod owner;
mod pair;
mod seen;

pub use self::connection::{Connection, Counts, Ready};
pub use self::ends::keep_reason;
pub use self::far::{Far, Party};
pub use self::meeting::{Addresses, Door, Ends, Found};
pub use self::owner::{owner_of, owner_of_listener, user_named};
pub use self::pair::{Bell, Pair, Process, process_of};
pub use self::seen::{SeenEnd, SeenProcess, SeenWay};
pub use crate::mem::socket::Side;
pub use ayre_proto::socket::{RING, Reason, policy};

/// A count that grows with the time, and that all processes of the host share.
#[inline]
pub fn cycles() -> u64 {
    crate::sys::cycles::count()
}

/// Before a fork.
pub fn lock_family() {
    pair::lock();
    connection::large::lock();
    ends::lock();
}

/// After a fork.
pub fn unlock_family() {
    ends::unlock();
    connection::large::unlock();
    pair::unlock();
}

/// In a forked child. False where it cannot tell which other processes of its family are alive, as
/// it is in a namespace of its own.
pub fn in_child() -> bool {
    let parent = crate::mem::seat::in_child();
    ends::inherit_reasons(parent);
    connection::large::in_child();
    crate::mem::family::in_child()
}

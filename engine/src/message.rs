//! Short messages and remote queues.
//!
//! A [short message](crate::Port::send) has up to [`EAGER_MAX`] bytes and goes to a port without
//! naming memory; up to 56 bytes travel in one cache line. A [remote queue](crate::Queue) brings
//! records from many producers to one consumer; each producer holds a
//! [`RemoteQueue`](crate::RemoteQueue).
pub use crate::port::queue::Record;
#[doc(hidden)]
pub use crate::port::quick::Untaken;
pub use ayre_proto::limits::EAGER_MAX;

//! Short messages and remote queues.
//!
//! A [short message](crate::Port::send) of up to [`EAGER_MAX`] bytes goes to a port without naming
//! memory; up to 56 bytes travel in one cache line. A [remote queue](crate::Queue) takes records of
//! many producers, each of which holds a [`RemoteQueue`](crate::RemoteQueue), for one consumer.
pub use crate::port::queue::Record;
pub use ayre_proto::limits::EAGER_MAX;

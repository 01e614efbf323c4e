//! Memory, locks and queues that the processes of one program share without ports: a process, its
//! children, and all to which it gives the memory's file.
//!
//! | I want to | use |
//! |---|---|
//! | share bytes | [`Region::shared`], [`Region::of_file`] |
//! | exclude other processes and threads | [`SharedLock`] |
//! | pass records from many to many | [`SharedQueue`] |
//!
//! A forked child has what its parent has. A started program gets a descriptor of the file
//! ([`Region::to_file`]) and opens that. These processes trust each other: each can write all of
//! the memory. A process that dies, at any point, harms no other: its locks are released, and a
//! record that it has not finished is not there.
//!
//! ```
//! use ayre::shared::SharedQueue;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let queue = SharedQueue::new(1 << 20, None)?;
//! let there = SharedQueue::of_file(queue.to_file()?)?; // as another process does
//! queue.enqueue_wait(&[b"hello, ", b"neighbour"], None)?;
//! let text = there.dequeue_wait(None, |record| record.to_vec())?;
//! assert_eq!(text, b"hello, neighbour");
//! # Ok(())
//! # }
//! ```
mod lock;
mod places;
mod queue;

pub use self::lock::{LockMisuse, SharedLock};
pub use self::queue::{SharedQueue, SharedRecord};
#[cfg(doc)]
use crate::mem::region::Region;
pub use crate::mem::robust::Taken;
use std::time::Duration;

/// The longest sleep before a wait looks again: a process may die after it has put a record, and
/// before it has woken others.
const SLEEP: Duration = Duration::from_millis(500);

//! Remote queues: the table that turns the number of a queue into an address (section III.B).
//!
//! ```text
//!   message: queue 7, 24 B     entry 7:  base | head | wrap
//!                                         |      |      '-- bytes of the queue
//!              address = base + head      '------+---> head += 24, and back to 0 at the wrap
//! ```
use thiserror::Error;

/// Entries of the table.
pub const ENTRIES: usize = 256;

/// A queue in the receiver's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The physical address of its first byte.
    pub base: u64,
    /// Bytes from there to the place of the next message.
    pub head: u64,
    /// The offset at which it begins anew.
    pub wrap: u64,
}

/// Why a message finds no place, or a queue cannot be made.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QueueError {
    /// There is no such queue.
    #[error("queue {0} does not exist: the table has {ENTRIES} entries, and this one is not set")]
    Missing(usize),
    /// A queue has no room at all, or goes beyond the last address.
    #[error("a queue of {wrap} B at {base:#x}: it needs room, and has to end within 64 bits")]
    Range {
        /// Its first address.
        base: u64,
        /// Its bytes.
        wrap: u64,
    },
    /// A message has no length, or is not a part of the queue.
    #[error("a message of {bytes} B: queue {queue} of {wrap} B has to be a multiple of it")]
    Bytes {
        /// The queue.
        queue: usize,
        /// Bytes of the message.
        bytes: u64,
        /// Bytes of the queue.
        wrap: u64,
    },
}

/// The queues translation table of a receiving interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    entries: Vec<Option<Entry>>,
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: vec![None; ENTRIES] }
    }
}

impl Table {
    /// Makes a queue of `wrap` bytes from `base` on, or makes it anew.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn set(&mut self, queue: usize, base: u64, wrap: u64) -> Result<(), QueueError> {
        if wrap == 0 || base.checked_add(wrap).is_none() {
            return Err(QueueError::Range { base, wrap });
        }
        let entry = self.entries.get_mut(queue).ok_or(QueueError::Missing(queue))?;
        *entry = Some(Entry { base, head: 0, wrap });
        Ok(())
    }

    /// A message arrives: its address. The head goes on by its length.
    ///
    /// The source does not say where a message goes that the wrap would cut. So all messages of a
    /// queue have a length of which the queue is a multiple, as descriptors and cache lines have.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn enqueue(&mut self, queue: usize, bytes: u64) -> Result<u64, QueueError> {
        let entry = self.entries.get_mut(queue).and_then(Option::as_mut);
        let entry = entry.ok_or(QueueError::Missing(queue))?;
        let wrap = entry.wrap;
        if bytes == 0 || !wrap.is_multiple_of(bytes) || bytes > wrap - entry.head {
            return Err(QueueError::Bytes { queue, bytes, wrap });
        }
        let address = entry.base + entry.head;
        entry.head = (entry.head + bytes) % wrap;
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn messages_of_many_senders_have_places_of_their_own_until_the_queue_begins_anew() {
        let mut table = Table::default();
        table.set(3, 0x1000, 64 * 24).expect("a possible queue");
        let first: Vec<_> = (0..64).map(|_| table.enqueue(3, 24).expect("room")).collect();
        let second: Vec<_> = (0..64).map(|_| table.enqueue(3, 24).expect("room")).collect();
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), 64);
        assert!(
            first.is_sorted() && first.iter().all(|at| (0x1000..0x1000 + 64 * 24).contains(at))
        );
        assert_eq!(first, second);
    }

    #[test]
    fn queues_do_not_disturb_each_other() {
        let mut table = Table::default();
        for queue in 0..ENTRIES {
            table.set(queue, 4096 * queue as u64, 4096).expect("a possible queue");
        }
        for round in 0..64 {
            for queue in 0..ENTRIES {
                let expected = 4096 * queue as u64 + 64 * round;
                assert_eq!(table.enqueue(queue, 64), Ok(expected));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut table = Table::default();
        assert_eq!(table.enqueue(0, 8), Err(QueueError::Missing(0)));
        assert_eq!(table.set(ENTRIES, 0, 8), Err(QueueError::Missing(ENTRIES)));
        let range = QueueError::Range { base: u64::MAX, wrap: 8 };
        assert_eq!(table.set(0, u64::MAX, 8), Err(range));
        table.set(0, 0, 64).expect("a possible queue");
        let before = table.clone();
        for bytes in [0, 24, 128] {
            assert_eq!(
                table.enqueue(0, bytes),
                Err(QueueError::Bytes { queue: 0, bytes, wrap: 64 })
            );
        }
        assert_eq!(table, before);
    }
}

//! Items on their way, by their time of arrival.
use alloc::collections::BinaryHeap;
use core::cmp::Ordering;

/// Things that arrive, each at its time; those of one time in the order in which they were sent.
#[derive(Clone, Debug)]
pub struct Flights<T> {
    /// The next to arrive on top.
    heap: BinaryHeap<Flight<T>>,
    order: u64,
}

#[derive(Clone, Debug)]
struct Flight<T> {
    due: u64,
    order: u64,
    item: T,
}

impl<T> Flight<T> {
    /// The sooner, the greater.
    const fn key(&self) -> (u64, u64) {
        (u64::MAX - self.due, u64::MAX - self.order)
    }
}

impl<T> PartialEq for Flight<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Flight<T> {}

impl<T> PartialOrd for Flight<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Flight<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), order: 0 }
    }
}

impl<T> Flights<T> {
    /// Something that arrives at this time.
    pub fn push(&mut self, due: u64, item: T) {
        self.order += 1;
        self.heap.push(Flight { due, order: self.order, item });
    }

    /// When the next one arrives.
    pub fn due(&self) -> Option<u64> {
        self.heap.peek().map(|flight| flight.due)
    }

    /// The next one that has arrived by now.
    pub fn take(&mut self, now: u64) -> Option<T> {
        if self.due()? > now {
            return None;
        }
        self.heap.pop().map(|flight| flight.item)
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Loses all of which this is not true.
    pub fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        self.heap.retain(|flight| stays(&flight.item));
    }
}

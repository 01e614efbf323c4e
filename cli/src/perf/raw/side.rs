//! One rank's side of a measurement: who it is, and how it stays in step with the other ranks.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::shared::{LINE, RawShared, layout};
use super::spin::spin_until;

/// What a case knows of its rank. All ranks must call `barrier` and `agree` in the same order.
pub(crate) struct Side<'a> {
    shared: &'a RawShared,
    rank: usize,
    ranks: usize,
    barriers: Cell<u64>,
}

impl<'a> Side<'a> {
    /// The side of `rank` out of `ranks`.
    pub(crate) fn new(shared: &'a RawShared, rank: usize, ranks: usize) -> Self {
        assert!(rank < ranks && ranks <= layout::MAX_RANKS);
        Self { shared, rank, ranks, barriers: Cell::new(0) }
    }

    /// This rank's number: 0 measures, 1 mirrors what 0 does.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The rank at the other end.
    pub(crate) fn other(&self) -> usize {
        1 - self.rank
    }

    /// Whether this is the rank whose clock counts.
    pub(crate) fn measures(&self) -> bool {
        self.rank == 0
    }

    /// The plain shared memory between the ranks.
    pub(crate) fn shared(&self) -> &'a RawShared {
        self.shared
    }

    /// Waits until every rank has come here.
    pub(crate) fn barrier(&self) {
        let round = self.barriers.get() + 1;
        self.barriers.set(round);
        // Release: what this rank did before is visible to whoever sees the arrival (Acquire
        // below).
        self.arrival(self.rank).store(round, Release);
        for rank in 0..self.ranks {
            spin_until(|| self.arrival(rank).load(Acquire) >= round);
        }
    }

    /// Rank 0's `value`, on every rank.
    pub(crate) fn agree(&self, value: u64) -> u64 {
        let announcement = self.shared.word(layout::ANNOUNCEMENT);
        if self.measures() {
            // Relaxed: the barrier that follows publishes it.
            announcement.store(value, Relaxed);
        }
        self.barrier();
        let agreed = announcement.load(Relaxed);
        // Nobody may announce the next value before all have read this one.
        self.barrier();
        agreed
    }

    fn arrival(&self, rank: usize) -> &AtomicU64 {
        self.shared.word(layout::ARRIVALS + rank * 2 * LINE)
    }
}

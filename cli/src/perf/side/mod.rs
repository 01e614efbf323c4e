//! One rank's side of a measurement: who it is, and how it stays in step with the other ranks.

pub(crate) mod buffer;
pub(crate) mod realtime;
pub(crate) mod shared;
pub(super) mod sleep;
pub(crate) mod spin;

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use shared::{LINE, RawShared, layout};
use spin::spin_until;

/// The state of a case at its rank. All ranks must call `barrier` and `agree` in the same order.
pub(crate) struct Side<'a> {
    shared: &'a RawShared,
    rank: usize,
    ranks: usize,
    cores: usize,
    barriers: Cell<u64>,
}

impl<'a> Side<'a> {
    /// The side of `rank` out of `ranks`, which share `cores`.
    pub(crate) fn new(shared: &'a RawShared, rank: usize, ranks: usize, cores: usize) -> Self {
        assert!(rank < ranks && ranks <= layout::MAX_RANKS);
        Self { shared, rank, ranks, cores, barriers: Cell::new(0) }
    }

    /// This rank's number: 0 measures, the others mirror what 0 does.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    /// How many cores they share.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    /// The rank at the other end, where there are two.
    pub(crate) fn other(&self) -> usize {
        1 - self.rank
    }

    /// Whether this is the rank whose clock counts.
    pub(crate) fn measures(&self) -> bool {
        self.rank == 0
    }

    /// Tells the process that has started the ranks how many rows were printed.
    pub(crate) fn tell_rows(&self, rows: u64) {
        self.shared.word(layout::ROWS).store(rows, Release);
    }

    /// The plain shared memory between the ranks.
    pub(crate) fn shared(&self) -> &'a RawShared {
        self.shared
    }

    /// Waits until every rank has come here: awake where each has a core, else asleep.
    pub(crate) fn barrier(&self) {
        let round = self.arrive();
        if self.is_crowded() {
            sleep::until(self.shared.half_word(layout::MEETING + LINE), round as u32);
        } else {
            spin_until(|| self.all_arrived(round));
        }
    }

    /// The first half of a barrier, for a rank that has something to do while it waits: says that
    /// this rank has come, and returns what to ask [`Side::all_arrived`] for.
    pub(crate) fn arrive(&self) -> u64 {
        let round = self.barriers.get() + 1;
        self.barriers.set(round);
        if !self.is_crowded() {
            // Release: what this rank did before is visible to whoever sees the arrival (Acquire
            // in `all_arrived`).
            self.arrival(self.rank).store(round, Release);
        // AcqRel: whoever opens the round passes on what all arrivals published.
        } else if self.shared.word(layout::MEETING).fetch_add(1, AcqRel) + 1
            == round * self.ranks as u64
        {
            sleep::open(self.shared.half_word(layout::MEETING + LINE), round as u32);
        }
        round
    }

    /// Whether every rank has come to the barrier of this round.
    pub(crate) fn all_arrived(&self, round: u64) -> bool {
        if self.is_crowded() {
            // Acquire: pairs with the Release in `sleep::open`.
            return self.shared.half_word(layout::MEETING + LINE).load(Acquire) == round as u32;
        }
        (0..self.ranks).all(|rank| self.arrival(rank).load(Acquire) >= round)
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

    /// Whether ranks take turns on the cores.
    pub(super) fn is_crowded(&self) -> bool {
        self.ranks > self.cores
    }

    fn arrival(&self, rank: usize) -> &AtomicU64 {
        self.shared.word(layout::ARRIVALS + rank * 2 * LINE)
    }
}

//! A budget for the memory of all rings of this process.
use super::caches::stream_width;
use crate::machine::host::ranks_here;
use crate::machine::memory;
use crate::machine::memory_file::fallback_folder;
use crate::sync::{Ordering, StaticCounter};
use ayre_proto::ring::NARROW;
use std::sync::OnceLock;

/// The share of the usable memory that the rings of one process get together, and those of all
/// ranks that a launcher has started on a host.
const SHARE_OF_ONE: u64 = 64;
const SHARE_OF_RANKS: u64 = 8;
/// The number of rings that may have their full width.
// spec: LIM-4, AM-12
const FEW: u64 = 16;
/// Bytes of each ring beyond those few.
const OF_MANY: u64 = 1 << 18;

/// The budget of the process's rings and the bytes in use: rings that it writes to processes of its
/// host, rings of its links, and landings of its messengers.
#[derive(Debug)]
pub(crate) struct Rings {
    bytes: u64,
    taken: StaticCounter,
    /// The number of rings within this host that are wider than [`OF_MANY`].
    wide: StaticCounter,
}

impl Rings {
    /// The budget of this process.
    // spec: LIM-5, LIFE-41
    pub(crate) fn of_process() -> &'static Self {
        static RINGS: OnceLock<Rings> = OnceLock::new();
        RINGS.get_or_init(|| {
            let room = fallback_folder().map_or(u64::MAX, |place| place.free);
            Self::of(memory::limit().min(room), ranks_here())
        })
    }

    /// The budget of one of `ranks` processes, the number that the launcher gives, which may use
    /// `limit` bytes together.
    // spec: LIM-5
    fn of(limit: u64, ranks: usize) -> Self {
        let bytes = limit / SHARE_OF_ONE.max(SHARE_OF_RANKS * ranks as u64);
        Self { bytes, taken: StaticCounter::new(0), wide: StaticCounter::new(0) }
    }

    /// The budget in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The largest number of bytes that one ring within this host may have.
    // spec: LIM-4, LIM-5
    pub(crate) fn widest(&self) -> u64 {
        power_of_two(self.bytes / 2).min(stream_width() as u64).max(NARROW)
    }

    /// The bytes that each of `rings` new rings can have now: a power of two, at most `wanted`.
    /// Where `is_alone` is set, other rings of the process do not count. A simulated network sets
    /// it, so that a run does not depend on the rest of the process.
    // spec: LIM-5, NET-9
    pub(crate) fn affordable(&self, wanted: usize, rings: u64, is_alone: bool) -> usize {
        // Relaxed, here and below: a count, which orders nothing.
        let taken = if is_alone { 0 } else { self.taken.load(Ordering::Relaxed) };
        let left = self.bytes.saturating_sub(taken);
        let most = power_of_two(left / (rings + 1)).max(NARROW);
        wanted.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    fn takes_one_more_wide(&self) -> bool {
        let one_more = |wide| (wide < FEW).then_some(wide + 1);
        self.wide.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Gives a ring `more` bytes, so that it has `bytes`, if as many remain for others.
    fn gives(&self, more: u64, bytes: u64) -> bool {
        let given = |taken: u64| {
            let taken = taken + more;
            (taken + bytes <= self.bytes || bytes <= NARROW).then_some(taken)
        };
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, given).is_ok()
    }
}

/// The share of one ring in the budget, which is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    /// None where another object accounts for the memory.
    rings: Option<&'static Rings>,
    bytes: u64,
    /// The ring is one of the few wide ones.
    is_wide: bool,
}

impl Share {
    /// The share of a ring that uses nothing yet.
    pub(crate) const fn of(rings: &'static Rings) -> Self {
        Self { rings: Some(rings), bytes: 0, is_wide: false }
    }

    /// The share of a ring for which another object accounts.
    pub(crate) const fn none() -> Self {
        Self { rings: None, bytes: 0, is_wide: false }
    }

    /// A share of `bytes`, which is granted in any case.
    pub(crate) fn taken(rings: &'static Rings, bytes: u64) -> Self {
        rings.taken.fetch_add(bytes, Ordering::Relaxed);
        Self { rings: Some(rings), bytes, is_wide: false }
    }

    /// Raises the share to `bytes` if the budget has room; returns whether it did. Only a few rings
    /// become wide, and none gets more than remains for others, so that many rings come to equal
    /// parts. Bytes that were granted in any case count, too.
    // spec: ENV-42, LIM-5
    pub(crate) fn widen(&mut self, bytes: u64) -> bool {
        let Some(rings) = self.rings else { return false };
        let becomes_wide = bytes > OF_MANY && !self.is_wide;
        if becomes_wide && !rings.takes_one_more_wide() {
            return false;
        }
        let given = rings.gives(bytes - self.bytes, bytes);
        if given {
            (self.bytes, self.is_wide) = (bytes, self.is_wide || becomes_wide);
        } else if becomes_wide {
            rings.wide.fetch_sub(1, Ordering::Relaxed);
        }
        given
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(rings) = self.rings else { return };
        rings.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        rings.wide.fetch_sub(self.is_wide.into(), Ordering::Relaxed);
    }
}

/// Whether one more ring beside these is still one of the few.
pub(crate) const fn are_few(others: usize) -> bool {
    (others as u64) < FEW
}

/// The greatest power of two that is at most this.
fn power_of_two(most: u64) -> u64 {
    most.checked_ilog2().map_or(0, |log| 1 << log)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn budget(limit: u64, ranks: usize) -> &'static Rings {
        Box::leak(Box::new(Rings::of(limit, ranks)))
    }

    /// Doubles the share as often as possible; returns its bytes.
    fn widened(share: &mut Share) -> u64 {
        let mut bytes = share.bytes.max(NARROW);
        while share.widen(bytes) && bytes < 4 * MIB {
            bytes *= 2;
        }
        share.bytes
    }

    // spec: LIM-5
    #[test]
    fn the_rings_of_a_process_have_a_part_of_the_memory_that_its_ranks_share() {
        assert_eq!([0, 1, 2, 8].map(|ranks| Rings::of(128 * MIB, ranks).bytes()), [2 * MIB; 4]);
        assert_eq!(Rings::of(128 * MIB, 64).bytes(), MIB / 4);
        let widest = |limit| Rings::of(limit, 1).widest();
        assert_eq!([0, 8 * MIB, 64 * MIB].map(widest), [NARROW, NARROW, MIB / 2]);
        assert_eq!(widest(u64::MAX), stream_width() as u64);
    }

    // spec: ENV-42, LIM-5
    #[test]
    fn a_ring_widens_while_as_much_is_left_for_others() {
        let rings = budget(128 * MIB, 8);
        let mut first = Share::of(rings);
        assert_eq!(widened(&mut first), MIB, "half of all");
        let mut others = [(); 5].map(|()| Share::of(rings));
        let each = others.each_mut().map(widened);
        assert_eq!(each, [MIB / 2, MIB / 4, MIB / 8, NARROW, NARROW]);
        let mut late = Share::of(rings);
        assert!(late.widen(NARROW) && !late.widen(2 * NARROW), "no less than all have in any case");
        drop(first);
        assert_eq!(widened(&mut late), MIB / 2, "what goes is there for others");
    }

    // spec: ENV-42, LIM-5
    #[test]
    fn rings_that_widen_by_turns_have_equal_parts() {
        let rings = budget(128 * MIB, 8);
        let mut shares = [(); 7].map(|()| Share::of(rings));
        for bytes in [NARROW, 2 * NARROW, 4 * NARROW] {
            assert!(shares.iter_mut().all(|share| share.widen(bytes)), "{bytes}");
        }
        assert!(!shares.iter_mut().any(|share| share.widen(8 * NARROW)));
        let together: u64 = shares.iter().map(|share| share.bytes).sum();
        assert!(together <= rings.bytes());
        drop(shares);
        assert_eq!(
            rings.affordable(usize::MAX, 0, false) as u64,
            rings.bytes(),
            "all of it came back"
        );
    }

    // spec: LIM-4, ENV-42
    #[test]
    fn few_rings_are_wide_however_much_memory_there_is() {
        let rings = budget(u64::MAX, 1);
        let mut shares: Vec<_> = (0..FEW + 2).map(|_| Share::of(rings)).collect();
        let widths: Vec<_> = shares.iter_mut().map(widened).collect();
        let (few, others) = widths.split_at(FEW as usize);
        assert!(few.iter().all(|bytes| *bytes > OF_MANY), "{widths:?}");
        assert!(others.iter().all(|bytes| *bytes == OF_MANY), "{widths:?}");
        shares.remove(0);
        assert!(shares.last_mut().is_some_and(|share| share.widen(2 * OF_MANY)), "one has gone");
    }

    // spec: LIM-5, AM-12
    #[test]
    fn rings_of_a_fixed_length_are_shorter_where_there_is_little_memory() {
        let rings = budget(128 * MIB, 1);
        let lens: Vec<_> = (0..6)
            .map(|_| {
                let len = rings.affordable(MIB as usize, 2, false) as u64;
                let both = Share::taken(rings, 2 * len);
                (len, both)
            })
            .collect();
        let lens: Vec<_> = lens.iter().map(|(len, _)| *len).collect();
        assert_eq!(lens, [MIB / 2, MIB / 4, MIB / 8, NARROW, NARROW, NARROW]);
        assert_eq!(budget(0, 1).affordable(usize::MAX, 1, false) as u64, NARROW);
        assert_eq!(budget(0, 1).affordable(7, 1, false), 7, "no more than is wanted");
        assert!(are_few(15) && !are_few(16));
    }
}

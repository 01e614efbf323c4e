//! How wide memory is that two processors stream through.
use crate::job::{memory, ranks_here};
use std::fs;
use std::sync::OnceLock;

/// A processor's own cache, where the system does not say.
const USUAL: usize = 1 << 20;
/// Narrower, what is read is fetched from the writer's first-level cache; wider, it takes memory
/// for nothing.
const WIDTHS: [usize; 2] = [1 << 20, 1 << 22];

/// Bytes of memory through which one processor streams to another one: twice what is in its own
/// caches. What it has written is then in the cache that they share when the other one reads it,
/// from where it comes several times as fast as from the writer's own.
// spec: LIM-4
fn stream_width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let said = fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size");
        width_for(said.ok().and_then(|said| kilobytes(&said)).unwrap_or(USUAL))
    })
}

/// How many streams of a port or an endpoint are as wide as they are at best.
// spec: LIM-4, AM-12
const FEW: usize = 16;

/// The part of the memory that may be used which the streams of a launcher's ranks on a host have
/// together, and those of one process, and the narrowest.
const SHARE_OF_RANKS: u64 = 8;
const SHARE_OF_ONE: u64 = 64;
const NARROWEST: usize = 1 << 16;

/// The same of one beside so many others: of many, each is narrow; and where there is little
/// memory, so is each of few.
// spec: LIM-4, LIM-5
pub(crate) fn stream_width_beside(others: usize, narrow: usize) -> usize {
    let wanted = if are_few(others) { stream_width() } else { narrow };
    affordable(wanted, others, (memory::limit(), ranks_here()))
}

/// As much of a width as there is memory for: each of the ranks of this host, as many as the
/// launcher says, streams to each other one; and a process, to each that it is connected with.
fn affordable(wanted: usize, others: usize, (limit, ranks): (u64, usize)) -> usize {
    let (ranks, streams) = (ranks as u64, 2 * (others as u64 + 1));
    let of_ranks = limit / SHARE_OF_RANKS / (ranks * (ranks - 1)).max(1);
    let most = of_ranks.min(limit / SHARE_OF_ONE / streams);
    let most = most.checked_ilog2().map_or(0, |log| 1_u64 << log);
    wanted.min(usize::try_from(most).unwrap_or(usize::MAX).max(NARROWEST))
}

/// Whether one more beside so many is one of those few.
pub(crate) const fn are_few(others: usize) -> bool {
    others < FEW
}

/// Bytes, as the system says them: `1024K`.
fn kilobytes(said: &str) -> Option<usize> {
    let count: usize = said.trim().strip_suffix('K')?.parse().ok()?;
    count.checked_mul(1 << 10)
}

fn width_for(own_cache: usize) -> usize {
    let [narrowest, widest] = WIDTHS;
    own_cache.min(widest).saturating_mul(2).next_power_of_two().clamp(narrowest, widest)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // spec: LIM-4
    #[test]
    fn streams_are_wider_than_caches() {
        assert_eq!(kilobytes("1024K\n").map(width_for), Some(2 << 20));
        assert_eq!(kilobytes("1280K\n").map(width_for), Some(4 << 20));
        assert_eq!([0, 1 << 18, 1 << 19].map(width_for), [1 << 20; 3]);
        assert_eq!([2 << 20, usize::MAX].map(width_for), [4 << 20; 2]);
        assert_eq!(["", "K", "1M", "-1K", "99999999999999999999K"].map(kilobytes), [None; 5]);
        assert!(stream_width().is_power_of_two());
    }

    // spec: LIM-5
    #[test]
    fn streams_are_narrower_where_there_is_little_memory() {
        let (wide, mib) = (2 << 20, 1 << 20_u64);
        let of = |limit, ranks, others| affordable(wide, others, (limit, ranks));
        assert_eq!([1, 8, 64].map(|ranks| of(16 << 30, ranks, 0)), [wide, wide, 1 << 19]);
        assert_eq!(of(128 * mib, 8, 0), 1 << 18, "as many as the launcher says");
        let meet = [0, 1, 2, 7, 99].map(|others| of(128 * mib, 1, others));
        assert_eq!(meet, [1 << 20, 1 << 19, 1 << 18, 1 << 17, NARROWEST]);
        assert_eq!([63, 499].map(|others| of(16 << 30, 1, others)), [wide, 1 << 18]);
        assert_eq!(of(0, 1000, 0), NARROWEST);
        assert_eq!(affordable(7, 0, (u64::MAX, 1)), 7);
    }

    // spec: LIM-4, AM-12
    #[test]
    fn streams_are_narrower_where_there_are_many() {
        assert_eq!([0, 15].map(|others| stream_width_beside(others, 7)), [stream_width(); 2]);
        assert_eq!([16, 4095].map(|others| stream_width_beside(others, 7)), [7; 2]);
    }
}

//! The amount of memory through which one processor streams to another one.
use std::fs;
use std::sync::OnceLock;

/// The assumed size of a processor's own cache, where the system does not report it.
const USUAL: usize = 1 << 20;
/// The least and the greatest width. In a narrower ring, data is fetched from the writer's
/// first-level cache; a wider one only costs memory.
const WIDTHS: [usize; 2] = [1 << 20, 1 << 22];

/// Bytes of the narrowest ring of processes that take turns: four pieces.
const NARROWEST: usize = 1 << 17;

/// Bytes of memory through which one processor streams to another one: twice the size of its own
/// caches. When the other one reads, the data is then in the cache that both share, from where it
/// comes several times as fast as from the writer's own cache.
// spec: LIM-4
pub(crate) fn stream_width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let said = fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size");
        width_for(said.ok().and_then(|said| kilobytes(&said)).unwrap_or(USUAL))
    })
}

/// Bytes of each ring between this number of processes that take turns on their processors. All
/// these rings together have twice [`stream_width`]: the data of one process is still in the caches
/// when another one reads it.
// spec: LIM-6
pub(crate) fn width_in_turns(processes: usize) -> usize {
    share_of(stream_width(), processes)
}

fn share_of(width: usize, processes: usize) -> usize {
    let rings = processes.saturating_mul(processes.saturating_sub(1)).max(2);
    let each = (2 * width / rings).checked_ilog2().map_or(0, |log| 1 << log);
    each.max(NARROWEST)
}

/// Parses a number of bytes as the system writes it: `1024K`.
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

    // spec: LIM-6
    #[test]
    fn rings_of_processes_that_take_turns_fit_the_caches_together() {
        let mib = 1 << 20;
        let shares = [0, 1, 2, 3, 4, 5, 8, usize::MAX].map(|many| share_of(2 * mib, many));
        let narrow = NARROWEST;
        assert_eq!(shares, [2 * mib, 2 * mib, 2 * mib, mib / 2, mib / 4, narrow, narrow, narrow]);
    }

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
}

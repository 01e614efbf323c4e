//! How wide memory is that two processors stream through.
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
pub(crate) fn stream_width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let said = fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size");
        width_for(said.ok().and_then(|said| kilobytes(&said)).unwrap_or(USUAL))
    })
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
}

//! Waiting for the other rank by reading its line again and again.

use std::hint::spin_loop;
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// After this number of pauses (some ten microseconds) the other rank most likely has no core.
const SPIN_LIMIT: u32 = 1 << 10;

/// Spins until `ready`, with a pause between two looks. The core is given away only after a wait
/// longer than anything measured, so that two ranks on one core still make progress.
#[inline(always)]
pub(crate) fn spin_until(ready: impl FnMut() -> bool) {
    spin_slowly_until::<1>(ready);
}

/// Spins with `PAUSES` pauses between two looks. A rank that looks too often takes the line away
/// from the writing rank, and a stream falls into step with its slower moments.
#[inline(always)]
pub(in crate::perf) fn spin_slowly_until<const PAUSES: u32>(mut ready: impl FnMut() -> bool) {
    let mut spins = 0u32;
    while !ready() {
        for _ in 0..PAUSES {
            spin_loop();
        }
        spins += PAUSES;
        if spins >= SPIN_LIMIT {
            spins = 0;
            give_way();
        }
    }
}

/// Lets so much time pass that a rank which waits asleep has fallen asleep.
pub(crate) fn let_fall_asleep() {
    const LONG: Duration = Duration::from_micros(30);
    let start = Instant::now();
    while start.elapsed() < LONG {
        spin_loop();
    }
}

#[cold]
fn give_way() {
    yield_now();
}

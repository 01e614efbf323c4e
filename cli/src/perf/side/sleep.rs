//! Waiting for another rank asleep: a futex, the kernel's shortest way to wake a process.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::thread::futex::{Flags, wait, wake};

/// Sleeps until `word` has this value, which it is given but once.
pub(in crate::perf) fn until(word: &AtomicU32, value: u32) {
    loop {
        // Acquire: pairs with the Release in `open`.
        let seen = word.load(Acquire);
        if seen == value {
            return;
        }
        // Woken for nothing, interrupted, or too late to sleep: the next look tells.
        let _ = wait(word, Flags::empty(), seen, None);
    }
}

/// Gives `word` this value and wakes all who sleep until then.
pub(in crate::perf) fn open(word: &AtomicU32, value: u32) {
    // Release: what was done before is visible to whoever sees the value.
    word.store(value, Release);
    // Wakes nobody where nobody sleeps; it cannot fail on a mapped word.
    let _ = wake(word, Flags::empty(), i32::MAX as u32);
}

//! A count that all processes of a host share, in a unit of its own. It puts the acts of processes
//! in an order, as far as the processors count alike, and is read faster than the system's clock.

/// The count. All that comes before in the program is done by then, and the rest begins later.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(crate) fn count() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: each x86-64 processor has these instructions.
    unsafe {
        _mm_lfence();
        let cycles = _rdtsc();
        _mm_lfence();
        cycles
    }
}

/// The count.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
pub(crate) fn count() -> u64 {
    let count: u64;
    // SAFETY: each process may read this counter.
    unsafe { std::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) count) };
    count
}

/// Other processors have no such count: events have no order there.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub(crate) fn count() -> u64 {
    0
}

//! Context switches of a thread.
use std::mem::MaybeUninit;

/// The number of times that this thread has left its processor: to sleep, to yield where others
/// wait, or at the end of its time slice. 0 where the system does not count.
pub(crate) fn switches() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: there is room for what the call writes, and zeros are a usage if it writes nothing.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::event::{Timespec, poll};

    #[test]
    fn a_sleep_counts_as_a_context_switch() {
        let before = switches();
        poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 })).expect("it can wait");
        assert!(switches() > before);
    }
}

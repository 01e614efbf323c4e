//! A place where threads wait for each other for microseconds.
//!
//! Parts of a network meet after each window of time, which takes a processor 50 us or so. The
//! standard library's barrier sends threads to sleep, with which a dragonfly of 1,056 nodes took a
//! third more time. So a thread looks for the others a while, and then lets other programs run.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that meet again and again.
pub(super) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all have met.
    met: AtomicUsize,
}

/// Looks for the others before a thread lets other programs run.
const LOOKS: u32 = 1_000;

impl Meeting {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), met: AtomicUsize::new(0) }
    }

    /// Waits until all threads have come. Each sees afterwards what others did before.
    pub(super) fn wait(&self) {
        // It cannot change before this thread has come.
        let met = self.met.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Nobody comes again before the store that follows.
            self.arrived.store(0, Ordering::Relaxed);
            self.met.store(met.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.met.load(Ordering::Acquire) == met {
            looks += 1;
            if looks < LOOKS {
                core::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_leaves_a_meeting_before_all_have_come() {
        const THREADS: usize = 3;
        let meeting = Meeting::new(THREADS);
        let come = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 1..=500 {
                        come.fetch_add(1, Ordering::Relaxed);
                        meeting.wait();
                        let seen = come.load(Ordering::Relaxed);
                        // Others may have gone on to the next meeting, but not further.
                        assert!((THREADS * round..THREADS * (round + 1)).contains(&seen));
                    }
                });
            }
        });
    }
}

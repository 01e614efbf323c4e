//! A place where threads wait for each other for microseconds.
//!
//! Parts of a network meet after each window of time, which takes a processor 50 us or so. The
//! standard library's barrier sends threads to sleep, with which a dragonfly of 1,056 nodes took a
//! third more time. So a thread looks for the others a while, and then lets other programs run.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Threads that meet again and again.
pub(super) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all have met.
    met: AtomicUsize,
    /// Whether a thread has panicked, and so does not come again.
    is_over: AtomicBool,
}

/// A thread that takes part. The others end if it panics.
pub(super) struct Attendance<'a>(&'a Meeting);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// Looks for the others before a thread lets other programs run.
const LOOKS: u32 = 1_000;

impl Meeting {
    pub(super) fn new(threads: usize) -> Self {
        let is_over = AtomicBool::new(false);
        Self { threads, arrived: AtomicUsize::new(0), met: AtomicUsize::new(0), is_over }
    }

    pub(super) fn attend(&self) -> Attendance<'_> {
        Attendance(self)
    }

    /// Waits until all threads have come. Each sees afterwards what others did before.
    ///
    /// # Panics
    /// If one of them has panicked.
    pub(super) fn wait(&self) {
        // It cannot change before this thread has come.
        let met = self.met.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // The other threads wait for the store to `met`, so none arrives again before it.
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
                assert!(!self.is_over.load(Ordering::Relaxed), "another part has panicked");
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

    #[test]
    fn a_thread_that_panics_ends_the_meeting() {
        let meeting = Meeting::new(2);
        std::thread::scope(|scope| {
            let gone = scope.spawn(|| {
                let _attends = meeting.attend();
                panic!("as planned");
            });
            let stays = scope.spawn(|| meeting.wait());
            assert!(gone.join().is_err());
            assert!(stays.join().is_err());
        });
    }
}

//! A model of an epoll that sleeps for a stream, through all interleavings: the code of
//! [`super::doorbell`] over loom's words. The epoll is awake at first, and its peer has its bell.
//! The bell's counter is under a lock, as in the kernel.
//!
//! An epoll that sleeps while its stream has bytes sleeps for ever, which loom reports.
use super::doorbell::{Doorbell, Sleep, tell, told};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use ayre_proto::socket::Wants;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Faults. If the model passes with one of them, it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// One that rings looks whether the owner sleeps before its mark is visible.
    DisturbsWithoutFence,
    /// The owner looks at marks before its word is visible.
    BeginsWithoutFence,
    /// The owner sleeps without a look at marks.
    SleepsAtOnce,
}

const MUTANTS: [Mutant; 3] =
    [Mutant::DisturbsWithoutFence, Mutant::BeginsWithoutFence, Mutant::SleepsAtOnce];

/// The number of bytes.
const BYTES: u64 = 2;

struct Bed {
    written: AtomicU64,
    wants: AtomicU32,
    mark: AtomicU32,
    sleep: AtomicU32,
    is_rung: Mutex<bool>,
    changed: Condvar,
    mutant: Mutant,
}

impl Bed {
    fn new(mutant: Mutant) -> Self {
        Self {
            written: AtomicU64::new(0),
            wants: AtomicU32::new(Wants::Bell(0).to_word()),
            mark: AtomicU32::new(0),
            sleep: AtomicU32::new(1),
            is_rung: Mutex::new(false),
            changed: Condvar::new(),
            mutant,
        }
    }

    fn wants(&self) -> Doorbell<'_> {
        Doorbell::over(&self.wants)
    }

    fn is_to_be_rung(&self) -> bool {
        match self.mutant {
            // Relaxed: the mutant's.
            Mutant::DisturbsWithoutFence => {
                self.sleep.load(Ordering::Relaxed) == 0 && {
                    // Relaxed: the mutant's.
                    self.sleep.swap(1, Ordering::Relaxed) == 0
                }
            }
            _ => Sleep::over(&self.sleep).disturb(),
        }
    }

    /// As a writer, and `Pair::ring`.
    fn write(&self) {
        for tail in 1..=BYTES {
            tell(&self.written, tail);
            let wants = self.wants().look();
            if wants.bell().is_none() || !self.wants().take(wants) {
                continue;
            }
            // SOCK-R4: as of BellMemory::mark.
            self.mark.fetch_or(1, Ordering::Release);
            if self.is_to_be_rung() {
                *self.is_rung.lock().expect("nobody panics") = true;
                self.changed.notify_all();
            }
        }
    }

    /// As `Streams::lie_down`: whether there are marks.
    fn lie_down(&self) -> bool {
        match self.mutant {
            // Relaxed: the mutant's.
            Mutant::BeginsWithoutFence => self.sleep.store(0, Ordering::Relaxed),
            _ => Sleep::over(&self.sleep).begin(),
        }
        // Relaxed: a look; the swap orders.
        self.mutant != Mutant::SleepsAtOnce && self.mark.load(Ordering::Relaxed) != 0
    }

    /// As `Set::wait`, until all bytes were seen.
    fn read(&self) {
        let mut read = 0;
        let mut is_hot = false;
        while read < BYTES {
            // SOCK-A4: as of BellMemory::take_marks.
            if self.mark.swap(0, Ordering::Acquire) != 0 {
                self.wants().set(Wants::Looking);
                is_hot = true;
            }
            if is_hot && told(&self.written) > read {
                read = told(&self.written);
                continue;
            }
            if is_hot {
                self.wants().set(Wants::Bell(0));
                is_hot = false;
                if told(&self.written) > read {
                    is_hot = true;
                    continue;
                }
            }
            if self.lie_down() {
                continue;
            }
            let mut is_rung = self.is_rung.lock().expect("nobody panics");
            while !*is_rung {
                is_rung = self.changed.wait(is_rung).expect("nobody panics");
            }
            *is_rung = false;
            drop(is_rung);
            Sleep::over(&self.sleep).end();
        }
    }
}

fn check(mutant: Mutant) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(move || {
        let bed = Arc::new(Bed::new(mutant));
        let writing = bed.clone();
        let writer = thread::spawn(move || writing.write());
        bed.read();
        writer.join().expect("the writer ends");
    });
}

// spec: SOCK-48
#[test]
fn no_epoll_sleeps_while_its_stream_has_bytes() {
    check(Mutant::None);
    for mutant in MUTANTS {
        let run = AssertUnwindSafe(|| check(mutant));
        let failure = catch_unwind(run).expect_err("some run of the model shows the mutant");
        let text = failure.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(text.contains("deadlock"), "{mutant:?} fails for another reason: {text}");
    }
}

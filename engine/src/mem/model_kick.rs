//! A model of kicks, through all interleavings: a control channel on which a port sleeps, a second
//! thread of the port that takes events, and a sender. The sender omits a kick where the last one
//! was not taken. The essential lines of [`crate::peer::control`] and [`crate::port::wait`] are
//! here in the same order; the kernel's state of the channel is under a lock, as in the kernel.
//!
//! A lost wake-up leaves the port asleep for ever, which loom reports.
use super::fence::{self, Fencing};
use crate::sync::{AtomicU64, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Faults. If the model passes with one of them, it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// The taker of a kick does not wake the other thread.
    NoPassing,
    /// The port takes events after its last look.
    TakesLast,
    /// A sender reads the flag before its message is visible.
    NoLightFence,
    /// The port looks before its flag is visible.
    NoHeavyFence,
}

const MUTANTS: [Mutant; 4] =
    [Mutant::NoPassing, Mutant::TakesLast, Mutant::NoLightFence, Mutant::NoHeavyFence];

/// The number of messages.
const MESSAGES: u64 = 2;

struct Bed {
    asleep: AtomicU64,
    /// The number of messages published.
    published: AtomicU64,
    channel: Mutex<Channel>,
    changed: Condvar,
    mutant: Mutant,
}

/// The events that can end the port's sleep.
#[derive(Default)]
struct Channel {
    /// There is a kick that was not taken.
    is_unread: bool,
    /// The other thread has rung the port's own bell.
    is_rung: bool,
}

impl Bed {
    fn new(mutant: Mutant) -> Self {
        let word = || AtomicU64::new(0);
        let (channel, changed) = (Mutex::new(Channel::default()), Condvar::new());
        Self { asleep: word(), published: word(), channel, changed, mutant }
    }

    fn lacks(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    /// As `Link::kick` and `Channel::ring`.
    fn kick(&self, fencing: Fencing) {
        if !self.lacks(Mutant::NoLightFence) {
            fencing.light();
        }
        // Relaxed: as PeerPage::is_asleep.
        if self.asleep.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut channel = self.channel.lock().expect("nobody panics");
        if !channel.is_unread {
            channel.is_unread = true;
            self.changed.notify_all();
        }
    }

    /// As `Sleep::look`, by either thread.
    fn take(&self) -> bool {
        std::mem::take(&mut self.channel.lock().expect("nobody panics").is_unread)
    }

    /// The port's other thread, as `EngineShared::sleep_unless_work`.
    fn take_beside(&self) {
        if self.take() && !self.lacks(Mutant::NoPassing) {
            self.channel.lock().expect("nobody panics").is_rung = true;
            self.changed.notify_all();
        }
    }

    /// As `Port::sleep_unless` in `Port::wait_asleep`.
    fn wait_for(&self, count: u64) {
        // Relaxed: the fences order it, or the thread that has woken us.
        let is_there = || self.published.load(Ordering::Relaxed) >= count;
        // Relaxed: as OwnPage::set_asleep.
        let announce = |asleep| self.asleep.store(asleep, Ordering::Relaxed);
        loop {
            self.take();
            if is_there() {
                return;
            }
            announce(1);
            if !self.lacks(Mutant::NoHeavyFence) {
                fence::heavy();
            }
            if !is_there() {
                if self.lacks(Mutant::TakesLast) {
                    self.take();
                }
                let mut channel = self.channel.lock().expect("nobody panics");
                while !channel.is_unread && !channel.is_rung {
                    channel = self.changed.wait(channel).expect("nobody panics");
                }
                channel.is_rung = false;
            }
            announce(0);
        }
    }
}

fn kicks(fencing: Fencing, mutant: Mutant) {
    let bed = Arc::new(Bed::new(mutant));
    let (sender, other) = (bed.clone(), bed.clone());
    let sender = thread::spawn(move || {
        for count in 1..=MESSAGES {
            // Relaxed: the light fence orders it.
            sender.published.store(count, Ordering::Relaxed);
            sender.kick(fencing);
        }
    });
    let other = thread::spawn(move || other.take_beside());
    (1..=MESSAGES).for_each(|count| bed.wait_for(count));
    sender.join().expect("the sender ends");
    other.join().expect("the other thread ends");
}

fn check(fencing: Fencing, mutant: Mutant) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(move || kicks(fencing, mutant));
}

// spec: LANE-12, LANE-15, WAIT-3
#[test]
fn a_kick_that_was_left_out_or_taken_by_the_other_thread_is_not_missed() {
    for fencing in [Fencing::Symmetric, Fencing::Asymmetric] {
        check(fencing, Mutant::None);
        for mutant in MUTANTS {
            let run = AssertUnwindSafe(|| check(fencing, mutant));
            let failure = catch_unwind(run).expect_err("some run of the model shows the mutant");
            let text = failure.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or_default();
            assert!(text.contains("deadlock"), "{mutant:?} fails for another reason: {text}");
        }
    }
}

//! A model of a stream whose bytes go by a ring, through all interleavings: the code of
//! [`super::doorbell`] over loom's words. A ring for one byte, a writer that sleeps while it is
//! full, and a reader that sleeps while it is empty. The bells are under a lock, as in the kernel.
//!
//! An end that sleeps while it could go on sleeps for ever, which loom reports.
use super::doorbell::{Doorbell, Sleep, tell, told};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use ayre_proto::socket::Wants;
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Faults. If the model passes with one of them, it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// An end looks at the other one's word before its position is visible.
    LooksWithoutFence,
    /// An end looks at the other one's position before its word is visible.
    SetsWithoutFence,
    /// An end sleeps without a look behind its word.
    SleepsAtOnce,
    /// An end forgets that its bell was rung, and does not say that it is to be rung again.
    StaysAwake,
    /// The writer does not wake a reader that has changed its mind meanwhile.
    LeavesKernelAsleep,
}

const MUTANTS: [Mutant; 5] = [
    Mutant::LooksWithoutFence,
    Mutant::SetsWithoutFence,
    Mutant::SleepsAtOnce,
    Mutant::StaysAwake,
    Mutant::LeavesKernelAsleep,
];

/// The number of bytes.
const BYTES: u64 = 2;

/// One end: its position, its word, and its bell.
struct End {
    position: AtomicU64,
    word: AtomicU32,
    sleep: AtomicU32,
    is_rung: Mutex<bool>,
    changed: Condvar,
}

struct Bed {
    writer: End,
    reader: End,
    /// The ring: loom fails where two uses of it are not ordered.
    ring: UnsafeCell<u64>,
    mutant: Mutant,
}

// SAFETY: the cell is the model's, and loom reports accesses that would be a race.
unsafe impl Sync for Bed {}

impl End {
    fn new() -> Self {
        let word = AtomicU32::new(Wants::Looking.to_word());
        let (is_rung, changed) = (Mutex::new(false), Condvar::new());
        let sleep = AtomicU32::new(0);
        Self { position: AtomicU64::new(0), word, sleep, is_rung, changed }
    }

    fn doorbell(&self) -> Doorbell<'_> {
        Doorbell::over(&self.word)
    }

    /// As `Pair::ring`.
    fn ring(&self) {
        if Sleep::over(&self.sleep).disturb() {
            *self.is_rung.lock().expect("nobody panics") = true;
            self.changed.notify_all();
        }
    }
}

impl Bed {
    /// As `wake_reader` and `wake_writer` behind what they look at.
    fn wake(&self, end: &End) {
        let wants = match self.mutant {
            Mutant::LooksWithoutFence => end.doorbell().get(),
            _ => end.doorbell().look(),
        };
        let is_left = self.mutant == Mutant::LeavesKernelAsleep && !wants.is_ring();
        if wants.bell().is_some() && !is_left && end.doorbell().take(wants) {
            end.ring();
        }
    }

    /// As `Bell::hush`.
    fn hush(&self, end: &End) {
        *end.is_rung.lock().expect("nobody panics") = false;
        if self.mutant != Mutant::StaysAwake {
            Sleep::over(&end.sleep).begin();
        }
    }

    /// As `waiter::wait_for`: says how it sleeps, looks again, and sleeps.
    fn sleep_until(&self, end: &End, wants: Wants, is_ready: impl Fn() -> bool) {
        while !is_ready() {
            if self.mutant == Mutant::SetsWithoutFence {
                // Relaxed: the mutant's.
                end.word.store(wants.to_word(), Ordering::Relaxed);
            } else {
                end.doorbell().set(wants);
            }
            let sleeps = self.mutant == Mutant::SleepsAtOnce || !is_ready();
            if sleeps {
                let mut is_rung = end.is_rung.lock().expect("nobody panics");
                while !*is_rung {
                    is_rung = end.changed.wait(is_rung).expect("nobody panics");
                }
            }
            end.doorbell().set(Wants::Looking);
            // A bell may be rung behind the word, so one that has woken is hushed as well.
            if sleeps || Sleep::over(&end.sleep).is_over() {
                self.hush(end);
            }
        }
    }

    fn write(&self) {
        for tail in 0..BYTES {
            let has_room = || told(&self.reader.position) == tail;
            self.sleep_until(&self.writer, Wants::Bell(1), has_room);
            // SAFETY: loom checks that nothing else uses it.
            self.ring.with_mut(|byte| unsafe { *byte = tail + 1 });
            tell(&self.writer.position, tail + 1);
            self.wake(&self.reader);
        }
    }

    fn read(&self, wants: Wants) {
        for head in 0..BYTES {
            let has_bytes = || told(&self.writer.position) > head;
            self.sleep_until(&self.reader, wants, has_bytes);
            // SAFETY: as in write().
            let byte = self.ring.with(|byte| unsafe { *byte });
            assert_eq!(byte, head + 1, "in order, once");
            tell(&self.reader.position, head + 1);
            self.wake(&self.writer);
        }
    }
}

fn check(wants: Wants, mutant: Mutant) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(move || {
        let [writer, reader] = [End::new(), End::new()];
        let bed = Arc::new(Bed { writer, reader, ring: UnsafeCell::new(0), mutant });
        let writing = bed.clone();
        let writer = thread::spawn(move || writing.write());
        bed.read(wants);
        writer.join().expect("the writer ends");
    });
}

#[test]
fn nobody_sleeps_while_there_are_bytes_or_there_is_room() {
    check(Wants::Bell(0), Mutant::None);
    // A reader that has just changed its mind about the ring.
    check(Wants::KernelBell(0), Mutant::None);
    for mutant in MUTANTS {
        let wants = match mutant {
            Mutant::LeavesKernelAsleep => Wants::KernelBell(0),
            _ => Wants::Bell(0),
        };
        let run = AssertUnwindSafe(|| check(wants, mutant));
        let failure = catch_unwind(run).expect_err("some run of the model shows the mutant");
        let text = failure.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(text.contains("deadlock"), "{mutant:?} fails for another reason: {text}");
    }
}

/// A reader leaves the ring, comes back, takes what is there, and leaves again. Meanwhile its
/// writer claims what is there. Both use the byte of the ring as their own: loom reports a race.
fn check_claim(claim: fn(&Doorbell<'_>) -> bool) {
    loom::model(move || {
        let [writer, reader] = [End::new(), End::new()];
        let (ring, mutant) = (UnsafeCell::new(1), Mutant::None);
        let bed = Arc::new(Bed { writer, reader, ring, mutant });
        let writing = bed.clone();
        let take = |bed: &Bed, may_take| match may_take {
            // SAFETY: loom checks that nothing else uses it.
            true => bed.ring.with_mut(|byte| unsafe { std::mem::take(&mut *byte) }),
            false => 0,
        };
        let writer = thread::spawn(move || take(&writing, claim(&writing.reader.doorbell())));
        let doorbell = bed.reader.doorbell();
        doorbell.set(Wants::Gone);
        let taken = take(&bed, doorbell.come_back());
        doorbell.set(Wants::Gone);
        let claimed = writer.join().expect("the writer ends");
        assert!(taken + claimed <= 1, "nobody gets it twice");
        assert!(doorbell.claim(), "what is left is the writer's in the end");
    });
}

// spec: SOCK-21
#[test]
fn what_a_reader_has_left_is_its_own_or_the_writers() {
    check_claim(|doorbell| doorbell.claim());
    let run = AssertUnwindSafe(|| check_claim(|doorbell| doorbell.get() == Wants::Gone));
    catch_unwind(run).expect_err("a writer that only looks takes what the reader takes");
}

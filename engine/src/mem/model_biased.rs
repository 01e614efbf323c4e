//! A model of the biased lock, through all interleavings: the code of [`super::biased`] over loom's
//! words, with a program of two calls and a guest of two visits.
use super::biased::Bias;
use crate::sync::{AtomicU64, Ordering, Weak, fence};
use loom::cell::UnsafeCell;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Faults of the lock. If a model passes with one of them, it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// No fault: the program enters by the lock once it has seen the request, and nobody uses
    /// fences.
    Locked,
    /// As `Locked`, but the guest does not wait until the program has seen the request.
    LockedEarly,
    Inside(Weak),
    Wanted(Weak),
    NoLightFence,
    NoHeavyFence,
}

const MUTANTS: [Mutant; 7] = [
    Mutant::LockedEarly,
    Mutant::Inside(Weak::Stores),
    Mutant::Inside(Weak::Loads),
    Mutant::Wanted(Weak::Stores),
    Mutant::Wanted(Weak::Loads),
    Mutant::NoLightFence,
    Mutant::NoHeavyFence,
];

/// A value under the lock: loom fails where two uses are not ordered.
struct Value(Bias, UnsafeCell<()>);

// SAFETY: it contains nothing; loom reports accesses that would be a race.
unsafe impl Sync for Value {}

impl Value {
    fn change(&self) {
        self.1.with_mut(|_| ());
    }
}

fn model(mutant: Mutant) {
    let weakened = |word: fn(Weak) -> Mutant| {
        let weak = [Weak::Stores, Weak::Loads].into_iter().find(|weak| word(*weak) == mutant);
        AtomicU64::weakened(0, weak)
    };
    let bias = Bias::over(weakened(Mutant::Inside), weakened(Mutant::Wanted));
    let value = Arc::new(Value(bias, UnsafeCell::new(())));
    let fence_unless = move |without| {
        if ![without, Mutant::Locked, Mutant::LockedEarly].contains(&mutant) {
            // FENCE-R1, FENCE-A1: as Biased::with and fence::heavy_own.
            fence(Ordering::SeqCst);
        }
    };
    let visited = Arc::clone(&value);
    let guest = thread::spawn(move || {
        let is_locked = [Mutant::Locked, Mutant::LockedEarly].contains(&mutant);
        if is_locked {
            visited.0.have_all_locked();
        }
        for _ in 0..2 {
            let heavy = |has_noticed| {
                fence_unless(Mutant::NoHeavyFence);
                !is_locked || has_noticed || mutant == Mutant::LockedEarly
            };
            visited.0.visit(heavy, || visited.change());
        }
    });
    for _ in 0..2 {
        value.0.enter(|| fence_unless(Mutant::NoLightFence));
        value.change();
        value.0.leave();
    }
    guest.join().expect("the guest ends");
}

fn check(mutant: Mutant) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(4);
    builder.check(move || model(mutant));
}

#[test]
fn a_program_and_a_guest_are_never_inside_together() {
    check(Mutant::None);
    check(Mutant::Locked);
    for mutant in MUTANTS {
        let failure = catch_unwind(AssertUnwindSafe(|| check(mutant)));
        let failure = failure.expect_err("some run of the model shows the mutant");
        let text = failure.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(text.contains("Causality violation"), "{mutant:?}: {text}");
    }
}

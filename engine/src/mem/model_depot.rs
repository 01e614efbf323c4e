//! A model of a depot's lock and journal, through all interleavings. It has the essential lines of
//! [`super::depot`], with the same words in the same order, and a holder that dies at each of them.
//!
//! The system's claim is a word here, which the dying holder clears, as the system does for it.
use crate::sync::{AtomicU64, Ordering};
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Faults. If the model passes with one of them, it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// Registers are written without a journal.
    NoJournal,
    /// The journal counts before it is written.
    CountFirst,
    /// The journal is void before the registers are written.
    VoidFirst,
    /// The lock is released before the registers are written.
    LeaveFirst,
    /// A process that takes over does not look at the journal.
    NoRecovery,
}

const MUTANTS: [Mutant; 5] = [
    Mutant::NoJournal,
    Mutant::CountFirst,
    Mutant::VoidFirst,
    Mutant::LeaveFirst,
    Mutant::NoRecovery,
];

/// Holders.
const MORTAL: u64 = 3;
const SURVIVOR: u64 = 4;
/// The steps of a commit before which the mortal holder dies; at the last one it survives.
const STEPS: usize = 8;

/// Two registers that every message raises by one each, so that both are equal between messages.
struct Depot {
    lock: AtomicU64,
    count: AtomicU64,
    journal: [AtomicU64; 2],
    registers: [AtomicU64; 2],
    claim: AtomicU64,
    mutant: Mutant,
}

/// A death.
struct Died;

impl Depot {
    fn new(mutant: Mutant) -> Self {
        let word = || AtomicU64::new(0);
        Self {
            lock: word(),
            count: word(),
            journal: [word(), word()],
            registers: [word(), word()],
            claim: AtomicU64::new(1),
            mutant,
        }
    }

    fn enter(&self, holder: u64) -> bool {
        // DEPOT-A1: as in the depot. Relaxed: a failure orders nothing.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        if self.lock.compare_exchange(0, holder, success, failure).is_ok() {
            return true;
        }
        // Relaxed: the exchange decides.
        let inside = self.lock.load(Ordering::Relaxed);
        // FENCE-A1: the system's own, between the end of a process and a check of it.
        let is_gone = inside == MORTAL && self.claim.load(Ordering::Acquire) == 0;
        if (inside == 0 || is_gone)
            && self.lock.compare_exchange(inside, holder, success, failure).is_ok()
        {
            self.recover();
            return true;
        }
        false
    }

    fn recover(&self) {
        // DEPOT-A2, DEPOT-A3: as in the depot.
        let count = self.count.load(Ordering::Acquire);
        if self.mutant == Mutant::NoRecovery {
            return;
        }
        for (journal, register) in self.journal.iter().zip(&self.registers).take(count as usize) {
            // Relaxed: as in the depot.
            register.store(journal.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // DEPOT-R3: as in the depot.
        self.count.store(0, Ordering::Release);
    }

    /// Raises both registers; dies before the step of number `dies`.
    fn commit(&self, dies: usize) -> Result<(), Died> {
        let step = |number| if number == dies { Err(Died) } else { Ok(()) };
        // Relaxed: DEPOT-A1 came before.
        let next = [0, 1].map(|at| self.registers[at].load(Ordering::Relaxed) + 1);
        let count = |count| {
            if self.mutant != Mutant::NoJournal {
                // DEPOT-R2, DEPOT-R3: as in the depot.
                self.count.store(count, Ordering::Release);
            }
        };
        step(0)?;
        if self.mutant == Mutant::CountFirst {
            count(2);
        }
        step(1)?;
        // Relaxed: DEPOT-R2.
        self.journal[0].store(next[0], Ordering::Relaxed);
        step(2)?;
        // Relaxed: DEPOT-R2.
        self.journal[1].store(next[1], Ordering::Relaxed);
        step(3)?;
        count(2);
        step(4)?;
        if self.mutant == Mutant::VoidFirst {
            count(0);
        }
        if self.mutant == Mutant::LeaveFirst {
            self.leave();
        }
        // DEPOT-R4: as in the depot.
        self.registers[0].store(next[0], Ordering::Release);
        step(5)?;
        // DEPOT-R4: as in the depot.
        self.registers[1].store(next[1], Ordering::Release);
        step(6)?;
        count(0);
        Ok(())
    }

    fn leave(&self) {
        // DEPOT-R1: all changes made inside.
        self.lock.store(0, Ordering::Release);
    }

    /// One message of a sender that may die.
    fn send(&self, holder: u64, dies: usize) {
        while !self.enter(holder) {
            thread::yield_now();
        }
        // Relaxed: DEPOT-A1 came before.
        let [first, second] = [0, 1].map(|at| self.registers[at].load(Ordering::Relaxed));
        assert_eq!(first, second, "all of a message or nothing");
        match self.commit(dies) {
            Ok(()) => self.leave(),
            // FENCE-R1: the system's own, as in is_gone.
            Err(Died) => self.claim.store(0, Ordering::Release),
        }
    }
}

fn check(mutant: Mutant, dies: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let depot = Arc::new(Depot::new(mutant));
        let mortal = {
            let depot = depot.clone();
            thread::spawn(move || depot.send(MORTAL, dies))
        };
        depot.send(SURVIVOR, STEPS);
        mortal.join().expect("it ends");
        depot.send(SURVIVOR, STEPS);
        // Relaxed: all others have ended.
        let found = [0, 1].map(|at| depot.registers[at].load(Ordering::Relaxed));
        assert_eq!(found[0], found[1], "all of a message or nothing");
        assert!((2..=3).contains(&found[0]), "each message once: {found:?}");
    });
}

// spec: DEP-25, DEP-26
#[test]
fn a_death_leaves_all_writes_of_a_message_or_none() {
    (0..=STEPS).for_each(|dies| check(Mutant::None, dies));
    for mutant in MUTANTS {
        let fails = |dies| catch_unwind(AssertUnwindSafe(|| check(mutant, dies))).is_err();
        assert!((0..=STEPS).any(fails), "no run of the model shows {mutant:?}");
    }
}

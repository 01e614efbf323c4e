//! Locks and epochs: every interleaving of a few processes, as a search of all states.
use std::collections::{BTreeSet, VecDeque};

use ayre_proto::alu::{Atomic, AtomicOp, Width};
use ayre_proto::lock::{EpochStep, LockMode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    None,
    Shared,
    Exclusive,
}

/// The lock word and what each process believes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    word: u64,
    holds: Vec<Hold>,
}

impl State {
    /// One process tries one atomic; its belief changes only if the atomic succeeds.
    fn after(&self, process: usize, atomic: &Atomic, hold: Hold) -> Option<Self> {
        let mut next = self.clone();
        next.word = atomic.apply(self.word)?;
        next.holds[process] = hold;
        Some(next)
    }

    fn holders(&self, hold: Hold) -> usize {
        self.holds.iter().filter(|held| **held == hold).count()
    }

    /// The possible next steps of all processes. An attempt that declines leaves the state as it
    /// is.
    fn successors(&self) -> Vec<Self> {
        let n = self.holds.len() as u32;
        let of = |process: usize| match self.holds[process] {
            Hold::None => vec![
                self.after(process, &LockMode::Shared.lock(n), Hold::Shared),
                self.after(process, &LockMode::Exclusive.lock(n), Hold::Exclusive),
            ],
            Hold::Shared => vec![self.after(process, &LockMode::Shared.unlock(n), Hold::None)],
            Hold::Exclusive => {
                vec![self.after(process, &LockMode::Exclusive.unlock(n), Hold::None)]
            }
        };
        (0..self.holds.len()).flat_map(of).flatten().collect()
    }
}

fn reachable(processes: usize) -> BTreeSet<State> {
    let start = State { word: 0, holds: vec![Hold::None; processes] };
    let mut seen = BTreeSet::from([start.clone()]);
    let mut open = VecDeque::from([start]);
    while let Some(state) = open.pop_front() {
        for next in state.successors() {
            assert!(next.word <= processes as u64 + 1, "no such state: {next:?}");
            if seen.insert(next.clone()) {
                open.push_back(next);
            }
        }
    }
    seen
}

// spec: LOCK-2
#[test]
fn a_writer_is_alone_in_every_interleaving() {
    for processes in 1..=7 {
        for state in reachable(processes) {
            let (readers, writers) = (state.holders(Hold::Shared), state.holders(Hold::Exclusive));
            assert!(writers == 0 || (writers == 1 && readers == 0), "{state:?}");
            let word = if writers == 1 { processes + 1 } else { readers };
            assert_eq!(state.word, word as u64, "the word says who holds it: {state:?}");
        }
    }
}

// spec: LOCK-2
#[test]
fn all_processes_can_read_and_no_state_is_a_dead_end() {
    for processes in 1..=7 {
        let states = reachable(processes);
        assert!(states.iter().any(|state| state.holders(Hold::Shared) == processes));
        for state in states {
            // A holder can always leave; a free lock can be had by everybody, in both modes.
            let successors = state.successors();
            let holders = processes - state.holders(Hold::None);
            assert!(successors.len() >= holders.max(1), "{state:?}");
            assert!(holders > 0 || successors.len() == 2 * processes, "{state:?}");
        }
    }
}

/// Compare, add and the state afterwards of each step, as the specification's table has them.
// spec: LOCK-1
#[test]
fn the_steps_are_those_of_the_table() {
    for n in [1, 2, 100, u32::MAX] {
        let writer = i64::from(n) + 1;
        let table = [
            (LockMode::Exclusive.lock(n), 0, writer),
            (LockMode::Shared.lock(n), i64::from(n) - 1, 1),
            (LockMode::Exclusive.unlock(n), i64::MAX, -writer),
            (LockMode::Shared.unlock(n), i64::MAX, -1),
        ];
        for (atomic, compare, add) in table {
            assert_eq!((atomic.op, atomic.width), (AtomicOp::Fcaa, Width::W64));
            assert_eq!((atomic.compare as i64, atomic.operand as i64), (compare, add));
        }
    }
}

/// A process that forgets its hold and reads once more is refused before the readers' count can
/// pass for a writer's.
#[test]
fn readers_never_count_up_to_a_writer() {
    for n in 1..=7u32 {
        let mut word = 0;
        for _ in 0..3 * n {
            word = LockMode::Shared.lock(n).apply(word).unwrap_or(word);
        }
        assert!(word < u64::from(n) + 1);
        assert_eq!(LockMode::Exclusive.lock(n).apply(word), None);
    }
}

#[test]
fn the_largest_number_of_processes_does_not_wrap() {
    let n = u32::MAX;
    let held = LockMode::Exclusive.lock(n).apply(0);
    assert_eq!(held, Some(u64::from(n) + 1));
    assert_eq!(held.and_then(|word| LockMode::Shared.lock(n).apply(word)), None);
    assert_eq!(held.and_then(|word| LockMode::Exclusive.unlock(n).apply(word)), Some(0));
}

const STEPS: [EpochStep; 4] =
    [EpochStep::Post, EpochStep::Start, EpochStep::Complete, EpochStep::Wait];

/// From the idle word only the steps in their order have an effect, by any process. So all
/// interleavings of an owner and an origin give the same epoch.
// spec: EPOCH-1
#[test]
fn epoch_steps_succeed_only_in_turn() {
    let mut word = 0;
    for round in 0..8 {
        let turn = STEPS[round % 4];
        for step in STEPS {
            let (from, to) = step.transition();
            let fetched = step.atomic().fetched(word);
            assert_eq!(fetched.value, word, "a step reports the state that it found");
            assert_eq!(fetched.success, step == turn, "{step:?} in {word}");
            assert_eq!(step.atomic().apply(word), (from == word).then_some(to));
        }
        word = turn.transition().1;
        assert_eq!(word, (round as u64 + 1) % 4);
    }
}

// spec: EPOCH-1
#[test]
fn a_word_of_no_state_admits_no_step() {
    for word in [4, 5, 1 << 32, u64::MAX] {
        assert!(STEPS.iter().all(|step| step.atomic().apply(word).is_none()), "{word}");
    }
}

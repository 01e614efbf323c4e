//! Vectors of the steps of locks and access epochs.
use super::names::{ATOMICS, name};
use super::script::{Fields, Machine, Script};
use ayre_proto::lock::{EpochStep, LockMode};

pub(crate) const HEADER: &str = "\
Steps of locks and access epochs: which atomic, and what it does (proto/src/lock.rs, spec/10).
Numbers are hexadecimal. N is the number of processes that use the lock; it is 0 for epochs.

STEP N WORD -> ATOMIC OPERAND COMPARE NEW VALUE SUCCESS
  STEP      lock-exclusive, lock-shared, unlock-exclusive, unlock-shared,
            or of an epoch: post, start, complete, wait
  WORD      the word before, NEW afterwards
  VALUE     what the atomic returns
  SUCCESS   1, or 0 where it declines";

const STEPS: [&str; 4] = ["lock-exclusive", "lock-shared", "unlock-exclusive", "unlock-shared"];
const EPOCH: [(&str, EpochStep); 4] = [
    ("post", EpochStep::Post),
    ("start", EpochStep::Start),
    ("complete", EpochStep::Complete),
    ("wait", EpochStep::Wait),
];

struct Word;

pub(crate) fn machine() -> Box<dyn Machine> {
    Box::new(Word)
}

impl Machine for Word {
    fn step(&mut self, step: &str, inputs: &mut Fields<'_>) -> String {
        let (n, word) = (inputs.number(), inputs.number());
        let atomic = match step {
            "lock-exclusive" => LockMode::Exclusive.lock(n),
            "lock-shared" => LockMode::Shared.lock(n),
            "unlock-exclusive" => LockMode::Exclusive.unlock(n),
            "unlock-shared" => LockMode::Shared.unlock(n),
            _ => super::names::value(&EPOCH, step).atomic(),
        };
        let (new, fetched) = (atomic.apply(word).unwrap_or(word), atomic.fetched(word));
        let (success, op) = (u8::from(fetched.success), name(ATOMICS, &atomic.op));
        let (operand, compare, value) = (atomic.operand, atomic.compare, fetched.value);
        format!("{op} {operand:x} {compare:x} {new:x} {value:x} {success:x}")
    }
}

pub(crate) fn script(s: &mut Script) {
    s.section("locks: every step that a process can try in every state of the word");
    for n in 1..=4u64 {
        for word in 0..=n + 1 {
            for step in STEPS {
                let held = match step {
                    "unlock-exclusive" => word == n + 1,
                    "unlock-shared" => (1..=n).contains(&word),
                    _ => true,
                };
                if held {
                    s.run(format!("{step} {n:x} {word:x}"));
                }
            }
        }
    }
    s.section("one lock among three: two readers, a writer, a reader");
    let mut word = "0".to_owned();
    for step in [1, 1, 0, 3, 0, 3, 0, 1, 2, 1, 1, 1, 1, 3, 3, 3, 0] {
        let out = s.run(format!("{} 3 {word}", STEPS[step]));
        word = out.split(' ').nth(3).expect("the new word").to_owned();
    }
    s.section("as many processes as there can be");
    for word in [0, 1 << 16, u64::from(u32::MAX) + 1] {
        s.run(format!("lock-exclusive ffffffff {word:x}"));
        s.run(format!("lock-shared ffffffff {word:x}"));
    }
    s.section("epochs: every step in every state, and in words that are no state");
    for word in [0, 1, 2, 3, 4, u64::MAX] {
        for (step, _) in EPOCH {
            s.run(format!("{step} 0 {word:x}"));
        }
    }
}

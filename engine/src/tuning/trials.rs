//! Which of two methods is the faster one for messages of a size, as it turns out while they are
//! received.
use super::{Method, NOISE, Use};
use std::time::Duration;

/// What is compared.
const RIVALS: &[Method] = Use::Receive.methods();
/// Messages of a size class, by turns, before anything is decided.
const FIRST: u32 = 8;
/// After so many messages of a class the method that is not the faster one has another chance:
/// where processes run, and beside what others, changes.
const AGAIN: u32 = 256;
/// Messages by a method that count; the best of them, as all others were disturbed.
const RECENT: usize = 8;
/// Bytes of the shortest messages of the first class; each further one begins at twice as many.
const SHORTEST: u64 = 16 << 10;
const CLASSES: usize = 12;

/// What the last messages have taken.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    classes: [Class; CLASSES],
}

/// Messages of about the same size.
#[derive(Debug, Default)]
struct Class {
    begun: u32,
    rivals: [Rival; RIVALS.len()],
}

/// A method: picoseconds for a byte of the last messages that went by it.
#[derive(Debug)]
struct Rival {
    recent: [f64; RECENT],
    next: usize,
}

impl Default for Rival {
    fn default() -> Self {
        Self { recent: [f64::INFINITY; RECENT], next: 0 }
    }
}

impl Rival {
    fn best(&self) -> f64 {
        self.recent.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl Trials {
    /// By which method the next message of so many bytes goes.
    // spec: INJ-8
    pub(crate) fn choose(&mut self, bytes: u64) -> Method {
        let class = &mut self.classes[class_of(bytes)];
        let turn = class.begun;
        class.begun = class.begun.wrapping_add(1);
        if turn < FIRST {
            return RIVALS[turn as usize % RIVALS.len()];
        }
        let [first, other] = &class.rivals;
        let is_other = other.best() < first.best() * NOISE;
        RIVALS[usize::from(is_other ^ turn.is_multiple_of(AGAIN))]
    }

    /// So many bytes of a message of a size have taken so long.
    pub(crate) fn note(&mut self, method: Method, bytes: u64, (took, part): (Duration, u64)) {
        let rivals = RIVALS.iter().zip(&mut self.classes[class_of(bytes)].rivals);
        for (_, rival) in rivals.filter(|(of, _)| **of == method) {
            rival.recent[rival.next] = took.as_secs_f64() * 1e12 / part.max(1) as f64;
            rival.next = (rival.next + 1) % RECENT;
        }
    }
}

fn class_of(bytes: u64) -> usize {
    let doublings = (bytes / SHORTEST).checked_ilog2().unwrap_or(0);
    (doublings as usize).min(CLASSES - 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Method::{Kernel, Pipeline};
    use super::*;

    /// How often each was chosen of so many messages that take what is said.
    fn run(trials: &mut Trials, bytes: u64, count: u32, times: fn(u32) -> (u64, u64)) -> [u32; 2] {
        let mut chosen = [0; 2];
        for number in 0..count {
            let (pipeline, kernel) = times(number);
            let method = trials.choose(bytes);
            let nanos = if method == Kernel { kernel } else { pipeline };
            chosen[usize::from(method == Kernel)] += 1;
            trials.note(method, bytes, (Duration::from_nanos(nanos), bytes));
        }
        chosen
    }

    // spec: INJ-8
    #[test]
    fn the_faster_one_is_taken_and_the_other_one_tried_again() {
        let mut trials = Trials::default();
        assert_eq!(run(&mut trials, 1 << 20, 1008, |_| (9000, 7000)), [4 + 3, 1001]);
        assert_eq!(run(&mut trials, 1 << 16, 1008, |_| (7000, 9000)), [1001, 4 + 3]);
        let [pipeline, kernel] = run(&mut trials, 1 << 20, 4096, |_| (7000, 9000));
        assert!(
            pipeline > 3500 && kernel < 600,
            "{pipeline} {kernel}: what has changed is noticed"
        );
    }

    // spec: INJ-8
    #[test]
    fn noise_decides_nothing() {
        let mut trials = Trials::default();
        let [pipeline, _] = run(&mut trials, 1 << 20, 1000, |_| (7000, 6900));
        assert!(pipeline > 990, "what is hardly faster is not worth it");
        // Two of three are disturbed.
        let disturbed = |number: u32| match number % 3 {
            0 => (7000, 6000),
            _ => (90_000, 90_000),
        };
        let [_, kernel] = run(&mut trials, 1 << 16, 1000, disturbed);
        assert!(kernel > 900, "{kernel}");
    }

    // spec: INJ-8
    #[test]
    fn sizes_are_apart() {
        assert_eq!([0, 16_383, 16_384, 32_767].map(class_of), [0; 4]);
        assert_eq!([32_768, 65_536, 1 << 20, 1 << 24, 1 << 25].map(class_of), [1, 2, 6, 10, 11]);
        assert_eq!([1 << 26, u64::MAX].map(class_of), [11; 2]);
        let mut trials = Trials::default();
        trials.note(Pipeline, 1 << 20, (Duration::from_nanos(1), 0));
        assert_eq!(trials.choose(1 << 16), Pipeline);
    }
}

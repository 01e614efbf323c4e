//! Measures during reception which of two methods is faster for messages of a size.
use super::{Method, NOISE, Use};
use std::time::Duration;

/// The methods that are compared.
const CANDIDATES: &[Method] = Use::Receive.methods();
/// Rounds of a size class, by each method alternately, before the first decision.
const FIRST: u32 = 8;
/// After this number of rounds of a class, the slower method is tried again, for enough rounds to
/// change its median. The placement of processes and the load may have changed.
const AGAIN: u32 = 256;
const CHANCES: u32 = 3;
/// The greatest number of messages in a round.
pub(crate) const ROUND: u32 = 64;
/// The number of rounds of a method whose median counts: some are disturbed.
const RECENT: usize = 5;
/// Bytes that come by the first method before the comparison begins. Until then its memory is
/// accessed for the first time, with page faults.
const WARM: u64 = 8 << 20;
/// Bytes of a message that fills the widest ring alone. If it is the only message, that work is
/// wasted: messages of this length are compared from the beginning, and begin with the other
/// method.
const LONG: u64 = 4 << 20;
/// Bytes of the shortest messages of the first class. The bound of each further class is twice as
/// great.
const SHORTEST: u64 = 16 << 10;
const CLASSES: usize = 12;

/// The times of the last messages.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    /// Bytes that have come, until they are [`WARM`].
    warm: u64,
    classes: [Class; CLASSES],
}

/// A size class: messages of about the same size.
#[derive(Debug, Default)]
struct Class {
    rounds: u32,
    round: Round,
    /// Messages for which a method was chosen and that have not come.
    under_way: u32,
    candidates: [Candidate; CANDIDATES.len()],
}

/// Consecutive messages by the same method, until all have come. If two messages in flight used
/// different methods, each would seem to take the time of both.
#[derive(Debug, Default)]
struct Round {
    /// The method of the round; none before its first message.
    by: Option<usize>,
    messages: u32,
    bytes: u64,
    took: Duration,
}

/// A method: seconds per byte in its last rounds, and the number of its rounds.
#[derive(Debug, Default)]
struct Candidate {
    recent: [f64; RECENT],
    noted: usize,
}

impl Candidate {
    fn note(&mut self, time: f64) {
        self.recent[self.noted % RECENT] = time;
        self.noted += 1;
    }

    /// The median of the seconds per byte; infinite where nothing was measured.
    fn median(&self) -> f64 {
        let mut known = self.recent;
        let known = &mut known[..self.noted.min(RECENT)];
        known.sort_unstable_by(f64::total_cmp);
        known.get(known.len() / 2).copied().unwrap_or(f64::INFINITY)
    }
}

impl Class {
    /// The method of the next round.
    fn next(&self, is_long: bool) -> usize {
        let turn = self.rounds;
        if turn < FIRST {
            return (turn as usize + usize::from(is_long)) % CANDIDATES.len();
        }
        let [first, other] = &self.candidates;
        let is_other = other.median() < first.median() * NOISE;
        usize::from(is_other ^ (turn % AGAIN < CHANCES))
    }
}

impl Trials {
    /// The method for the next message of this length.
    // spec: INJ-8
    pub(crate) fn choose(&mut self, bytes: u64) -> Method {
        if self.is_cold(bytes) {
            return CANDIDATES[0];
        }
        let class = &mut self.classes[class_of(bytes)];
        class.under_way += 1;
        let by = class.round.by.unwrap_or_else(|| class.next(bytes >= LONG));
        class.round.by = Some(by);
        CANDIDATES[by]
    }

    /// Whether messages of this length are not compared yet.
    fn is_cold(&self, bytes: u64) -> bool {
        self.warm < WARM && bytes < LONG
    }

    /// Records that a message of this length does not come, or comes by another method.
    // spec: INJ-8
    pub(crate) fn drop_one(&mut self, bytes: u64) {
        let Class { round, under_way, .. } = &mut self.classes[class_of(bytes)];
        *under_way = under_way.saturating_sub(1);
        if *under_way == 0 {
            *round = Round::default();
        }
    }

    /// Records that a message of this length has come, and the time that it took.
    // spec: INJ-8
    pub(crate) fn note(&mut self, method: Method, bytes: u64, took: Duration) {
        if self.is_cold(bytes) {
            self.warm = self.warm.saturating_add(bytes);
            return;
        }
        let Class { rounds, round, under_way, candidates } = &mut self.classes[class_of(bytes)];
        *under_way = under_way.saturating_sub(1);
        let Some(by) = round.by.filter(|by| CANDIDATES[*by] == method) else { return };
        round.messages += 1;
        round.bytes += bytes;
        round.took += took;
        if *under_way == 0 || round.messages == ROUND {
            candidates[by].note(round.took.as_secs_f64() / round.bytes.max(1) as f64);
            *round = Round::default();
            *rounds = rounds.wrapping_add(1);
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

    /// Trials whose first bytes have come already.
    fn warm() -> Trials {
        Trials { warm: WARM, ..Trials::default() }
    }

    /// How many times each method was chosen for `count` messages that take these times.
    fn run(trials: &mut Trials, bytes: u64, count: u32, times: fn(u32) -> (u64, u64)) -> [u32; 2] {
        let mut chosen = [0; 2];
        for number in 0..count {
            let (pipeline, kernel) = times(number);
            let method = trials.choose(bytes);
            let nanos = if method == Kernel { kernel } else { pipeline };
            chosen[usize::from(method == Kernel)] += 1;
            trials.note(method, bytes, Duration::from_nanos(nanos));
        }
        chosen
    }

    // spec: INJ-8
    #[test]
    fn the_faster_one_is_taken_and_the_other_one_tried_again() {
        let mut trials = warm();
        assert_eq!(run(&mut trials, 1 << 20, 1008, |_| (9000, 7000)), [4 + 9, 995]);
        assert_eq!(run(&mut trials, 1 << 16, 1008, |_| (7000, 9000)), [995, 4 + 9]);
        let [pipeline, kernel] = run(&mut trials, 1 << 20, 4096, |_| (7000, 9000));
        assert!(
            pipeline > 3500 && kernel < 600,
            "{pipeline} {kernel}: what has changed is noticed"
        );
    }

    // spec: INJ-8
    #[test]
    fn timings_of_first_page_faults_are_ignored() {
        let mut trials = Trials::default();
        let cold = (WARM >> 16) as u32;
        assert_eq!(run(&mut trials, 1 << 16, cold, |_| (90_000, 9000)), [cold, 0]);
        assert_eq!(run(&mut trials, 1 << 16, 1008, |_| (7000, 9000)), [995, 4 + 9]);
    }

    // spec: INJ-8
    #[test]
    fn a_long_message_first_touches_nothing() {
        let mut trials = Trials::default();
        assert_eq!(run(&mut trials, 10_000_000, 1, |_| (90_000, 9000)), [0, 1]);
        let first = |number| if number < 2 { (90_000, 9000) } else { (7000, 9000) };
        assert_eq!(run(&mut trials, 10_000_000, 1007, first), [995, 3 + 9]);
    }

    // spec: INJ-8
    #[test]
    fn noisy_timings_do_not_change_the_method() {
        let mut trials = warm();
        let [pipeline, _] = run(&mut trials, 1 << 20, 1000, |_| (7000, 6900));
        assert!(pipeline > 985, "what is hardly faster is not worth it");
        // One of four is disturbed, and one had come before the receiver looked.
        let disturbed = |number: u32| match number % 8 {
            3 | 4 => (90_000, 90_000),
            5 | 6 => (10, 5000),
            _ => (7000, 6000),
        };
        let [_, kernel] = run(&mut trials, 1 << 16, 1000, disturbed);
        assert!(kernel > 900, "{kernel}");
    }

    // spec: INJ-8
    #[test]
    fn concurrent_transfers_use_one_method() {
        let mut trials = warm();
        let mut chosen = [0; 2];
        for _ in 0..20 {
            let methods = [0; 40].map(|_| trials.choose(1 << 16));
            assert_eq!(methods, [methods[0]; 40]);
            chosen[usize::from(methods[0] == Kernel)] += 1;
            let nanos = if methods[0] == Kernel { 5000 } else { 7000 };
            for method in methods {
                trials.note(method, 1 << 16, Duration::from_nanos(nanos));
            }
        }
        assert_eq!(chosen, [4, 16]);
        // A message that never completes ends no round but the longest.
        let first = trials.choose(1 << 16);
        for _ in 0..2 * ROUND {
            let method = trials.choose(1 << 16);
            trials.note(method, 1 << 16, Duration::from_nanos(5000));
        }
        assert_eq!((first, trials.classes[class_of(1 << 16)].rounds), (Kernel, 22));
        trials.drop_one(1 << 16);
        let Class { round, under_way, .. } = &trials.classes[class_of(1 << 16)];
        assert_eq!((round.by, *under_way), (None, 0));
    }

    // spec: INJ-8
    #[test]
    fn sizes_are_apart() {
        assert_eq!([0, 16_383, 16_384, 32_767].map(class_of), [0; 4]);
        assert_eq!([32_768, 65_536, 1 << 20, 1 << 24, 1 << 25].map(class_of), [1, 2, 6, 10, 11]);
        assert_eq!([1 << 26, u64::MAX].map(class_of), [11; 2]);
        let mut trials = warm();
        trials.note(Pipeline, 1 << 20, Duration::from_nanos(1));
        assert_eq!(trials.choose(1 << 16), Pipeline);
    }
}

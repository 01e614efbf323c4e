//! Which of two methods is the faster one for messages of a size, as it turns out while they are
//! received.
use super::{Method, NOISE, Use};
use std::time::Duration;

/// What is compared.
const RIVALS: &[Method] = Use::Receive.methods();
/// Rounds of a size class, by turns, before anything is decided.
const FIRST: u32 = 8;
/// After so many rounds of a class the method that is not the faster one has another chance, for so
/// many that its median can change: where processes run, and beside what others, changes.
const AGAIN: u32 = 256;
const CHANCES: u32 = 3;
/// Messages of the longest round.
pub(crate) const ROUND: u32 = 64;
/// Rounds by a method that count, by their median: some were disturbed.
const RECENT: usize = 5;
/// Bytes that come by the first method before anything is compared: until then what it goes through
/// is touched for the first time, page by page.
const WARM: u64 = 8 << 20;
/// Bytes of a message that touches all of the widest ring alone, which is in vain if it is the only
/// one: such ones are compared from the beginning, and begin with the other method.
const LONG: u64 = 4 << 20;
/// Bytes of the shortest messages of the first class; each further one begins at twice as many.
const SHORTEST: u64 = 16 << 10;
const CLASSES: usize = 12;

/// What the last messages have taken.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    /// Bytes that have come, as far as they are fewer than [`WARM`].
    warm: u64,
    classes: [Class; CLASSES],
}

/// Messages of about the same size.
#[derive(Debug, Default)]
struct Class {
    rounds: u32,
    round: Round,
    /// Messages that are chosen for and have not come.
    under_way: u32,
    rivals: [Rival; RIVALS.len()],
}

/// Messages one behind the other by the same method, until all have come: of two that are under way
/// by different ones, each would seem to take what both do at the same time.
#[derive(Debug, Default)]
struct Round {
    /// Which method it is by; none before the first message.
    by: Option<usize>,
    messages: u32,
    bytes: u64,
    took: Duration,
}

/// A method: seconds for a byte in the last rounds by it, and how many there were.
#[derive(Debug, Default)]
struct Rival {
    recent: [f64; RECENT],
    noted: usize,
}

impl Rival {
    fn note(&mut self, time: f64) {
        self.recent[self.noted % RECENT] = time;
        self.noted += 1;
    }

    /// What a byte takes; nothing is known to be fast.
    fn usual(&self) -> f64 {
        let mut known = self.recent;
        let known = &mut known[..self.noted.min(RECENT)];
        known.sort_unstable_by(f64::total_cmp);
        known.get(known.len() / 2).copied().unwrap_or(f64::INFINITY)
    }
}

impl Class {
    /// Which method is next.
    fn next(&self, is_long: bool) -> usize {
        let turn = self.rounds;
        if turn < FIRST {
            return (turn as usize + usize::from(is_long)) % RIVALS.len();
        }
        let [first, other] = &self.rivals;
        let is_other = other.usual() < first.usual() * NOISE;
        usize::from(is_other ^ (turn % AGAIN < CHANCES))
    }
}

impl Trials {
    /// By which method the next message of so many bytes goes.
    // spec: INJ-8
    pub(crate) fn choose(&mut self, bytes: u64) -> Method {
        if self.is_cold(bytes) {
            return RIVALS[0];
        }
        let class = &mut self.classes[class_of(bytes)];
        class.under_way += 1;
        let by = class.round.by.unwrap_or_else(|| class.next(bytes >= LONG));
        class.round.by = Some(by);
        RIVALS[by]
    }

    /// Whether messages of so many bytes are not compared yet.
    fn is_cold(&self, bytes: u64) -> bool {
        self.warm < WARM && bytes < LONG
    }

    /// A message of so many bytes does not come, or not by the method chosen.
    // spec: INJ-8
    pub(crate) fn drop_one(&mut self, bytes: u64) {
        let Class { round, under_way, .. } = &mut self.classes[class_of(bytes)];
        *under_way = under_way.saturating_sub(1);
        if *under_way == 0 {
            *round = Round::default();
        }
    }

    /// A message of so many bytes has come, and has taken so long.
    // spec: INJ-8
    pub(crate) fn note(&mut self, method: Method, bytes: u64, took: Duration) {
        if self.is_cold(bytes) {
            self.warm = self.warm.saturating_add(bytes);
            return;
        }
        let Class { rounds, round, under_way, rivals } = &mut self.classes[class_of(bytes)];
        *under_way = under_way.saturating_sub(1);
        let Some(by) = round.by.filter(|by| RIVALS[*by] == method) else { return };
        round.messages += 1;
        round.bytes += bytes;
        round.took += took;
        if *under_way == 0 || round.messages == ROUND {
            rivals[by].note(round.took.as_secs_f64() / round.bytes.max(1) as f64);
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

    /// What goes by the first method has gone through all that it goes through.
    fn warm() -> Trials {
        Trials { warm: WARM, ..Trials::default() }
    }

    /// How often each was chosen of so many messages that take what is said.
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
        // One of four is disturbed, and another one had come while nobody looked.
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
        // One that never ends ends no round but the longest.
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

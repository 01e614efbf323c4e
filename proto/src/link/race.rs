//! Several ways to one port, of which nobody knows which ones lead there: all are tried, and the
//! first answer decides ("Happy Eyeballs", RFC 8305).
//!
//! ```text
//!   way 0  |--o--o----o--------o----------------o---- ...
//!   way 1  |-- head start --|--o--o----o--------o---- ...
//!   way 2  |-- head start --|-- head start --|--o--o- ...
//! ```
//!
//! The way that is most likely to lead there comes first, and has a head start; where it is
//! refused, the next one need not wait. Each way is tried again and again, ever more rarely.
/// Ways that are tried at most.
// spec: OPEN-30
pub const WAYS_MAX: usize = 16;

/// How often an open is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds until it is repeated first.
    pub first: u64,
    /// Most nanoseconds between two.
    pub most: u64,
}

impl Pace {
    /// For hosts of one rack: a peer that is asleep answers within 10 ms, and one that starts
    /// later is found within a second.
    pub const RACK: Self = Self { first: 10_000_000, most: 1_000_000_000 };
}

/// How one way stands.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    /// When it is to be tried next, and how long after that again.
    next: u64,
    interval: u64,
    is_tried: bool,
    is_refused: bool,
}

/// Tries ways in turn; see the module.
#[derive(Clone, Debug)]
pub struct Race {
    attempts: [Attempt; WAYS_MAX],
    count: usize,
    /// Most nanoseconds between two tries of a way.
    most: u64,
}

impl Race {
    /// Nanoseconds that a way has before the next one is tried, too.
    // spec: OPEN-30
    pub const HEAD_START: u64 = 50_000_000;

    /// Tries this number of ways, those beyond [`WAYS_MAX`] left out. One at least.
    pub fn new(ways: usize, pace: Pace, now: u64) -> Self {
        let attempt = |way: usize| Attempt {
            next: now.saturating_add(way as u64 * Self::HEAD_START),
            interval: pace.first,
            is_tried: false,
            is_refused: false,
        };
        let attempts = core::array::from_fn(attempt);
        Self { attempts, count: ways.clamp(1, WAYS_MAX), most: pace.most }
    }

    /// The way to be tried now, if one is: it is taken for tried. The owner asks until none is.
    // spec: OPEN-6, OPEN-30
    pub fn on_time(&mut self, now: u64) -> Option<usize> {
        let most = self.most;
        let (way, attempt) = self.left_mut().find(|(_, attempt)| attempt.next <= now)?;
        attempt.next = now.saturating_add(attempt.interval);
        attempt.interval = attempt.interval.saturating_mul(2).min(most);
        attempt.is_tried = true;
        debug_assert!(!attempt.is_refused, "who says no is not asked again");
        debug_assert!(way < self.count, "there are so many ways");
        Some(way)
    }

    /// When [`Race::on_time`] has something to do next.
    pub fn deadline(&self) -> u64 {
        let left = self.attempts[..self.count].iter().filter(|attempt| !attempt.is_refused);
        left.map(|attempt| attempt.next).min().unwrap_or(u64::MAX)
    }

    /// Somebody at the end of this way says no: it is tried no more, and the next one at once.
    // spec: OPEN-30
    pub fn refuse(&mut self, way: usize, now: u64) {
        let Some(attempt) = self.attempts[..self.count].get_mut(way) else { return };
        attempt.is_refused = true;
        if let Some((_, next)) = self.left_mut().find(|(_, attempt)| !attempt.is_tried) {
            next.next = next.next.min(now);
        }
    }

    /// Somebody at the end of this way wants to be asked again: at once, or when it is its turn.
    /// The others wait for the answer.
    // spec: OPEN-24, OPEN-30
    pub fn prefer(&mut self, way: usize, is_at_once: bool, now: u64) {
        if self.attempts[..self.count].get(way).is_none_or(|attempt| attempt.is_refused) {
            return;
        }
        for (index, attempt) in self.left_mut() {
            if index != way {
                attempt.next = attempt.next.max(now.saturating_add(Self::HEAD_START));
            } else if is_at_once {
                attempt.next = now;
            }
        }
    }

    /// Whether all ways are refused.
    pub fn is_lost(&self) -> bool {
        self.attempts[..self.count].iter().all(|attempt| attempt.is_refused)
    }

    fn left_mut(&mut self) -> impl Iterator<Item = (usize, &mut Attempt)> {
        let attempts = self.attempts[..self.count].iter_mut().enumerate();
        attempts.filter(|(_, attempt)| !attempt.is_refused)
    }
}

//! Which packets have come: a window over their numbers, so that none is taken in twice.

/// Numbers behind the highest one that are told apart; what is older counts as seen.
pub const REPLAY_WINDOW: u64 = 512;
const WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// The packets of one direction of a link that have come (as RFC 4303's anti-replay window).
#[derive(Clone, Debug)]
pub struct Replay {
    /// The highest number that has come; numbers begin with 1.
    highest: u64,
    /// Bit `n % REPLAY_WINDOW`: number n of the window has come.
    seen: [u64; WORDS],
}

impl Default for Replay {
    fn default() -> Self {
        Self::new()
    }
}

impl Replay {
    /// Nothing has come.
    pub const fn new() -> Self {
        Self { highest: 0, seen: [0; WORDS] }
    }

    /// Whether a packet has not come before; from here on it has.
    // spec: LINK-15
    pub fn is_new(&mut self, packet: u64) -> bool {
        let is_old = self.highest.checked_sub(REPLAY_WINDOW).is_some_and(|old| packet <= old);
        if packet == 0 || is_old {
            return false;
        }
        if packet > self.highest {
            self.forget(packet);
            self.highest = packet;
        }
        let (word, bit) = place(packet);
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        self.check();
        is_new
    }

    /// Asserts what holds between two steps.
    fn check(&self) {
        let (word, bit) = place(self.highest);
        debug_assert!(self.seen[word] & bit != 0, "the highest has come");
        let seen: u32 = self.seen.iter().map(|word| word.count_ones()).sum();
        debug_assert!(u64::from(seen) <= self.highest, "numbers begin with one");
    }

    /// Makes the places free of the numbers between the highest one and this.
    fn forget(&mut self, packet: u64) {
        if packet - self.highest >= REPLAY_WINDOW {
            self.seen = [0; WORDS];
            return;
        }
        for number in self.highest + 1..=packet {
            let (word, bit) = place(number);
            self.seen[word] &= !bit;
        }
    }
}

const fn place(packet: u64) -> (usize, u64) {
    ((packet % REPLAY_WINDOW / 64) as usize, 1 << (packet % 64))
}

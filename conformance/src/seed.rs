//! Random cases that can be brought back: `AYRE_SEED=... cargo test` runs those of one seed.
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::OnceLock;

/// A generator that says its seed when its test panics.
#[derive(Debug)]
pub struct Dice {
    seed: u64,
    list: u64,
    rng: StdRng,
}

impl Dice {
    /// The generator of the `list`-th case of a test.
    pub fn new(list: u64) -> Self {
        let seed = seed();
        let rng =
            StdRng::seed_from_u64(seed.wrapping_add(list.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Self { seed, list, rng }
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.rng.random_range(0..bound)
    }

    /// An index below `bound`, which is not 0.
    pub fn index(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound)
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// 64 random bits, with edges of both widths and small numbers more often than chance has them.
    pub fn word(&mut self) -> u64 {
        let edges = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 0xffff_ffff, 1 << 31, (1 << 31) - 1];
        match self.below(4) {
            0 => self.pick(&edges).wrapping_add(self.below(3)).wrapping_sub(1),
            1 => self.below(1000),
            _ => self.rng.random(),
        }
    }

    /// Random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill(&mut bytes[..]);
        bytes
    }
}

impl Drop for Dice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("AYRE_SEED={} brings this back, at its list {}", self.seed, self.list);
        }
    }
}

/// The list of a fabric, another one than most others have.
pub fn of(fabric: &impl std::fmt::Debug) -> u64 {
    format!("{fabric:?}").bytes().fold(7, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte))
}

/// How many cases a random test draws: `PROPTEST_CASES` as other property tests, or else `usual`.
pub fn cases(usual: u64) -> u64 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The seed of this process.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let given = std::env::var("AYRE_SEED").ok().and_then(|text| text.parse().ok());
        given.unwrap_or_else(rand::random)
    })
}

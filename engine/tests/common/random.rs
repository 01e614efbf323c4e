//! Random choices that a seed brings back.
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

/// A stream of random words (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// A number below two to the `bits`, each order of magnitude as likely as another.
    pub fn scaled(&mut self, bits: u64) -> u64 {
        let bound = 1 << self.below(bits + 1);
        self.below(bound)
    }
}

/// Mixes the bits of a word.
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Bytes that only these numbers give, as many as asked for.
pub fn fill(bytes: &mut [u8], from: u64, to: u64, sequence: u64) {
    let mut random = Random::new(mix(from << 48 ^ to << 32 ^ sequence));
    for chunk in bytes.chunks_mut(8) {
        let word = random.word().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// Seeds of as many rounds as a test makes: always the same, or with `AYRE_SOAK=rounds` that many
/// others, or with `AYRE_SEED=seed` that one alone.
pub fn iterations(usual: u64) -> Range<u64> {
    if let Ok(text) = std::env::var("AYRE_SEED") {
        let seed: u64 = text.parse().expect("AYRE_SEED is a number");
        return seed..seed + 1;
    }
    let Some(rounds) = soak_rounds() else { return 0..usual };
    let start = std::hash::RandomState::new().build_hasher().finish() >> 1;
    eprintln!("soak: {rounds} rounds from seed {start}");
    start..start + rounds
}

/// The rounds of a soak, if this is one.
pub fn soak_rounds() -> Option<u64> {
    std::env::var("AYRE_SOAK").ok().map(|text| text.parse().expect("AYRE_SOAK is a number"))
}

//! Chance that is equal on every machine: a generator for each use, seeded from the run's seed.
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoroshiro128PlusPlus;

/// A generator of one use, such as the arrivals of one node.
#[derive(Clone, Debug)]
pub struct Random(Xoroshiro128PlusPlus);

/// Mixes the bits of a number so that near numbers become far ones (the finaliser of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Random {
    /// The generator of use number `of` in the run with this seed.
    pub fn new(seed: u64, of: u64) -> Self {
        Self(Xoroshiro128PlusPlus::seed_from_u64(mix(seed) ^ mix(!of)))
    }

    /// A whole number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u32) -> u32 {
        // Multiplication instead of division (Lemire 2019), without its rejection: the error of
        // 2^-32 * bound is far below what a run of 2^48 ps can show.
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// Exponentially distributed with mean 1. The logarithm is `libm`'s, whose results are equal on
    /// all machines.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// The number of trials up to the first success, each with chance `p`: at least 1.
    pub fn trials(&mut self, p: f64) -> u64 {
        if p >= 1.0 {
            return 1;
        }
        1 + (libm::log(1.0 - self.unit()) / libm::log1p(-p)) as u64
    }
}

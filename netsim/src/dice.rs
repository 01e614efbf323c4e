//! Numbers that a seed brings back.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// 64 bits.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which is not 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    /// A number from `least` to `most`.
    pub const fn between(&mut self, least: u64, most: u64) -> u64 {
        let faces = (most - least) as u128 + 1;
        least + ((self.word() as u128 * faces) >> 64) as u64
    }

    /// True in this number of a hundred cases.
    pub const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// True in this share of all cases. A chance of zero takes no number.
    pub const fn chance(&mut self, share: f64) -> bool {
        const ONE: f64 = (1_u64 << 32) as f64;
        share > 0.0 && self.word() >> 32 < (share * ONE) as u64
    }
}

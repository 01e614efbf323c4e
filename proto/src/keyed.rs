//! Tables by words that the program of this port has chosen: nobody else can have them collide.
use core::hash::{BuildHasherDefault, Hasher};
use hashbrown::HashMap;

/// A table by such words.
pub(crate) type Keyed<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Spreads words that differ in a few of their bits: numbers, and addresses.
#[derive(Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

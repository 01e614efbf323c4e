//! The lanes of a link: training, deskew and scrambling (sections II and IV.B).
//!
//! ```text
//!             training          start      scrambled words
//!   lane 0:   1010...1010 | 1110 0010 ... | w w w w w
//!   lane 1:  x 1010...1010 | 1110 0010 ... | w w w w w      one bit time later
//!   lane 2:   1010...1010 | 1110 0010 ... | w w w w w
//! ```
//!
//! A lane recovers its clock from its own bits, so each begins at its own time. The receiver finds
//! the start on each lane, and delays the early lanes until the latest one has come. Its FIFOs hold
//! eight bit times. The source gives neither patterns nor polynomial: those here are ours.
use thiserror::Error;

/// Eight lanes of data and one of control.
pub const LANES: usize = 9;
/// Bit times that a lane may be behind another one (section II).
pub const SKEW_MAX: usize = 8;

/// The end of the training and the start, which no lane has elsewhere but by a chance of 2^-32.
const MARK: u32 = 0b1010_1010_1010_1010_1110_0010_0101_1001;
const MARK_BITS: usize = 32;
/// Bits of training before the mark.
const TRAINING: usize = 64;

/// The bits of all lanes in order of time.
pub type Lanes = [Vec<bool>; LANES];

/// Why words cannot be read from lanes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LaneError {
    /// A lane was not trained.
    #[error("lane {lane} has no start after its training")]
    NoStart {
        /// The lane.
        lane: usize,
    },
    /// A lane is too late.
    #[error("lane {lane} is {skew} bit times behind the first one, and the limit is {limit}")]
    Skew {
        /// The lane.
        lane: usize,
        /// Bit times behind the first lane.
        skew: usize,
        /// The limit.
        limit: usize,
    },
}

/// Bits that look like chance, so that a clock can be recovered from any data (section IV.B). The
/// polynomial is `x^23 + x^18 + 1`, of ITU-T O.150.
#[derive(Clone, Copy, Debug)]
pub struct Scrambler(u32);

impl Scrambler {
    /// The scrambler of a lane.
    pub fn new(lane: usize) -> Self {
        Self(0x0007_5555 + lane as u32)
    }

    /// The bit to be added to the next one of the lane.
    pub fn bit(&mut self) -> bool {
        let bit = (self.0 >> 22 ^ self.0 >> 17) & 1;
        self.0 = (self.0 << 1 | bit) & 0x007f_ffff;
        bit == 1
    }
}

/// Sends words of nine bits, one for each lane, after the training.
pub fn send(words: &[u16]) -> Lanes {
    core::array::from_fn(|lane| {
        let mut scrambler = Scrambler::new(lane);
        let training = (0..TRAINING).map(|bit| bit % 2 == 0);
        let mark = (0..MARK_BITS).map(|bit| MARK >> (MARK_BITS - 1 - bit) & 1 == 1);
        let data = words.iter().map(|word| (word >> lane & 1 == 1) ^ scrambler.bit());
        training.chain(mark).chain(data).collect()
    })
}

/// Reads the words from lanes of which each may be behind the others.
///
/// # Errors
/// See [`LaneError`].
pub fn receive(lanes: &Lanes) -> Result<Vec<u16>, LaneError> {
    let mut starts = [0; LANES];
    for (lane, bits) in lanes.iter().enumerate() {
        starts[lane] = start(bits).ok_or(LaneError::NoStart { lane })?;
    }
    let first = starts.iter().copied().min().unwrap_or_default();
    for (lane, start) in starts.iter().enumerate() {
        let skew = start - first;
        if skew > SKEW_MAX {
            return Err(LaneError::Skew { lane, skew, limit: SKEW_MAX });
        }
    }
    let left = lanes.iter().zip(starts).map(|(bits, start)| bits.len() - start);
    let mut words = vec![0; left.min().unwrap_or_default()];
    for (lane, bits) in lanes.iter().enumerate() {
        let mut scrambler = Scrambler::new(lane);
        for (word, bit) in words.iter_mut().zip(&bits[starts[lane]..]) {
            *word |= u16::from(bit ^ scrambler.bit()) << lane;
        }
    }
    Ok(words)
}

/// The place of the first bit of data.
fn start(bits: &[bool]) -> Option<usize> {
    let mut last = 0_u32;
    bits.iter()
        .position(|bit| {
            last = last << 1 | u32::from(*bit);
            last == MARK
        })
        .map(|place| place + 1)
}

/// Delays each lane by bits that carry nothing, such as a receiver sees before its clock is
/// recovered.
pub fn delay(lanes: Lanes, skews: [usize; LANES], mut noise: impl FnMut() -> bool) -> Lanes {
    let mut delayed = lanes;
    for (bits, skew) in delayed.iter_mut().zip(skews) {
        bits.splice(0..0, (0..skew).map(|_| noise()));
    }
    delayed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn any_skews_up_to_the_limit_are_taken_out() {
        let mut random = Random::new(3, 0);
        for _ in 0..300 {
            let words: Vec<_> = (0..200).map(|_| random.below(1 << LANES) as u16).collect();
            let skews = core::array::from_fn(|_| random.below(SKEW_MAX as u32 + 1) as usize);
            let lanes = delay(send(&words), skews, || random.below(2) == 1);
            assert_eq!(receive(&lanes), Ok(words));
        }
    }

    #[test]
    fn a_lane_without_training_is_refused() {
        let mut lanes = send(&[1, 2, 3]);
        lanes[4].truncate(TRAINING);
        assert_eq!(receive(&lanes), Err(LaneError::NoStart { lane: 4 }));
    }

    #[test]
    fn zeros_are_scrambled_into_runs_no_longer_than_the_register() {
        // All bits of a register of 23 are never zero, so there are at most 22 zeros in a row, and
        // 23 ones.
        let mut scrambler = Scrambler::new(0);
        let (mut run, mut longest, mut before, mut ones) = (0, 0, false, 0);
        for _ in 0..1 << 20 {
            let bit = scrambler.bit();
            run = if bit == before { run + 1 } else { 1 };
            before = bit;
            longest = longest.max(run);
            ones += u32::from(bit);
        }
        assert!((12..=23).contains(&longest), "{longest}");
        // Half of the bits are ones, within four standard deviations.
        assert!(ones.abs_diff(1 << 19) < 2 << 10, "{ones}");
    }
}

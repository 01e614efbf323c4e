//! Write-combining stores that an interrupt splits (EXTOLL thesis, section 6.4.4).
//!
//! A message is stored in pieces into one buffer of the processor, which leaves when it is full.
//! An interrupt between the first piece and the last one empties the buffer early, and the message
//! leaves in two.
//!
//! ```text
//!   message:   |store|store|store|store|         |store|store|store|store|
//!   exposed:         |<--------------->|               |<--------------->|
//!                        ^ splits                    ^ does not
//! ```
use crate::random::Random;
use crate::time::Time;

/// A program that stores messages one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stores {
    /// Bytes of a message.
    pub message: u32,
    /// Bytes of a store.
    pub store: u32,
    /// The time of a store, with the load of its bytes.
    pub time: Time,
    /// From the begin of a message to the begin of the next one.
    pub period: Time,
}

impl Stores {
    /// Messages of 32 bytes by stores of this width. Reconstructed: a load and a store take an
    /// Opteron of 2 GHz 4 cycles. A message is sent each 170 ns, which is half of the software of
    /// table 9-2 and a store.
    pub fn opteron(store: u32) -> Self {
        Self { message: 32, store, time: Time::from_nanos(2), period: Time::from_nanos(170) }
    }

    /// The time in which an interrupt splits a message.
    pub fn exposed(&self) -> Time {
        Time(u64::from(self.message.div_ceil(self.store) - 1) * self.time.0)
    }
}

/// The interrupts that a processor takes, each a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interrupts {
    /// Of its timer, which every processor has.
    pub timer: f64,
    /// Of devices.
    pub devices: f64,
}

impl Interrupts {
    /// A processor without devices. Linux 2.6 has 250 timer interrupts a second.
    pub const TIMER: Self = Self { timer: 250.0, devices: 0.0 };
    /// The processor that takes all interrupts. Reconstructed: a session over the network and a
    /// disk give some 1,000 a second.
    pub const ALL: Self = Self { devices: 1_000.0, ..Self::TIMER };

    /// Each of this number of interrupts comes at a random time. The result is the share of the
    /// messages sent meanwhile that was split.
    pub fn split(&self, stores: &Stores, interrupts: u64, random: &mut Random) -> f64 {
        let mean = 1e12 / (self.timer + self.devices);
        let (mut now, mut split) = (0.0, 0_u64);
        for _ in 0..interrupts {
            now += random.exponential() * mean;
            // The first store of a message may still be taken back: it is not in the buffer yet.
            let phase = now as u64 % stores.period.0;
            let first = stores.time.0;
            split += u64::from((first..first + stores.exposed().0).contains(&phase));
        }
        split as f64 * stores.period.0 as f64 / now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_the_rate_of_interrupts_times_the_exposed_time() {
        for store in [4, 8, 16] {
            let stores = Stores::opteron(store);
            let ours = Interrupts::ALL.split(&stores, 400_000, &mut Random::new(1, 0));
            let expected = 1_250.0 * stores.exposed().0 as f64 / 1e12;
            assert!((ours / expected - 1.0).abs() < 0.06, "{store}: {ours}, {expected}");
        }
    }

    #[test]
    fn one_store_is_never_split() {
        let stores = Stores { message: 16, ..Stores::opteron(16) };
        assert_eq!(Interrupts::ALL.split(&stores, 10_000, &mut Random::new(1, 0)), 0.0);
    }
}

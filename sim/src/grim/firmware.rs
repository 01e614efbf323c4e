//! Times of an interface's firmware for a message.
//!
//! ```text
//!   sender:    find --> mark --> to the link
//!                          '---> record
//!   receiver:  header --> decode --> translate --> to the host --> pointer, or lock
//!                            '---> checks --> answer
//! ```
//!
//! The lower branches run beside the transfers. The source says of recording and of decoding that
//! they do (section 5.3.2). Of the checks and the answer that is reconstructed: with them, the sum
//! of LANai 4's steps is more than its latency in table 5.4.
use crate::time::Time;

/// The time of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firmware {
    /// Looking for a message in 1, 8, 16 and 32 channels (figure 4.10).
    pub scan: [(u32, Time); 4],
    /// Setting the sequence number and the token of a message (table 5.1).
    pub mark: Time,
    /// An entry in the scoreboard.
    pub record: Time,
    /// Decoding a header.
    pub decode: Time,
    /// Comparing the sequence number, and looking for room at the endpoint.
    pub checks: Time,
    /// Making an ACK or a NACK.
    pub answer: Time,
    /// Counting up the pointer of an endpoint's queue (table 5.2).
    pub pointer: Time,
    /// Moving that pointer to the host.
    pub move_pointer: Time,
    /// A search of the translation cache that finds (table 5.3).
    pub hit: Time,
    /// Writing the word that tells of the end of a remote write.
    pub lock: Time,
}

impl Firmware {
    /// A LANai 4.
    pub const LANAI4: Self = Self {
        scan: [(1, nanos(1_000)), (8, nanos(5_500)), (16, nanos(9_000)), (32, nanos(18_000))],
        mark: nanos(2_500),
        record: nanos(3_000),
        decode: nanos(2_500),
        checks: nanos(2_000 + 2_000),
        answer: nanos(4_000),
        pointer: nanos(1_500),
        move_pointer: nanos(4_000),
        hit: nanos(3_000),
        lock: nanos(9_000),
    };

    /// A LANai 9.
    pub const LANAI9: Self = Self {
        scan: [(1, nanos(500)), (8, nanos(1_500)), (16, nanos(3_000)), (32, nanos(6_000))],
        mark: nanos(1_000),
        record: nanos(1_000),
        decode: nanos(1_000),
        checks: nanos(500 + 500),
        answer: nanos(1_500),
        pointer: nanos(500),
        move_pointer: nanos(1_500),
        hit: nanos(1_000),
        lock: nanos(4_000),
    };

    /// The time of a look into this number of channels: on straight lines between the measured
    /// numbers and beyond them.
    pub fn scan(&self, channels: u32) -> Time {
        let after = self.scan.iter().position(|point| channels <= point.0);
        let after = after.unwrap_or(self.scan.len() - 1).max(1);
        let [(left, low), (right, high)] = [self.scan[after - 1], self.scan[after]];
        let slope = (high - low).0 as f64 / f64::from(right - left);
        Time((low.0 as f64 + slope * (f64::from(channels) - f64::from(left))).max(0.0) as u64)
    }

    /// The number of channels whose scan takes half of a message's whole way (section 4.3.4), as a
    /// multiple of `step`.
    pub fn most_channels(&self, way: Time, step: u32) -> u32 {
        let half = way.0 / 2;
        let fits = |channels: &u32| self.scan(*channels).0 <= half;
        let most = (0..).take_while(fits).last().unwrap_or(0);
        (most + step / 2) / step * step
    }
}

const fn nanos(time: u64) -> Time {
    Time::from_nanos(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_meets_the_measurements_and_grows() {
        for firmware in [Firmware::LANAI4, Firmware::LANAI9] {
            for (channels, time) in firmware.scan {
                assert_eq!(firmware.scan(channels), time);
            }
            assert!((1..64).all(|few| firmware.scan(few) < firmware.scan(few + 1)));
        }
    }

    #[test]
    fn more_channels_fit_a_longer_way() {
        let most = |micros: u64| Firmware::LANAI9.most_channels(nanos(micros * 1_000), 1);
        assert_eq!(most(12), 32);
        assert!(most(10) < most(20));
    }
}

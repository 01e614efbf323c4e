//! MPI over VELO and RMA: the four protocols of point-to-point messages, and one-sided puts
//! (sections 8.6, 9.2 and 9.3).
//!
//! ```text
//!   tiny    one message:        | header 8 | data <= 56 |
//!   small   several messages:   | header 8 | data 56 |  | data 64 |  | data 64 | ...
//!   medium  copy -> put, notified -> copy
//!   long    request of 16 bytes -> gets by the receiver, the last one notified
//! ```
use super::{Operation, Parameters, Transfer};
use crate::time::Time;

/// Bytes of MPI's header in a message (section 8.6).
const HEADER: u32 = 8;
/// Bytes of the request of a long message (section 8.6).
const REQUEST: u32 = 16;

/// A protocol of point-to-point messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// VELO messages: one is tiny, several are small.
    Small,
    /// A put into a buffer of the receiver, with a copy at both ends.
    Medium,
    /// A rendezvous: the receiver gets the data from where they are.
    Long,
}

/// The bytes that a processor copies in a second. Reconstructed: an Opteron with DDR-400 copies
/// some 2 GB/s.
pub const COPY: f64 = 2e9;

impl Protocol {
    /// Half of a round trip with messages of this length.
    pub fn latency(self, times: &Parameters, bytes: u32) -> Time {
        match self {
            Self::Small => times.latency(Transfer::Velo, (bytes + HEADER).next_multiple_of(8)),
            Self::Medium => {
                let copy = Time((f64::from(bytes) / COPY * 1e12).round() as u64);
                // The notification follows the data of the last put.
                copy + times.latency(Transfer::Put, bytes) + times.dma_write + copy
            }
            Self::Long => {
                times.alone(Operation::Velo, REQUEST) + times.latency(Transfer::Get, bytes)
            }
        }
    }
}

/// A one-sided put between two fences, at its origin. A fence is an immediate put in both
/// directions (section 8.6).
///
/// ```text
///   origin:  fence | put | compute ... | fence: wait for notification, put, wait for peer |
///                    '-> requester: the packet has left -> notification
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its bytes, 4 KiB at most.
    pub bytes: u32,
    /// Whether the data begin to move at once. Two-sided libraries begin in the fence.
    pub is_one_sided: bool,
}

impl Put {
    /// From the put until the second fence is passed, if the program computes for `work` between.
    pub fn time(&self, times: &Parameters, work: Time) -> Time {
        let half = Time(times.software.0 / 2);
        let post = half + times.store;
        // From the put until the program could see that its packet has left.
        let left = times.left(self.bytes) + times.dma_write;
        let ready = if self.is_one_sided { left.max(post + work) } else { post + work + left };
        // It sees the notification, puts, and sees the put of its peer, which came long ago.
        ready + half + post + half
    }

    /// The share of the time without work that work can take and cost nothing. Less than a cycle
    /// of the interface is no cost.
    pub fn overlap(&self, times: &Parameters) -> f64 {
        let alone = self.time(times, Time::ZERO);
        let free = |work| self.time(times, Time(work)) <= alone + times.cycles(1);
        // The greatest work that costs nothing, between a free one and one that is not.
        let (mut least, mut most) = (0, alone.0 + 1);
        while most - least > 1 {
            let middle = u64::midpoint(least, most);
            if free(middle) { least = middle } else { most = middle }
        }
        least as f64 / alone.0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extoll::prototype_clock;
    use crate::host::Host;

    fn times() -> Parameters {
        Parameters::composed(&Host::HT400, prototype_clock())
    }

    #[test]
    fn a_tiny_message_is_one_of_velo() {
        let times = times();
        let message = |bytes| times.alone(Operation::Velo, bytes);
        assert_eq!(Protocol::Small.latency(&times, 48), message(56));
        // The header leaves no room for a 57th byte.
        assert!(Protocol::Small.latency(&times, 57) > message(64));
    }

    #[test]
    fn the_rendezvous_pays_a_request_and_saves_the_copies() {
        let times = times();
        let [medium, long] = [Protocol::Medium, Protocol::Long].map(|protocol| {
            (8..=4096).step_by(8).map(move |bytes| protocol.latency(&times, bytes))
        });
        let differences: Vec<_> =
            medium.zip(long).map(|(medium, long)| long.0 as i64 - medium.0 as i64).collect();
        // Each byte more narrows the gap by two copies.
        let copies = 2.0 * 8.0 / COPY * 1e12;
        for pair in differences.windows(2) {
            assert!(((pair[0] - pair[1]) as f64 - copies).abs() <= 2.0, "{pair:?}");
        }
    }

    #[test]
    fn work_overlaps_with_the_wait_for_the_notification_and_with_nothing_else() {
        let times = times();
        for bytes in [8, 32, 512, 4096] {
            let put = Put { bytes, is_one_sided: true };
            let busy = Time(times.software.0 / 2 + times.store.0);
            let wait = times.left(bytes) + times.dma_write - busy;
            let share = wait.0 as f64 / put.time(&times, Time::ZERO).0 as f64;
            assert!((put.overlap(&times) - share).abs() < 0.01, "{bytes}");
        }
    }
}

//! VELO's mailbox: a ring of slots that drops what it has no room for (section 7.4).
//!
//! ```text
//!   slot 64:  | status word 8: source, length, type | payload <= 56 |
//!
//!   ring:     [free][ .. unread .. ][free]
//!                   ^ read           ^ write
//! ```
//!
//! The interface owns the write pointer, and the program the read pointer. No credit stands for a
//! slot. A message that finds the mailbox disabled or without room is discarded and counted. If the
//! interface waited instead, two nodes that send and do not receive would wait for each other
//! (section 6.5). Flow control is the software's.
use crate::time::Time;
use std::collections::VecDeque;

/// Bytes of a message in one slot, behind its status word.
const SLOT: u32 = 56;

/// Slots that a message takes; an empty one has a status word, too.
pub fn slots(bytes: u32) -> u32 {
    bytes.div_ceil(SLOT).max(1)
}

/// A mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// Slots of its ring.
    pub size: u32,
    /// Whether messages are taken at all.
    pub is_enabled: bool,
    /// Whether each message raises an interrupt, as the kernel asks for by its page.
    pub interrupts: bool,
    /// The slots of each message that was not read.
    unread: VecDeque<u32>,
    taken: u32,
    counts: Counts,
}

/// The counters of a mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were written.
    pub received: u64,
    /// Messages that found no room.
    pub discarded: u64,
    /// Interrupts.
    pub interrupts: u64,
}

impl Mailbox {
    /// An empty mailbox of `size` slots, which is enabled and polled.
    pub fn new(size: u32) -> Self {
        let (unread, counts) = (VecDeque::new(), Counts::default());
        Self { size, is_enabled: true, interrupts: false, unread, taken: 0, counts }
    }

    /// A message comes. Whether it was written.
    pub fn arrive(&mut self, bytes: u32) -> bool {
        let slots = slots(bytes);
        let has_room = self.is_enabled && slots <= self.size - self.taken;
        if has_room {
            self.taken += slots;
            self.unread.push_back(slots);
            self.counts.received += 1;
            self.counts.interrupts += u64::from(self.interrupts);
        } else {
            self.counts.discarded += 1;
        }
        has_room
    }

    /// The program reads a message, and frees its slots. Whether there was one.
    pub fn read(&mut self) -> bool {
        let Some(slots) = self.unread.pop_front() else { return false };
        self.taken -= slots;
        true
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Messages of this length come at these times, in order. The program spends the time beside
    /// each on reading it, and frees its slots then.
    pub fn flood(&mut self, bytes: u32, messages: &[(Time, Time)]) {
        // When the program has read each message that is in the mailbox.
        let mut ends: VecDeque<Time> = VecDeque::new();
        for (at, reading) in messages {
            while ends.front().is_some_and(|end| end <= at) {
                ends.pop_front();
                self.read();
            }
            if self.arrive(bytes) {
                let begin = ends.back().map_or(*at, |last| (*last).max(*at));
                ends.push_back(begin + *reading);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_flood_that_nobody_reads_fills_the_ring_and_no_more() {
        let mut mailbox = Mailbox::new(100);
        let kept = (0..1_000).filter(|_| mailbox.arrive(64)).count();
        // A message of 64 bytes has two slots.
        assert_eq!(kept, 50);
        let counts = Counts { received: 50, discarded: 950, interrupts: 0 };
        assert_eq!(mailbox.counts(), counts);
        assert!(mailbox.read() && mailbox.arrive(64) && !mailbox.arrive(8));
    }

    #[test]
    fn a_disabled_mailbox_discards_and_only_the_kernel_s_page_interrupts() {
        let mut mailbox = Mailbox { is_enabled: false, ..Mailbox::new(8) };
        assert!(!mailbox.arrive(8));
        (mailbox.is_enabled, mailbox.interrupts) = (true, true);
        assert!(mailbox.arrive(8) && mailbox.arrive(8));
        let counts = Counts { received: 2, discarded: 1, interrupts: 2 };
        assert_eq!(mailbox.counts(), counts);
    }

    /// With messages and reads at random, the share that is lost is that of M/M/1/K.
    #[test]
    fn the_share_of_lost_messages_is_that_of_a_bounded_queue() {
        for (load, size) in [(0.5, 3), (0.9, 8), (1.5, 4)] {
            let mut random = Random::new(1, 0);
            let mut now = 0.0;
            let messages: Vec<_> = (0..400_000)
                .map(|_| {
                    now += random.exponential() * 1e5 / load;
                    (Time(now as u64), Time((random.exponential() * 1e5) as u64))
                })
                .collect();
            let mut mailbox = Mailbox::new(size);
            mailbox.flood(8, &messages);
            let lost = mailbox.counts().discarded as f64 / 400_000.0;
            let power = |count: u32| (0..count).fold(1.0, |product, _| product * load);
            let expected = (1.0 - load) * power(size) / (1.0 - power(size + 1));
            assert!((lost / expected - 1.0).abs() < 0.03, "{load}: {lost}, {expected}");
        }
    }
}

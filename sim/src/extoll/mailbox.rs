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
use std::collections::VecDeque;

/// Bytes of a message in one slot, behind its status word.
const SLOT: u32 = 56;

/// Slots that a message takes; an empty one has a status word, too.
pub fn slots(bytes: u32) -> u32 {
    bytes.div_ceil(SLOT).max(1)
}

/// A mailbox of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox<M> {
    /// Slots of its ring.
    pub size: u32,
    /// Whether messages are taken at all.
    pub is_enabled: bool,
    /// Whether each message raises an interrupt, as the kernel asks for by its page.
    pub interrupts: bool,
    /// Messages that were not read, with their slots.
    unread: VecDeque<(u32, M)>,
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

impl<M> Mailbox<M> {
    /// An empty mailbox of `size` slots, which is enabled and polled.
    pub fn new(size: u32) -> Self {
        let (unread, counts) = (VecDeque::new(), Counts::default());
        Self { size, is_enabled: true, interrupts: false, unread, taken: 0, counts }
    }

    /// A message of this length comes. Whether it was written.
    pub fn arrive(&mut self, bytes: u32, message: M) -> bool {
        let slots = slots(bytes);
        let has_room = self.is_enabled && slots <= self.size.saturating_sub(self.taken);
        if has_room {
            self.taken += slots;
            self.unread.push_back((slots, message));
            self.counts.received += 1;
            self.counts.interrupts += u64::from(self.interrupts);
        } else {
            self.counts.discarded += 1;
        }
        has_room
    }

    /// The message that is read next.
    pub fn peek(&self) -> Option<&M> {
        self.unread.front().map(|(_, message)| message)
    }

    /// The program reads a message, and frees its slots.
    pub fn read(&mut self) -> Option<M> {
        let (slots, message) = self.unread.pop_front()?;
        self.taken -= slots;
        Some(message)
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_that_nobody_reads_fills_the_ring_and_no_more() {
        let mut mailbox = Mailbox::new(100);
        let kept = (0..1_000).filter(|number| mailbox.arrive(64, *number)).count();
        // A message of 64 bytes has two slots.
        assert_eq!(kept, 50);
        let counts = Counts { received: 50, discarded: 950, interrupts: 0 };
        assert_eq!(mailbox.counts(), counts);
        assert_eq!(mailbox.peek(), Some(&0));
        assert_eq!(mailbox.read(), Some(0));
        assert!(mailbox.arrive(64, 1_000) && !mailbox.arrive(8, 1_001));
    }

    #[test]
    fn a_disabled_mailbox_discards_and_only_the_kernel_s_page_interrupts() {
        let mut mailbox = Mailbox { is_enabled: false, ..Mailbox::new(8) };
        assert!(!mailbox.arrive(8, ()));
        (mailbox.is_enabled, mailbox.interrupts) = (true, true);
        assert!(mailbox.arrive(8, ()) && mailbox.arrive(8, ()));
        let counts = Counts { received: 2, discarded: 1, interrupts: 2 };
        assert_eq!(mailbox.counts(), counts);
    }
}

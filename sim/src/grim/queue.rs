//! Three designs of a channel's queue in the memory of the interface (section 4.2.2).
//!
//! ```text
//!   slots:   | header payload ...... | header payload ...... |   one length
//!   append:  |header payload|header payload payload|header|      scoreboard: | entry | entry |
//!   hybrid:  |header|header|header| ...   |payload|payload payload| ...
//! ```
use super::{HEADER, dma::Dma};
use crate::time::Time;

/// Bytes of an entry of the scoreboard: an address, and a state. Reconstructed.
const ENTRY: u32 = 8;

/// A design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Each message has a slot of the greatest length.
    Slots {
        /// Bytes of a slot.
        slot: u32,
    },
    /// Messages follow each other. Their states are in a scoreboard.
    Append,
    /// Headers have slots, payloads follow each other.
    Hybrid {
        /// Slots of headers.
        headers: u32,
    },
}

impl Design {
    /// How many of these payloads, in their order, fit into a memory.
    pub fn holds(self, memory: u32, payloads: impl IntoIterator<Item = u32>) -> u32 {
        let mut left = match self {
            Self::Hybrid { headers } => memory.saturating_sub(headers * HEADER),
            _ => memory,
        };
        let mut held = 0;
        for payload in payloads {
            let Some(need) = self.needs(payload).filter(|need| *need <= left) else { break };
            if matches!(self, Self::Hybrid { headers } if held == headers) {
                break;
            }
            left -= need;
            held += 1;
        }
        held
    }

    /// The memory of a message; none if it does not fit at all. Payloads are whole words.
    fn needs(self, payload: u32) -> Option<u32> {
        let words = payload.next_multiple_of(4);
        match self {
            Self::Slots { slot } => (HEADER + words <= slot).then_some(slot),
            Self::Append => Some(HEADER + words + ENTRY),
            Self::Hybrid { .. } => Some(words),
        }
    }

    /// The time of a message's transfers to the link: header and payload are two in the hybrid.
    pub fn transfer(self, link: &Dma, payload: u32) -> Time {
        let further = if matches!(self, Self::Hybrid { .. }) { link.start } else { Time::ZERO };
        link.time(HEADER + payload) + further
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grim::platform::Platform;

    const MEMORY: u32 = 128 << 10;

    #[test]
    fn slots_hold_as_many_messages_of_any_length() {
        let slots = Design::Slots { slot: 4096 };
        for payload in [0, 100, 4096 - HEADER] {
            assert_eq!(slots.holds(MEMORY, core::iter::repeat(payload)), 32);
        }
        assert_eq!(slots.holds(MEMORY, [4096]), 0, "longer than a slot");
    }

    #[test]
    fn appended_messages_are_as_dense_as_their_lengths_allow() {
        let holds = |payload| Design::Append.holds(MEMORY, core::iter::repeat(payload));
        assert_eq!(holds(0), MEMORY / 40);
        assert_eq!(holds(3), holds(4));
        let mixed = (0..).map(|number| if number % 4 == 0 { 2000 } else { 8 });
        let slots = Design::Slots { slot: 2048 };
        assert!(Design::Append.holds(MEMORY, mixed.clone()) > 3 * slots.holds(MEMORY, mixed));
    }

    #[test]
    fn a_hybrid_ends_where_headers_or_payloads_end() {
        let hybrid = Design::Hybrid { headers: 100 };
        assert_eq!(hybrid.holds(MEMORY, core::iter::repeat(0)), 100);
        let payloads = (MEMORY - 100 * HEADER) / 4096;
        assert_eq!(hybrid.holds(MEMORY, core::iter::repeat(4096)), payloads);
        let link = Platform::p3_lanai4().link;
        assert!(hybrid.transfer(&link, 64) > Design::Append.transfer(&link, 64));
    }
}

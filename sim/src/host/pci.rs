//! PCI-X: cycles of what a program and a device do on the bus.
//!
//! ```text
//!   device's write:  | gap | protocol | words ... | gap | protocol | words ... |
//!   device's read:   | until the first word (split: the bus is free) | words ... | as above
//!   program's write: | protocol and gap | words of one line of the write-combining buffer |
//! ```
use crate::time::{Clock, Time};

/// A bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciX {
    /// Its clock.
    pub clock: Clock,
    /// Bytes of a word, which it moves in a cycle.
    pub width: u32,
    /// Cycles of a program's write of one word, 32 or 64 bits long.
    pub word_write: u32,
    /// Words of a line of the write-combining buffer, and the cycles in which it is written.
    pub line: (u32, u32),
    /// Cycles from a device's read to the first word, while the bus is free for others.
    pub first_word: u32,
    /// Cycles between two transactions, in which the bus is granted anew.
    pub gap: u32,
    /// Cycles of a transaction's protocol: address, attributes, response, turn-around.
    pub protocol: u32,
    /// Words in which a device's read arrives in one transaction.
    pub read_burst: u32,
    /// Words that a device writes until the bridge disconnects it.
    pub write_burst: u32,
}

impl PciX {
    /// The bus of FORTH's prototype (section V.C): 64 bits, 100 MHz.
    ///
    /// PCI-X disconnects at multiples of 128 bytes. Reads of 4 KiB arrive in three transactions,
    /// as the source states. It states no number for writes. Reconstructed: six transactions are
    /// the number that is nearest to its 570 cycles for 4 KiB.
    pub fn forth() -> Self {
        Self {
            clock: Clock::new(100_000_000).expect("a sound rate"),
            width: 8,
            word_write: 10,
            line: (8, 24),
            first_word: 50,
            gap: 6,
            protocol: 4,
            read_burst: 11 * 16,
            write_burst: 6 * 16,
        }
    }

    /// Words of `bytes` bytes.
    pub fn words(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.width)
    }

    /// Cycles of a program that writes this number of words one by one.
    pub fn write_words(&self, words: u32) -> u32 {
        words * self.word_write
    }

    /// Cycles of a program's write of words that the processor combines. A word that a line lacks
    /// saves one cycle (section V.E).
    pub fn write_combined(&self, words: u32) -> u32 {
        let (line, cycles) = self.line;
        words.div_ceil(line) * (cycles - line) + words
    }

    /// Transactions of a device's read.
    pub fn read_transactions(&self, bytes: u32) -> u32 {
        self.words(bytes).div_ceil(self.read_burst)
    }

    /// Cycles of a device's read, from its request to the end of its last transaction.
    pub fn read(&self, bytes: u32) -> u32 {
        self.first_word
            + self.words(bytes)
            + self.read_transactions(bytes) * (self.gap + self.protocol)
    }

    /// Cycles of a device's write.
    pub fn write(&self, bytes: u32) -> u32 {
        let words = self.words(bytes);
        words + words.div_ceil(self.write_burst) * (self.gap + self.protocol)
    }

    /// The time of `cycles` cycles.
    pub fn span(&self, cycles: u32) -> Time {
        self.clock.span(cycles.into())
    }

    /// Bytes per second when each cycle moves a word.
    pub fn peak(&self) -> f64 {
        f64::from(self.width) * 1e12 / self.span(1).0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_transfers_come_near_to_the_peak() {
        let bus = PciX { read_burst: 1 << 20, write_burst: 1 << 20, ..PciX::forth() };
        let bytes = 8 << 20;
        for cycles in [bus.read(bytes), bus.write(bytes)] {
            let overhead = cycles - bus.words(bytes);
            assert!(overhead <= bus.first_word + bus.gap + bus.protocol);
        }
    }

    #[test]
    fn each_disconnect_costs_a_gap_and_a_protocol() {
        let bus = PciX::forth();
        let burst = bus.write_burst * bus.width;
        for bursts in 1..6 {
            let whole = bus.write(bursts * burst);
            let more = bus.write(bursts * burst + bus.width);
            assert_eq!(more - whole, bus.gap + bus.protocol + 1);
        }
    }

    #[test]
    fn combining_never_costs_more_than_words_one_by_one_from_the_second_word_on() {
        let bus = PciX::forth();
        for words in 2..64 {
            assert!(bus.write_combined(words) <= bus.write_words(words), "{words}");
        }
        assert_eq!(bus.write_combined(bus.line.0), bus.line.1);
    }
}

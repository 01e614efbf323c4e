//! PCI-X: cycles of what a program and a device do on the bus.
use crate::time::{Clock, Time};

/// A bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciX {
    /// Its clock.
    pub clock: Clock,
    /// Bytes that it moves in a cycle.
    pub width: u32,
    /// Cycles of a program's write of one word.
    pub word_write: u32,
    /// Cycles from a device's read to the first word, while the bus is free for others.
    pub first_word: u32,
    /// Transactions in which a long read of 4 KiB arrives after the first one.
    pub more_transactions: u32,
    /// Cycles between these transactions, and of the protocol of each.
    pub between: (u32, u32),
}

impl PciX {
    /// The bus of FORTH's prototype (section V.C): 64 bits, 100 MHz.
    pub fn forth() -> Self {
        Self {
            clock: Clock::new(100_000_000).expect("a sound rate"),
            width: 8,
            word_write: 10,
            first_word: 50,
            more_transactions: 3,
            between: (6, 4),
        }
    }

    /// Cycles of a program that writes this number of words one by one.
    pub fn write_words(&self, words: u32) -> u32 {
        words * self.word_write
    }

    /// Cycles of a device's read of 4 KiB.
    pub fn read_page(&self) -> u32 {
        let data = 4096 / self.width;
        data + self.first_word + self.more_transactions * (self.between.0 + self.between.1)
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

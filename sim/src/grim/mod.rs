//! GRIM: a network interface with firmware, and a card with an FPGA as a further endpoint.
//!
//! Source: the GRIM thesis. [`Way`](path::Way) moves a message from host to host on a
//! [`Platform`](platform::Platform): [ways into the card](inject), [firmware], [DMA](dma).
//! [`reliable`] is the protocol between interfaces, [`police`] shows limits on messages under way,
//! [`queue`] compares queues, and [`multicast`] copies messages in interfaces.
pub mod dma;
pub mod firmware;
pub mod inject;
pub mod multicast;
pub mod path;
pub mod platform;
pub mod police;
pub mod queue;
pub mod reliable;

/// Bytes of a message's header (figure 4.2).
pub const HEADER: u32 = 32;

/// A miss of the interface's translation cache (table 5.3).
#[derive(Clone, Copy, Debug)]
pub struct TranslationMiss {
    /// The search that fails.
    pub search: f64,
    /// The request to the host, by DMA.
    pub request: f64,
    /// The host's interrupt.
    pub interrupt: f64,
    /// The host's translation of one page.
    pub host: f64,
}

impl TranslationMiss {
    /// With a LANai 4.
    pub const LANAI4: Self = Self { search: 10.0, request: 3.0, interrupt: 6.5, host: 2.0 };
    /// With a LANai 9.
    pub const LANAI9: Self = Self { search: 4.0, request: 1.5, interrupt: 6.0, host: 3.0 };

    /// All of it: one step behind the other.
    pub fn total(&self) -> f64 {
        self.search + self.request + self.interrupt + self.host
    }
}

/// The rate of a message that passes several stages, each of which stores it whole, from their
/// rates (section 5.5.1).
pub fn store_and_forward(rates: &[f64]) -> f64 {
    1.0 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

/// The RC-1000 card: an FPGA at 20 MHz, whose memory host and FPGA take in turns.
pub mod card {
    /// Clocks per microsecond.
    pub const CLOCK: f64 = 20.0;
    /// Clocks of a function fault (table 7.1): saving the circuit's state, and restoring it.
    pub const FUNCTION_SAVE: [u32; 4] = [6, 2, 1, 1];
    /// See [`FUNCTION_SAVE`].
    pub const FUNCTION_RESTORE: [u32; 3] = [8, 4, 9];
    /// Microseconds of the host in a function fault: acquire, process, reconfigure, clock, ids,
    /// reset, release.
    pub const FUNCTION_HOST: [f64; 7] = [13.0, 8.0, 95_114.0, 2_405.0, 2.0, 56_813.0, 7.0];
    /// Microseconds of loading the circuit's file, where it is not in memory.
    pub const FUNCTION_FILE: f64 = 10_205.0;
    /// Clocks of a page fault (table 7.2).
    pub const PAGE_SAVE: [u32; 4] = [1, 3, 1, 1];
    /// See [`PAGE_SAVE`].
    pub const PAGE_RESTORE: [u32; 2] = [8, 2];
    /// Microseconds of the host in a page fault: acquire, process, unload, load, notify, release.
    pub const PAGE_HOST: [f64; 6] = [13.0, 8.0, 43_494.0, 17_927.0, 1.0, 7.0];

    /// The whole of a function fault in milliseconds, with or without loading the file.
    pub fn function_fault(with_file: bool) -> f64 {
        let clocks = FUNCTION_SAVE.iter().chain(&FUNCTION_RESTORE).sum::<u32>();
        let file = if with_file { FUNCTION_FILE } else { 0.0 };
        (FUNCTION_HOST.iter().sum::<f64>() + file + f64::from(clocks) / CLOCK) / 1e3
    }

    /// The whole of a page fault in milliseconds.
    pub fn page_fault() -> f64 {
        let clocks = PAGE_SAVE.iter().chain(&PAGE_RESTORE).sum::<u32>();
        (PAGE_HOST.iter().sum::<f64>() + f64::from(clocks) / CLOCK) / 1e3
    }

    /// A stage of a streaming computation over a message (table 7.3).
    #[derive(Clone, Copy, Debug)]
    pub struct Stage {
        /// Words of the message.
        pub words: u32,
        /// Clocks from word to word of reading, computing and writing, which overlap.
        pub per_word: [u32; 3],
        /// Clocks of the computation's pipeline.
        pub depth: u32,
        /// Clocks of acquiring the memory, the header, the directory, the header out, the queues'
        /// pointers, and the release.
        pub around: [u32; 6],
    }

    impl Stage {
        /// A message of 4 KiB.
        pub const PAGE: Self =
            Self { words: 1024, per_word: [1, 1, 3], depth: 1, around: [8, 7, 5, 48, 3, 1] };

        /// Clocks from the acquisition to the release: words move at the pace of the slowest of
        /// the three, and the last one has to pass them all.
        pub fn clocks(&self) -> u32 {
            let pace = self.per_word.into_iter().max().unwrap_or(1);
            let first = self.per_word[0] + self.depth;
            self.around.iter().sum::<u32>() + first + (self.words - 1) * pace + self.per_word[2]
        }
    }
}

/// Bytes per second of a video stream.
pub fn video(width: u32, height: u32, bytes_per_pixel: u32, frames: u32) -> f64 {
    f64::from(width * height * bytes_per_pixel) * f64::from(frames)
}

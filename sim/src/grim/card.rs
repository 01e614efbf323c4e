//! The RC-1000 card: an FPGA at 20 MHz, whose memory host and FPGA take in turns.

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

    /// Clocks in which the message is fetched.
    pub fn fetch(&self) -> u32 {
        self.words * self.per_word[0]
    }

    /// Clocks in which the result is stored.
    pub fn store(&self) -> u32 {
        self.words * self.per_word[2]
    }

    /// Clocks from the acquisition to the release: words move at the pace of the slowest of
    /// the three, and the last one has to pass them all.
    pub fn clocks(&self) -> u32 {
        let pace = self.per_word.into_iter().max().unwrap_or(1);
        let first = self.per_word[0] + self.depth;
        self.around.iter().sum::<u32>() + first + (self.words - 1) * pace + self.per_word[2]
    }
}

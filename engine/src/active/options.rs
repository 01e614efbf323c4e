//! Limits of a messenger.
use ayre_proto::active::LONGEST;

/// Limits of a messenger.
#[derive(Clone, Debug)]
pub struct MessengerOptions {
    pub(super) overflow: usize,
    /// None: as many as suits the number of peers.
    pub(super) landing: Option<usize>,
    pub(super) longest: usize,
}

impl MessengerOptions {
    /// The defaults: see each.
    pub const fn new() -> Self {
        Self { overflow: 16 << 20, landing: None, longest: LONGEST }
    }

    /// Bytes of messages that handlers have sent and that found no room: 16 MiB. One peer takes no
    /// more than it leaves free for the others.
    // spec: AM-8
    pub const fn overflow(mut self, bytes: usize) -> Self {
        self.overflow = bytes;
        self
    }

    /// Bytes of memory for each peer that sends long messages, a power of two from 4 KiB to 16 MiB:
    /// from 1 to 4 MiB for the first 16 of them, as this machine's caches are, 128 KiB for each one
    /// more; less where there is little memory.
    // spec: AM-12
    pub const fn landing(mut self, bytes: usize) -> Self {
        self.landing = Some(bytes);
        self
    }

    /// Bytes of the longest payload that is taken: 64 MiB.
    // spec: AM-5
    pub const fn longest(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }
}

impl Default for MessengerOptions {
    fn default() -> Self {
        Self::new()
    }
}

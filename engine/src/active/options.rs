//! Limits of a messenger.
use crate::error::SetupError;
use ayre_proto::active::LONGEST;
use ayre_proto::active::long::is_landing;

/// The limits of options, for an error.
const LIMITS: &str = "the landing has a power of two of bytes, from 4 KiB to 16 MiB, and the \
                      longest payload at most 64 MiB";

/// Limits of a messenger.
#[derive(Clone, Debug)]
pub struct MessengerOptions {
    pub(super) overflow: usize,
    /// None: chosen by the number of peers.
    pub(super) landing: Option<usize>,
    pub(super) longest: usize,
}

impl MessengerOptions {
    /// Returns the default limits, which each method states.
    pub const fn new() -> Self {
        Self { overflow: 16 << 20, landing: None, longest: LONGEST }
    }

    /// Sets the bytes of messages that handlers have sent and that wait for room. The default is
    /// 16 MiB. One peer may use as much as is left free for the others.
    // spec: AM-8
    pub const fn overflow(mut self, bytes: usize) -> Self {
        self.overflow = bytes;
        self
    }

    /// Sets the bytes of memory for each peer that sends long messages: a power of two from 4 KiB
    /// to 16 MiB. The default is 1 to 4 MiB for the first 16 peers, by the size of this machine's
    /// caches, and 128 KiB for each further one. It is less if there is little memory.
    // spec: AM-12
    pub const fn landing(mut self, bytes: usize) -> Self {
        self.landing = Some(bytes);
        self
    }

    /// Sets the bytes of the longest payload that this messenger accepts. The default is 64 MiB.
    // spec: AM-5
    pub const fn longest(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }

    /// Checks the limits, for a program that gives its port away only with sound ones.
    ///
    /// # Errors
    /// [`SetupError::Invalid`] for limits out of their ranges.
    pub fn check(&self) -> Result<(), SetupError> {
        let is_sound = self.landing.is_none_or(|bytes| is_landing(bytes as u64));
        let is_sound = is_sound && self.longest <= LONGEST;
        is_sound.then_some(()).ok_or_else(|| SetupError::invalid(LIMITS))
    }
}

impl Default for MessengerOptions {
    fn default() -> Self {
        Self::new()
    }
}

//! Bytes as numbers; zeros behind the end.

/// The rest of a script.
pub(super) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// As many bytes, or all that are left.
    pub(super) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(super) fn half(&mut self) -> u16 {
        u16::from(self.byte()) | u16::from(self.byte()) << 8
    }

    pub(super) fn word(&mut self) -> u64 {
        let taken = self.bytes(8);
        taken.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

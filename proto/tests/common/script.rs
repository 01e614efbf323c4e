//! Any bytes as choices: what drives the machines that liars talk to.

/// The rest of the bytes; past their end everything is zero.
pub(crate) struct Script<'a>(pub(crate) &'a [u8]);

impl Script<'_> {
    pub(crate) const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    /// The next bytes as they stand, up to `most`.
    pub(crate) fn bytes(&mut self, most: u8) -> Vec<u8> {
        let len = usize::from(self.below(most)).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes.to_vec()
    }

    /// A word, mostly one that is near this one.
    pub(crate) fn word(&mut self, near: u64) -> u64 {
        match self.byte() {
            255 => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            254 => 1 << self.below(64),
            by => (near + u64::from(by % 5)).saturating_sub(2),
        }
    }
}

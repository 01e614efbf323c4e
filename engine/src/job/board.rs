//! A launcher's board: each rank puts a text on it, and reads those of all ranks.
//!
//! What PMI and PMIx call a key-value space. Others may read it, too: `spec/88-protection.md`.
use crate::error::SetupError;
use std::fmt::Debug;

/// Longest text: what all launchers take, and Slurm's the least, with what the request adds to it.
pub(super) const TEXT_CHARS_MAX: usize = 900;

/// The ranks of a job, as a launcher knows them.
pub(super) trait Board: Debug {
    fn rank(&self) -> usize;

    fn size(&self) -> usize;

    /// Puts up a text of letters, digits and the signs `.,:;/-_[]%`, of at most [`TEXT_CHARS_MAX`].
    /// A rank uses a name once.
    fn put(&mut self, name: &str, text: &str) -> Result<(), SetupError>;

    /// Waits until all ranks have put up what they do. Collective.
    fn fence(&mut self) -> Result<(), SetupError>;

    /// What a rank has put up under a name before a fence.
    fn get(&mut self, rank: usize, name: &str) -> Result<String, SetupError>;

    /// Puts up a text, and returns those of all ranks. Collective.
    fn exchange(&mut self, name: &str, text: &str) -> Result<Vec<String>, SetupError> {
        debug_assert!(text.len() <= TEXT_CHARS_MAX, "launchers take no longer text");
        self.put(name, text)?;
        self.fence()?;
        (0..self.size()).map(|rank| self.get(rank, name)).collect()
    }

    /// Lets the launcher know that nothing more is asked. It takes a rank that dies later for one
    /// that has ended, by its exit status.
    fn finish(&mut self);
}

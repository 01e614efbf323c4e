//! A launcher's board: each rank puts texts on it, and reads those of all ranks.
//!
//! PMI and PMIx call it a key-value space. Other processes may be able to read it: see
//! `spec/88-protection.md`.
use crate::error::SetupError;
use std::fmt::Debug;

/// The length of the longest text: Slurm accepts the least of all launchers, less the overhead of
/// the request.
pub(super) const TEXT_CHARS_MAX: usize = 900;

/// The ranks of a job, as their launcher knows them.
pub(super) trait Board: Debug {
    fn rank(&self) -> usize;

    fn size(&self) -> usize;

    /// Publishes a text of letters, digits and the characters `.,:;/-_[]%`, of at most
    /// [`TEXT_CHARS_MAX`] characters. A rank uses each name once.
    fn put(&mut self, name: &str, text: &str) -> Result<(), SetupError>;

    /// Blocks until all ranks have published their texts. Collective.
    fn fence(&mut self) -> Result<(), SetupError>;

    /// The text that a rank has published under a name before a fence.
    fn get(&mut self, rank: usize, name: &str) -> Result<String, SetupError>;

    /// Publishes a text, and returns the texts of all ranks. Collective.
    fn exchange(&mut self, name: &str, text: &str) -> Result<Vec<String>, SetupError> {
        debug_assert!(text.len() <= TEXT_CHARS_MAX, "launchers take no longer text");
        self.put(name, text)?;
        self.fence()?;
        (0..self.size()).map(|rank| self.get(rank, name)).collect()
    }

    /// Tells the launcher that no more calls follow. If the rank dies later, the launcher judges it
    /// by its exit status.
    fn finish(&mut self);
}

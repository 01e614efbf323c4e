//! A launcher's board: each rank puts a text on it, and reads those of all ranks.
//!
//! What PMI and PMIx call a key-value space. Others may read it, too: `spec/88-protection.md`.
use super::folder::check_rank;
use super::pmi::{self, Pmi};
use super::pmix::{self, Pmix};
use super::wrong;
use crate::error::SetupError;
use std::fmt::Debug;
use std::time::Duration;

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
        self.put(name, text)?;
        self.fence()?;
        (0..self.size()).map(|rank| self.get(rank, name)).collect()
    }

    /// Lets the launcher know that nothing more is asked. It takes a rank that dies later for one
    /// that has ended, by its exit status.
    fn finish(&mut self);
}

/// The board of the launcher that has started this process, if any has.
///
/// PMI comes first: its socket is a descriptor of this very process, so whoever is behind it has
/// started it, while the variables of PMIx are inherited by all that is started below (MPICH's
/// launcher starts its helpers by Slurm's, which speaks PMIx).
// spec: LIFE-23
pub(super) fn find(patience: Duration) -> Result<Option<Box<dyn Board>>, SetupError> {
    if let Some(pmi) = Pmi::find(patience)? {
        check_rank(pmi.rank(), pmi.size(), "PMI_RANK, PMI_SIZE")?;
        return Ok(Some(Box::new(pmi)));
    }
    if let Some(pmix) = Pmix::find(patience)? {
        check_rank(pmix.rank(), pmix.size(), "PMIX_RANK, PMIx's job size")?;
        return Ok(Some(Box::new(pmix)));
    }
    Ok(None)
}

/// Whether there is a launcher with a board.
pub(super) fn is_named() -> bool {
    pmi::socket().is_some() || pmix::is_named()
}

/// What to say where there is none.
// spec: LIFE-2
pub(super) fn none() -> SetupError {
    let hint = match std::env::var_os("SLURM_PROCID") {
        Some(_) => "start the program with `srun --mpi=pmi2`, `srun --mpi=pmix` or `ayre run`",
        None => "start the program with `ayre run`, or a launcher that speaks PMIx or PMI",
    };
    wrong(format!("AYRE_JOB is not set; {hint}"))
}

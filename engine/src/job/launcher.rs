//! The launcher that has started this process, among those with a board.
use super::board::Board;
use super::folder::check_rank;
use super::pmi::{self, Pmi};
use super::pmix::{self, Pmix};
use super::wrong;
use crate::error::SetupError;
use std::time::Duration;

/// The board of the launcher that has started this process, if there is one.
///
/// PMI comes first: its socket is a descriptor of this process, so its launcher has started the
/// process directly. The variables of PMIx are inherited by all later processes: MPICH's launcher
/// starts its helpers by Slurm's, which speaks PMIx.
// spec: LIFE-23
pub(super) fn find(timeout: Duration) -> Result<Option<Box<dyn Board>>, SetupError> {
    if let Some(pmi) = Pmi::find(timeout)? {
        check_rank(pmi.rank(), pmi.size(), "PMI_RANK, PMI_SIZE")?;
        return Ok(Some(Box::new(pmi)));
    }
    if let Some(pmix) = Pmix::find(timeout)? {
        check_rank(pmix.rank(), pmix.size(), "PMIX_RANK, PMIx's job size")?;
        return Ok(Some(Box::new(pmix)));
    }
    Ok(None)
}

/// Whether there is a launcher with a board.
pub(super) fn is_named() -> bool {
    pmi::socket().is_some() || pmix::is_named()
}

/// An error: there is no launcher.
// spec: LIFE-2
pub(super) fn none() -> SetupError {
    let hint = match std::env::var_os("SLURM_PROCID") {
        Some(_) => "start the program with `srun --mpi=pmi2`, `srun --mpi=pmix` or `ayre run`",
        None => "start the program with `ayre run`, or a launcher that speaks PMIx or PMI",
    };
    wrong(format!("AYRE_JOB is not set; {hint}"))
}

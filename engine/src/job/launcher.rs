//! Which launcher has started this process, of those that have a board.
use super::board::Board;
use super::folder::check_rank;
use super::pmi::{self, Pmi};
use super::pmix::{self, Pmix};
use super::wrong;
use crate::error::SetupError;
use std::time::Duration;

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

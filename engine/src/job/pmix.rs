//! PMIx: a library that connects with the launcher's server on this host.
//!
//! Open MPI's `mpirun`, PRRTE, and Slurm's `srun --mpi=pmix` speak it. The source is the PMIx
//! Standard, version 4 (`PMIx_Put`, `PMIx_Fence`, `PMIx_Get`).
use super::board::Board;
use super::wrong;
use crate::error::SetupError;
use crate::sys::pmix::{Client, Failure};
use std::ffi::CString;
use std::time::Duration;

/// A launcher that speaks PMIx.
#[derive(Debug)]
pub(super) struct Pmix {
    client: Client,
    size: usize,
    /// The longest time for calls that wait for other ranks.
    timeout: Duration,
}

impl Pmix {
    /// The launcher that the environment names; None if it names none.
    pub(super) fn find(timeout: Duration) -> Result<Option<Self>, SetupError> {
        if !is_named() {
            return Ok(None);
        }
        let client = Client::start().map_err(failed)?;
        let size = client.job_size(timeout).map_err(failed)? as usize;
        Ok(Some(Self { client, size, timeout }))
    }
}

impl Board for Pmix {
    fn rank(&self) -> usize {
        self.client.rank() as usize
    }

    fn size(&self) -> usize {
        self.size
    }

    fn put(&mut self, name: &str, text: &str) -> Result<(), SetupError> {
        self.client.put(&nul_terminated(name), text).map_err(failed)
    }

    fn fence(&mut self) -> Result<(), SetupError> {
        self.client.fence(self.timeout).map_err(failed)
    }

    fn get(&mut self, rank: usize, name: &str) -> Result<String, SetupError> {
        self.client.get(rank as u32, &nul_terminated(name), self.timeout).map_err(failed)
    }

    fn finish(&mut self) {
        self.client.finish();
    }
}

pub(super) fn is_named() -> bool {
    ["PMIX_NAMESPACE", "PMIX_RANK"].iter().all(|name| std::env::var_os(name).is_some())
}

fn nul_terminated(name: &str) -> CString {
    CString::new(name).expect("no zero is in a name")
}

fn failed(failure: Failure) -> SetupError {
    match failure {
        Failure::TimedOut => SetupError::timed_out("the launcher or a rank"),
        Failure::Other(what) => wrong(format!("the launcher speaks PMIx: {what}")),
    }
}

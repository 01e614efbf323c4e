//! This process's rank in its job; errors and log lines begin with it.
use std::sync::OnceLock;

static RANK: OnceLock<usize> = OnceLock::new();

/// Sets the rank, when the process has joined a job.
pub(crate) fn set_rank(rank: usize) {
    let _ = RANK.set(rank);
}

/// The rank of this process as a prefix, if it has joined a job: `rank 3: `.
pub(crate) fn whose() -> String {
    RANK.get().map_or_else(String::new, |rank| format!("rank {rank}: "))
}

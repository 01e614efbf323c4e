//! This process's rank in its job, which errors and the log begin with.
use std::sync::OnceLock;

static RANK: OnceLock<usize> = OnceLock::new();

/// The process has joined a job.
pub(crate) fn set_rank(rank: usize) {
    let _ = RANK.set(rank);
}

/// The rank of this process, if it has joined a job: `rank 3: `.
pub(crate) fn whose() -> String {
    RANK.get().map_or_else(String::new, |rank| format!("rank {rank}: "))
}

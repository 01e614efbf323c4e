//! The identity of this host, and the part of it that this process may use.
use crate::random;
use rustix::thread::{CpuSet, sched_getaffinity};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;

/// The prefix of an identity that does not distinguish hosts.
pub(crate) const UNKNOWN_HOST: &str = "unknown-";
const UNKNOWN_BYTES: usize = 16;
/// The length of the longest list of processors.
const PROCESSORS_CHARS_MAX: usize = 300;
/// The length of the longest host name on Linux.
const NAME_CHARS_MAX: usize = 64;

/// The identity of this host. Two processes have the same one only if they are on one host and can
/// call each other there. It has the kernel's boot id and the number of the network namespace,
/// which holds names without files.
///
/// Two processes of one host may have different ones, where the system hides these: then the
/// identity is the process's own, and a call shows whether the two can connect.
// spec: LIFE-24, ENV-10
pub(crate) fn identity() -> String {
    static UNKNOWN: LazyLock<String> = LazyLock::new(|| {
        format!("{UNKNOWN_HOST}{}", random::hex(&random::bytes::<UNKNOWN_BYTES>()))
    });
    told_identity().unwrap_or_else(|| UNKNOWN.clone())
}

fn told_identity() -> Option<String> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(format!("{}.{}", boot_id.trim(), network_namespace()?))
}

/// The number of the network namespace; None where the system does not report it.
pub(crate) fn network_namespace() -> Option<u64> {
    // This thread's, because this thread makes the sockets.
    Some(std::fs::metadata("/proc/thread-self/ns/net").ok()?.ino())
}

/// The identity as a number, from its digest.
pub(crate) fn number() -> u64 {
    let digest = Sha256::digest(identity());
    let first = digest.first_chunk().expect("a digest of 32 bytes");
    u64::from_le_bytes(*first)
}

/// The host's name; empty where it does not fit a card.
pub(crate) fn name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_str().unwrap_or_default();
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if fits && name.len() <= NAME_CHARS_MAX { name.to_owned() } else { String::new() }
}

/// The number of ranks that the launcher has started on this host, by its variables; 1 where it
/// gives none.
pub(crate) fn ranks_here() -> usize {
    let variables = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"];
    let said = variables.iter().find_map(|variable| std::env::var(variable).ok());
    // Slurm gives the numbers for all nodes, as in "4(x2),3".
    let first = |said: String| said.split(['(', ',']).next().and_then(|count| count.parse().ok());
    said.and_then(first).unwrap_or(1)
}

/// The number of processors of this host, also those on which this process may not run.
pub(crate) fn online() -> usize {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    count_processors([listed.trim()].into_iter())
        .or_else(|| std::thread::available_parallelism().map(usize::from).ok())
        .unwrap_or(1)
}

/// The processors on which this process may run, as a list such as `0-3,8`; empty where that is too
/// long.
pub(crate) fn processors() -> String {
    let Ok(set) = sched_getaffinity(None) else { return String::new() };
    let all: Vec<_> = (0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect();
    let runs = all.chunk_by(|one, next| one + 1 == *next);
    let runs = runs.map(|run| match run {
        [only] => only.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    let list = runs.collect::<Vec<_>>().join(",");
    if list.len() <= PROCESSORS_CHARS_MAX { list } else { String::new() }
}

/// The number of processors in all lists together; None if one is empty.
pub(crate) fn count_processors<'a>(lists: impl Iterator<Item = &'a str>) -> Option<usize> {
    let mut all = BTreeSet::new();
    for run in lists.flat_map(|list| list.split(',')) {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse().ok()?);
        if last >= CpuSet::MAX_CPU {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all.len())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_itself() {
        assert_eq!(identity(), identity());
        let parts: Vec<_> = identity().split('.').map(str::len).collect();
        assert!(parts.len() == 2 && parts[0] == 36 && parts[1] > 0, "{parts:?}");
        let own = count_processors([processors().as_str()].into_iter());
        assert!(own.is_some_and(|count| count > 0));
    }

    #[test]
    fn processors_are_counted_once() {
        let count = |lists: &[&str]| count_processors(lists.iter().copied());
        assert_eq!(count(&["0-3,8", "2-5", "8"]), Some(7));
        assert_eq!(count(&["0", "1"]), Some(2));
        for wrong in ["", "a", "0-", "1,,2", "0-1024", "-1"] {
            assert_eq!(count(&["0", wrong]), None, "{wrong:?}");
        }
        assert_eq!(count(&["3-1"]), Some(0));
    }
}

//! The memory that this process may use: the machine's, within the limits of control groups.
use super::cgroup::{Groups, number, said};
use crate::error::SetupError;
use std::fs;
use std::sync::OnceLock;

/// Amounts of memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Memory that this process and those that share its limits may use together.
    pub(crate) limit: u64,
    /// The part of it that is free, or could be freed at once.
    pub(crate) left: u64,
}

/// The memory that this process may use now; infinite where the system does not report it.
// spec: LIM-5
pub(crate) fn usable() -> Memory {
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    least(&machine, &Groups::of("memory"))
}

/// The memory in bytes that this process may use, at the time of the first call. Budgets are shares
/// of it.
pub fn limit() -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    *LIMIT.get_or_init(|| usable().limit)
}

/// Checks that this amount of memory can be had. If a process accesses more than there is, the
/// system kills it, or another one.
///
/// # Errors
/// [`SetupError::Memory`] with both amounts.
// spec: LIM-5
pub(crate) fn ask(wanted: u64) -> Result<(), SetupError> {
    enough(wanted, usable().left)
}

fn enough(wanted: u64, left: u64) -> Result<(), SetupError> {
    if wanted <= left { Ok(()) } else { Err(SetupError::Memory { wanted, left }) }
}

fn least(machine: &str, groups: &Groups) -> Memory {
    let unified = groups.unified.iter().filter_map(|group| {
        let (limit, used) = (number(group, "memory.max")?, number(group, "memory.current")?);
        let file = reclaimable(&said(group, "memory.stat")?, ["active_file", "inactive_file"]);
        let swap = number(group, "memory.swap.max")
            .map(|max| max.saturating_sub(number(group, "memory.swap.current").unwrap_or(0)));
        Some((limit, used, file, swap))
    });
    let first = groups.of_controller.iter().filter_map(|group| {
        let limit = number(group, "memory.limit_in_bytes")?;
        let used = number(group, "memory.usage_in_bytes")?;
        let names = ["total_active_file", "total_inactive_file"];
        let file = reclaimable(&said(group, "memory.stat")?, names);
        // The limit for memory and swap together, if swap is limited.
        let both = number(group, "memory.memsw.limit_in_bytes");
        let swap = both.map(|both| {
            let used_both = number(group, "memory.memsw.usage_in_bytes").unwrap_or(used);
            both.saturating_sub(limit).saturating_sub(used_both.saturating_sub(used))
        });
        Some((limit, used, file, swap))
    });
    let free_swap = kilobytes(machine, "SwapFree:").unwrap_or(0);
    let available = kilobytes(machine, "MemAvailable:").map(|it| it.saturating_add(free_swap));
    let whole = Memory {
        limit: kilobytes(machine, "MemTotal:").unwrap_or(u64::MAX),
        left: available.unwrap_or(u64::MAX),
    };
    unified.chain(first).fold(whole, |least, (limit, used, file, swap)| {
        let swap = swap.unwrap_or(free_swap).min(free_swap);
        let left = limit.saturating_sub(used.saturating_sub(file)).saturating_add(swap);
        Memory { limit: least.limit.min(limit), left: least.left.min(left) }
    })
}

/// Bytes of the page cache that can be freed.
fn reclaimable(stat: &str, names: [&str; 2]) -> u64 {
    let lines = stat.lines().filter_map(|line| line.split_once(' '));
    let wanted = lines.filter(|(name, _)| names.contains(name));
    wanted.filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok()).sum()
}

fn kilobytes(machine: &str, name: &str) -> Option<u64> {
    let line = machine.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::cgroup::tests::Mounted;
    use super::*;

    const MACHINE: &str = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    700 kB\n\
                           SwapFree:          10 kB\n";
    const KB: u64 = 1024;

    // spec: LIM-5
    #[test]
    fn usable_memory_is_the_least_of_machine_and_cgroups() {
        let files = [
            ("unified/job/memory.max", "512000\n"),
            ("unified/job/memory.current", "400000\n"),
            ("unified/job/memory.stat", "anon 1\nactive_file 50000\ninactive_file 50000\n"),
            ("unified/job/step/memory.max", "max\n"),
            ("unified/job/step/memory.current", "400000\n"),
            ("unified/job/step/memory.stat", ""),
        ];
        let mounted = Mounted::new("memory-2", &files);
        let of = |listed: &str| least(MACHINE, &mounted.groups(listed, "memory"));
        let left = 512_000 - 300_000 + 10 * KB;
        assert_eq!(of("0::/job/step\n"), Memory { limit: 512_000, left });
        assert_eq!(of("0::/job\n"), Memory { limit: 512_000, left });
        let machine = Memory { limit: 1000 * KB, left: 710 * KB };
        assert_eq!(of("0::/other\n"), machine);
        assert_eq!(of(""), machine);
        assert_eq!(least("", &mounted.groups("", "memory")).limit, u64::MAX, "nothing is said");
    }

    // spec: LIM-5
    #[test]
    fn the_first_version_of_control_groups_says_the_same() {
        let files = [
            ("memory/job/memory.limit_in_bytes", "512000\n"),
            ("memory/job/memory.usage_in_bytes", "400000\n"),
            ("memory/job/memory.stat", "total_active_file 50000\ntotal_inactive_file 50000\n"),
            ("memory/job/memory.memsw.limit_in_bytes", "512000\n"),
            ("memory/job/memory.memsw.usage_in_bytes", "400000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "900000\n"),
            ("memory/memory.stat", ""),
        ];
        let mounted = Mounted::new("memory-1", &files);
        let found = least(MACHINE, &mounted.groups("4:memory:/job\n", "memory"));
        assert_eq!(found, Memory { limit: 512_000, left: 212_000 });
    }

    // spec: LIM-5
    #[test]
    fn an_allocation_beyond_memory_is_refused_with_both_sizes() {
        assert!(enough(5, 5).is_ok());
        let refused = enough(6 << 20, 5 << 20).unwrap_err().to_string();
        assert!(
            refused.starts_with("6291456 bytes of memory are wanted, and 5242880"),
            "{refused}"
        );
    }

    #[test]
    fn this_process_may_use_some() {
        let Memory { limit, left } = usable();
        assert!(limit > 0 && left > 0);
    }
}

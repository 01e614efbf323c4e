//! The parts of the machine, from the kernel's tables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::Serialize;

/// A named property of the machine.
#[derive(Serialize)]
pub(super) struct Fact {
    pub(super) name: String,
    pub(super) value: String,
}

/// All facts, in the order in which they are shown.
pub(super) fn facts() -> Vec<Fact> {
    let mut facts = vec![kernel()];
    facts.extend(processor());
    facts.push(cores());
    facts.extend(virtual_machine());
    facts.extend(caches());
    facts.push(numa());
    facts.extend(huge_pages());
    facts.push(descriptors());
    facts.extend(interfaces());
    facts.push(found_at());
    facts
}

/// The names in a folder of the kernel's tables, sorted; none when there is no such folder.
pub(super) fn names_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The content of a one-line file without the line's end.
pub(super) fn line_of(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

fn fact(name: impl Into<String>, value: impl Into<String>) -> Fact {
    Fact { name: name.into(), value: value.into() }
}

fn kernel() -> Fact {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let value =
        format!("{} {} {}", text(names.sysname()), text(names.release()), text(names.machine()));
    fact("kernel", value)
}

/// The name that the processor gives itself.
fn processor() -> Option<Fact> {
    let told = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = told.lines().find(|line| line.starts_with("model name"))?;
    Some(fact("processor", line.split_once(':')?.1.trim()))
}

fn cores() -> Fact {
    let online = line_of("/sys/devices/system/cpu/online").unwrap_or_else(|| "unknown".to_owned());
    let usable = match sched_getaffinity(None) {
        Ok(set) => list(&(0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect::<Vec<_>>()),
        Err(error) => format!("unknown ({error})"),
    };
    fact("cores", format!("{usable} usable, {online} online"))
}

/// Whether a hypervisor is at work, where the processor tells: system calls and wake-ups then cost
/// more.
fn virtual_machine() -> Option<Fact> {
    let processors = fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags = processors.lines().find(|line| line.starts_with("flags"))?;
    let is_virtual = flags.split(' ').any(|flag| flag == "hypervisor");
    let value =
        if is_virtual { "yes: system calls, page faults and wake-ups are dear" } else { "no" };
    Some(fact("virtual machine", value))
}

/// The cores that share each cache: one fact for each kind of cache, its groups of cores separated
/// by bars.
fn caches() -> Vec<Fact> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for core in core_folders() {
        for index in names_in(&format!("{core}/cache")) {
            let read = |file: &str| line_of(format!("{core}/cache/{index}/{file}"));
            let (Some(level), Some(kind)) = (read("level"), read("type")) else { continue };
            let Some(sharers) = read("shared_cpu_list") else { continue };
            if kind == "Instruction" {
                continue;
            }
            let size = read("size").unwrap_or_else(|| "size unknown".to_owned());
            let sharing = groups.entry(format!("L{level} cache, {size}")).or_default();
            if !sharing.contains(&sharers) {
                sharing.push(sharers);
            }
        }
    }
    let shared = |groups: Vec<String>| format!("cores {}", groups.join(" | "));
    groups.into_iter().map(|(name, groups)| fact(name, shared(groups))).collect()
}

/// The folders of the cores in the order of their numbers.
fn core_folders() -> Vec<String> {
    const CORES: &str = "/sys/devices/system/cpu";
    let names = names_in(CORES);
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.iter().map(|number| format!("{CORES}/cpu{number}")).collect()
}

fn numa() -> Fact {
    const NODES: &str = "/sys/devices/system/node";
    let nodes: Vec<_> = names_in(NODES)
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok())
        .filter_map(|node| {
            let cores = line_of(format!("{NODES}/node{node}/cpulist"))?;
            Some(format!("node {node}: cores {cores}"))
        })
        .collect();
    fact("NUMA", if nodes.is_empty() { "one node".to_owned() } else { nodes.join(" | ") })
}

fn huge_pages() -> Vec<Fact> {
    const POOLS: &str = "/sys/kernel/mm/hugepages";
    const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage";
    let mut facts = Vec::new();
    for pool in names_in(POOLS) {
        let read = |file: &str| line_of(format!("{POOLS}/{pool}/{file}"));
        if let (Some(size), Some(free), Some(total)) =
            (pool.strip_prefix("hugepages-"), read("free_hugepages"), read("nr_hugepages"))
        {
            facts.push(fact(format!("huge pages, {size}"), format!("{free} free of {total}")));
        }
    }
    for (name, file) in
        [("huge pages, automatic", "enabled"), ("the same in memfds", "shmem_enabled")]
    {
        if let Some(choice) = line_of(format!("{TRANSPARENT}/{file}")).as_deref().and_then(chosen) {
            facts.push(fact(name, choice));
        }
    }
    facts
}

/// The word in brackets of a line such as `always [madvise] never`.
fn chosen(line: &str) -> Option<&str> {
    line.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

fn descriptors() -> Fact {
    let limit = getrlimit(Resource::Nofile);
    let show = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |n| n.to_string());
    let value = format!("{} (may be raised to {})", show(limit.current), show(limit.maximum));
    fact("open files at most", value)
}

fn interfaces() -> Vec<Fact> {
    const INTERFACES: &str = "/sys/class/net";
    let describe = |name: String| {
        let read = |file: &str| line_of(format!("{INTERFACES}/{name}/{file}"));
        let state = read("operstate").unwrap_or_else(|| "unknown".to_owned());
        let mtu = read("mtu").map_or_else(String::new, |mtu| format!(", MTU {mtu}"));
        // Virtual interfaces report no speed, or a negative one.
        let speed = read("speed").and_then(|speed| speed.parse::<u32>().ok());
        let speed = speed.map_or_else(String::new, |speed| format!(", {speed} Mbit/s"));
        fact(format!("interface {name}"), format!("{state}{mtu}{speed}"))
    };
    let mut names = names_in(INTERFACES);
    names.retain(|name| Path::new(INTERFACES).join(name).is_dir());
    names.into_iter().map(describe).collect()
}

/// Where other hosts find ports of this one.
fn found_at() -> Fact {
    let (told, more) = ayre::network::usable_addresses();
    let told: Vec<_> = told.iter().map(|(interface, ip)| format!("{interface} {ip}")).collect();
    let told = if told.is_empty() { "nothing".to_owned() } else { told.join(", ") };
    let more = match more {
        0 => String::new(),
        more => format!(", and not at {more} more: AYRE_NET chooses others"),
    };
    fact("found by other hosts at", told + &more)
}

/// Writes increasing numbers as the kernel does: `0-3,8`.
fn list(numbers: &[usize]) -> String {
    numbers
        .chunk_by(|before, after| before + 1 == *after)
        .map(|run| match run {
            [only] => only.to_string(),
            run => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_as_the_kernel_does() {
        assert_eq!(list(&[]), "");
        assert_eq!(list(&[3]), "3");
        assert_eq!(list(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
    }

    #[test]
    fn the_chosen_word_is_found() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always"), None);
    }
}

//! The system's reports on processes: descriptors, mappings, memory.
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A process that may be killed without mistaking another one for it.
#[derive(Debug)]
pub struct Watched {
    pid: Pid,
    handle: OwnedFd,
}

impl Watched {
    /// Of a child that was not waited for yet.
    pub fn new(pid: Pid) -> Self {
        let handle = pidfd_open(pid, PidfdFlags::empty()).expect("a handle of a child");
        Self { pid, handle }
    }

    /// Kills it, if it still runs, and says what it was doing.
    pub fn kill_hung(&self) {
        let pid = self.pid.as_raw_nonzero();
        let about = |what: &str| fs::read_to_string(format!("/proc/{pid}/{what}"));
        let (state, place) = (about("stat"), about("wchan"));
        if pidfd_send_signal(&self.handle, Signal::KILL).is_ok() {
            eprintln!("watchdog: killed {pid}: {state:?} in {place:?}");
        }
    }
}

/// The activity of the threads of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Whether all of them sleep.
    pub asleep: bool,
    /// How often they have been taken from a processor so far.
    pub turns: u64,
}

/// Looks at a process of this user.
pub fn activity(process: u32) -> Activity {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the process is there");
    let mut activity = Activity { asleep: true, turns: 0 };
    for task in tasks.flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        for (name, value) in status.lines().filter_map(|line| line.split_once(":\t")) {
            match name {
                "State" => activity.asleep &= value.starts_with('S'),
                "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" => {
                    activity.turns += value.parse::<u64>().expect("a number");
                }
                _ => {}
            }
        }
    }
    activity
}

/// A part of a process's address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// First address.
    pub start: usize,
    /// Bytes.
    pub len: usize,
    /// As in `rw-s`.
    pub access: String,
    /// The number of the file.
    pub inode: u64,
    /// The mapped file; empty for memory without a name.
    pub name: String,
}

/// The memory files of Ayre that this process has mapped.
pub fn memory_files() -> Vec<Mapped> {
    mappings().into_iter().filter(|mapped| mapped.name.starts_with("/memfd:ayre")).collect()
}

/// All that this process has mapped.
pub fn mappings() -> Vec<Mapped> {
    let maps = fs::read_to_string("/proc/self/maps").expect("own mappings");
    maps.lines().map(|line| parse_mapping(line).expect("a line of maps")).collect()
}

/// Bytes of memory files that somebody has touched, each file counted once however often it is
/// mapped here.
pub fn touched(files: &[Mapped]) -> usize {
    let files: BTreeMap<u64, &Mapped> = files.iter().map(|file| (file.inode, file)).collect();
    let page = rustix::param::page_size();
    let pages = files.values().map(|file| {
        let mut present = vec![0_u8; file.len.div_ceil(page)];
        // SAFETY: asks which pages of a mapping are there; there is room for a byte for each.
        let said = unsafe {
            libc::mincore(
                std::ptr::without_provenance_mut(file.start),
                file.len,
                present.as_mut_ptr(),
            )
        };
        assert_eq!(said, 0, "{file:?}: {}", std::io::Error::last_os_error());
        present.iter().filter(|page| **page & 1 == 1).count()
    });
    page * pages.sum::<usize>()
}

fn parse_mapping(line: &str) -> Option<Mapped> {
    let mut words = line.split_ascii_whitespace();
    let (range, access) = (words.next()?, words.next()?);
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let len = usize::from_str_radix(end, 16).ok()? - start;
    let inode = words.nth(2)?.parse().ok()?;
    let name = words.next().unwrap_or_default().to_owned();
    Some(Mapped { start, len, access: access.to_owned(), inode, name })
}

/// Open descriptors of this process and what they are.
pub fn descriptors() -> BTreeMap<String, PathBuf> {
    descriptors_of("self")
}

/// Open descriptors of any process of this user.
pub fn descriptors_of(process: &str) -> BTreeMap<String, PathBuf> {
    let folder = format!("/proc/{process}/fd");
    let names = fs::read_dir(&folder).expect("descriptors").flatten();
    let targets = names.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        // The folder itself is open while we read it.
        let own = target.to_string_lossy().ends_with("/fd");
        (!own).then(|| (entry.file_name().to_string_lossy().into_owned(), target))
    });
    targets.collect()
}

/// Ayre's resources in this process: the numbers of its descriptors, mappings and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// All open descriptors.
    pub descriptors: usize,
    /// Mapped memory files of Ayre.
    pub memory_files: usize,
    /// All threads.
    pub threads: usize,
}

/// Counts what this process holds.
pub fn held() -> Held {
    Held {
        descriptors: descriptors().len(),
        memory_files: memory_files().len(),
        threads: fs::read_dir("/proc/self/task").expect("own threads").count(),
    }
}

/// How often this thread has slept.
pub fn sleeps() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").expect("this thread's");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a count")
}

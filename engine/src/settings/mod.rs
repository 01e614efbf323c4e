//! The environment variables, all in one table: names, values, defaults and meanings.
//!
//! All other code reads these variables by functions of this module. `ayre info --env` prints the
//! table, and a test compares it with `docs/settings.md`.
pub(crate) mod choice;
pub(crate) mod plan;
#[cfg(all(test, not(loom)))]
mod tests;

use self::choice::{Ethernet, Mode};
use self::plan::FaultPlan;
use crate::error::SetupError;
use crate::port_range::PortRange;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// An environment variable for users. It has the same meaning under every launcher.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The values that it accepts, in words.
    pub values: &'static str,
    /// The behaviour where it is not set.
    pub default: &'static str,
    /// Its purpose.
    pub meaning: &'static str,
    check: fn(&str) -> Result<(), String>,
}

/// The prefix of all variables of Ayre.
const PREFIX: &str = "AYRE_";

const MODE: &str = "AYRE_MODE";
pub(crate) const NET: &str = "AYRE_NET";
pub(crate) const KEY: &str = "AYRE_KEY";
pub(crate) const PORTS: &str = "AYRE_PORTS";
pub(crate) const PROTECTION: &str = "AYRE_PROTECTION";
pub(crate) const ETHERNET: &str = "AYRE_ETHERNET";
pub(crate) const FAULTS: &str = "AYRE_FAULTS";
const TUNING: &str = "AYRE_TUNING";
const LOG: &str = "AYRE_LOG";
pub(crate) const CAPTURE: &str = "AYRE_CAPTURE";
/// In the name of a capture: stands for the rank.
const WHOSE: &str = "{rank}";
const GROUP: &str = "AYRE_GROUP";
pub(crate) const MEMORY: &str = "AYRE_MEMORY";
const DESCRIPTORS: &str = "AYRE_DESCRIPTORS";
pub(crate) const SILENCE: &str = "AYRE_SILENCE";
pub(crate) const DEAD_AFTER: &str = "AYRE_DEAD_AFTER";

/// All variables for users.
// spec: LIFE-30
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: MODE,
        values: "`direct`, `mediated`",
        default: "`direct`",
        meaning: "How ranks of one host reach each other's memory. `direct`: they write to it \
                  themselves. `mediated`: the owner's engine does, which needs no trust. Stronger: \
                  `ayre run --mode`",
        check: |text| word(text, MODES).map(drop),
    },
    Setting {
        name: NET,
        values: "interfaces, networks or addresses of this host, up to four, with commas between: \
                 `eth1`, `10.1.0.0/16`, `10.1.0.7`; of endpoints also `none`",
        default: "all addresses that others may reach; each link uses one that answers",
        meaning: "Where other hosts reach the ranks, and ports whose programs name no addresses. \
                  Each entry is a path, and all paths are used. Stronger: `ayre run --net`, \
                  `FI_AYRE_NET`",
        check: |text| net_words(text).map(drop),
    },
    Setting {
        name: KEY,
        values: "a file with 64 hexadecimal digits, of mode 0600, the same on all hosts",
        default: "none: every process that has an endpoint's address may call it, in a name of its \
                  own",
        meaning: "A key that endpoints of different hosts, as in MPI programs, share besides their \
                  addresses. A process without it cannot call. Stronger: `FI_AYRE_KEY`",
        check: |_| Ok(()),
    },
    Setting {
        name: PORTS,
        values: "`first-last`, or one number",
        default: "any that is free",
        meaning: "The UDP ports for links with other hosts: those that a firewall lets pass. Each \
                  rank or endpoint takes one for each path. Stronger: `ayre run --ports`, \
                  `FI_AYRE_PORTS`",
        check: |text| text.parse::<PortRange>().map(drop).map_err(|why| why.to_string()),
    },
    Setting {
        name: PROTECTION,
        values: "`sealed`, `plain`",
        default: "`sealed`",
        meaning: "Whether links between hosts are encrypted and authenticated. `plain` is for \
                  closed networks: somebody who can read them can write the ranks' memory. \
                  Stronger: `ayre run --plain`, `FI_AYRE_PROTECTION`",
        check: |text| word(text, PROTECTIONS).map(drop),
    },
    Setting {
        name: ETHERNET,
        values: "`never`, `required`",
        default: "used where the process may (`CAP_NET_RAW`)",
        meaning: "Whether short messages go to other hosts straight over Ethernet, without UDP. \
                  Stronger: `FI_AYRE_ETHERNET`",
        check: |text| word(text, ETHERNETS).map(drop),
    },
    Setting {
        name: GROUP,
        values: "a name in `/etc/group`, or a number: `hpc`, `2000`",
        default: "processes of the same user, and of root",
        meaning: "The group whose processes may connect, besides those of the default. Both sides \
                  must set it, processes of root too",
        check: |text| group_number(text).map(drop),
    },
    Setting {
        name: FAULTS,
        values: "a list of `loss`, `dup`, `reorder`, `corrupt` (shares: `20%`, `0.2`), `delay`, \
                 `jitter` (times: `2ms`), `rate` (`100Mbit`), `queue` (`64kB`) and `seed`: \
                 `loss=5%,delay=2ms`",
        default: "none",
        meaning: "Faults on purpose in the traffic to other hosts, for tests. Stronger: \
                  `FI_AYRE_FAULTS`",
        check: |text| text.parse::<FaultPlan>().map(drop).map_err(|why| why.to_string()),
    },
    Setting {
        name: CAPTURE,
        values: "a file's name with `{rank}` in it: `/tmp/job-{rank}.pcap`",
        default: "none",
        meaning: "The file into which each rank writes its traffic with other hosts, for \
                  Wireshark, before it is encrypted. A process without a rank writes its process \
                  number in place of `{rank}`. Stronger: `FI_AYRE_CAPTURE`",
        check: |text| capture_pattern(text).map(drop),
    },
    Setting {
        name: SILENCE,
        values: "seconds: `3`, `0.5`",
        default: "`3`",
        meaning: "Time without a sign of life after which a process of another host is not heard. \
                  Operations to it wait, and nothing ends. If its host says that its port is \
                  closed, it is dead then. Stronger: `ayre run --silence`, `FI_AYRE_SILENCE`",
        check: |text| seconds(text).map(drop),
    },
    Setting {
        name: DEAD_AFTER,
        values: "seconds, at least those of `AYRE_SILENCE`: `60`, `600`",
        default: "`60`",
        meaning: "Time without a sign of life after which a process of another host is taken for \
                  dead. A link whose data does not get through ends after this time, too. \
                  Stronger: `ayre run --dead-after`, `FI_AYRE_DEAD_AFTER`",
        check: |text| seconds_of_death(text, silence().ok().flatten()).map(drop),
    },
    Setting {
        name: TUNING,
        values: "a file that `ayre tune` has written; `none`",
        default: "`~/.config/ayre/tuning.toml`, `/etc/ayre/tuning.toml`, else what is built in",
        meaning: "The measured cut-offs between methods of moving many bytes. `none` takes the \
                  built-in ones",
        check: |_| Ok(()),
    },
    Setting {
        name: LOG,
        values: "`off`, `error`, `warn`, `info`, `debug`, `trace`",
        default: "`warn`; under libfabric `off`, where its own log has all",
        meaning: "The level of the log on standard error: set-up, connections, ends and obstacles. \
                  Operations write nothing to it",
        check: |text| word(text, LEVELS).map(drop),
    },
    Setting {
        name: MEMORY,
        values: "bytes, or `k`, `M` or `G` of them, 1024 times as many each, and `1M` at least: \
                 `512M`",
        default: "what the machine and the control groups allow, divided by the ranks of the \
                  host that are known, and at least `128M`",
        meaning: "Memory that an endpoint may take. Half of it is for messages that wait for a \
                  receive. When that is full, the peer that has sent most of them gets an error \
                  and loses the connection. Stronger: `FI_AYRE_MEMORY`",
        check: |text| bytes_of_memory(text).map(drop),
    },
    Setting {
        name: DESCRIPTORS,
        values: "`raise`, `keep`",
        default: "`raise`",
        meaning: "Whether the first port or endpoint raises the process's soft limit of \
                  descriptors (`ulimit -S -n`) to the hard one. A peer of this host takes two. \
                  `keep` is for programs that call `select`, which knows the first 1024 only",
        check: |text| word(text, LIMITS).map(drop),
    },
];

/// Variables that only the Cargo feature `net` reads.
pub(crate) const OF_NET: &[&str] =
    &[NET, KEY, PORTS, PROTECTION, ETHERNET, FAULTS, CAPTURE, SILENCE, DEAD_AFTER];

/// Variables by which a launcher describes the job to its ranks; `ayre run` sets each of them.
pub const OF_LAUNCHERS: &[(&str, &str)] = &[
    ("AYRE_JOB", "The directory of the job"),
    ("AYRE_RANK", "The rank of this process"),
    ("AYRE_SIZE", "Ranks of the job"),
    ("AYRE_HOST_RANKS", "The ranks of this host, `first..end`"),
    (ADDRESSES, "Addresses of this host at which to be open to others"),
    ("AYRE_PROCESSORS", "Processors that bound ranks of this host share"),
];

/// The addresses at which a process is to be open, where the launcher has found them.
pub(crate) const ADDRESSES: &str = "AYRE_ADDRESSES";

/// Variables that the library of sockets and `ayre sockets` read. Programs with ports may load that
/// library, too.
const OF_SOCKETS: &[&str] = &[
    SOCKETS,
    "AYRE_SOCKETS_HOSTS",
    "AYRE_SOCKETS_LIBRARY",
    "AYRE_SOCKETS_MEET",
    "AYRE_SOCKETS_POLICY",
    "AYRE_SOCKETS_REPORT",
    "AYRE_SOCKETS_SPIN",
];

/// The prefix of these variables, and one of them.
const SOCKETS: &str = "AYRE_SOCKETS";

/// Prefixes of variables that only this project's tests and scripts read.
const OF_TESTS: &[&str] = &[
    "AYRE_CONFORMANCE_",
    "AYRE_LIBFABRIC",
    "AYRE_RECORD_LAYOUTS",
    "AYRE_SEED",
    "AYRE_SOAK",
    "AYRE_SOCKETS_CORPUS",
    "AYRE_SOCKETS_PROGRAMS",
    "AYRE_SOCKETS_SEED",
    "AYRE_SOCKETS_TEST_",
    "AYRE_SOCKETS_WITHOUT",
    "AYRE_TEST_",
    "AYRE_TREE",
    "AYRE_VECTORS",
];

const MODES: &[(&str, Mode)] = &[("direct", Mode::Direct), ("mediated", Mode::Mediated)];
const PROTECTIONS: &[(&str, bool)] = &[("sealed", false), ("plain", true)];
const ETHERNETS: &[(&str, Ethernet)] =
    &[("never", Ethernet::Never), ("required", Ethernet::Required)];
const LIMITS: &[(&str, bool)] = &[("raise", true), ("keep", false)];
const LEVELS: &[(&str, LevelFilter)] = &[
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];
/// The least memory, in bytes, with which an endpoint can have thousands of operations pending, as
/// programs expect.
const MEMORY_LEAST: u64 = 1 << 20;
/// The number of addresses: one for each path.
const NET_MAX: usize = 4;

impl Setting {
    /// The variable's value in this process, if it is set.
    pub fn value(&self) -> Option<OsString> {
        std::env::var_os(self.name)
    }
}

/// Checks that every variable that begins with `AYRE_` exists and has an allowed value. Each port
/// checks when it is opened.
///
/// # Errors
/// [`SetupError::Environment`] names the variable, its value, the mistake and the allowed values.
// spec: LIFE-30
pub fn check() -> Result<(), SetupError> {
    for name in names_with(PREFIX) {
        match SETTINGS.iter().find(|setting| setting.name == name) {
            Some(setting) => {
                read(setting.name, setting.check)?;
                check_feature(setting.name)?;
            }
            None => check_name(&name)?,
        }
    }
    Ok(())
}

/// Checks that every variable whose name begins with `AYRE_SOCKETS` exists.
///
/// # Errors
/// [`SetupError::Environment`] names the variable, and those that there are.
// spec: LIFE-30, SOCK-43
#[doc(hidden)]
pub fn check_sockets() -> Result<(), SetupError> {
    names_with(SOCKETS).try_for_each(|name| check_name(&name))
}

/// The variables of this process whose names begin so.
fn names_with(prefix: &str) -> impl Iterator<Item = String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(move |name| name.starts_with(prefix))
}

/// Checks that this build has the Cargo feature that reads a variable.
fn check_feature(name: &str) -> Result<(), SetupError> {
    let feature = match name {
        TUNING if cfg!(not(feature = "tuning")) => "tuning",
        _ if cfg!(not(feature = "net")) && OF_NET.contains(&name) => "net",
        _ => return Ok(()),
    };
    // Without the feature there are no other hosts, and the cut-offs are the built-in ones.
    let is_none = std::env::var_os(name).is_some_and(|value| value == "none");
    if is_none && matches!(name, NET | TUNING) { Ok(()) } else { Err(lacks(name, feature)) }
}

/// An error: this build lacks the Cargo feature that reads a variable.
pub(crate) fn lacks(name: &str, feature: &str) -> SetupError {
    SetupError::Environment(format!(
        "{name} is set, and this program's Ayre was built without the Cargo feature `{feature}`"
    ))
}

/// Checks that a variable that is not for users exists.
fn check_name(name: &str) -> Result<(), SetupError> {
    let is_of_launchers = OF_LAUNCHERS.iter().any(|(known, _)| *known == name);
    let is_of_tests = OF_TESTS.iter().any(|known| name.starts_with(known));
    if is_of_launchers || is_of_tests || OF_SOCKETS.contains(&name) {
        return Ok(());
    }
    let (names, page): (Vec<_>, _) = match name.starts_with(SOCKETS) {
        true => (OF_SOCKETS.to_vec(), "docs/sockets.md"),
        false => (SETTINGS.iter().map(|setting| setting.name).collect(), "`ayre info --env`"),
    };
    let names = names.join(", ");
    Err(SetupError::Environment(format!(
        "Ayre has no variable {name}; it has {names} ({page} tells what they mean)"
    )))
}

/// Reads a variable, if it is set.
pub(crate) fn read<T, E: Display>(
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, SetupError> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    let Some(text) = value.to_str() else {
        return Err(SetupError::Environment(format!("{name}={}: no text", value.display())));
    };
    parse(text).map(Some).map_err(|why| wrong(name, text, &why))
}

/// An error: the variable has a value that is not allowed.
pub(crate) fn wrong(name: &str, text: &str, why: &dyn Display) -> SetupError {
    wrong_as(("", name), text, why)
}

/// An error for a value, with a prefix before the variable's name.
pub(crate) fn wrong_as((prefix, name): (&str, &str), text: &str, why: &dyn Display) -> SetupError {
    let values = SETTINGS.iter().find(|setting| setting.name == name);
    let values = values.map(|setting| format!("; it may be {}", setting.values));
    SetupError::Environment(format!("{prefix}{name}={text}: {why}{}", values.unwrap_or_default()))
}

pub(crate) fn mode() -> Result<Option<Mode>, SetupError> {
    read(MODE, |text| word(text, MODES))
}

/// The file with the key of endpoints.
pub(crate) fn key() -> Option<OsString> {
    std::env::var_os(KEY)
}

/// The UDP ports that may be used.
pub(crate) fn ports() -> Result<Option<PortRange>, SetupError> {
    read(PORTS, str::parse)
}

/// An error: the file of a capture cannot be written.
pub(crate) fn wrong_capture(path: &Path, why: &dyn Display) -> SetupError {
    SetupError::Environment(format!("the capture ({CAPTURE}), {}: {why}", path.display()))
}

/// Whether links to other hosts are plain.
pub(crate) fn is_plain() -> Result<Option<bool>, SetupError> {
    read(PROTECTION, protection)
}

/// Parses the protection: whether it is plain.
pub(crate) fn protection(text: &str) -> Result<bool, String> {
    word(text, PROTECTIONS)
}

pub(crate) fn ethernet() -> Result<Option<Ethernet>, SetupError> {
    read(ETHERNET, ethernet_word)
}

pub(crate) fn ethernet_word(text: &str) -> Result<Ethernet, String> {
    word(text, ETHERNETS)
}

pub(crate) fn faults() -> Result<Option<FaultPlan>, SetupError> {
    read(FAULTS, str::parse)
}

/// Whether the process raises its limit of descriptors.
pub(crate) fn raises_limit() -> Result<bool, SetupError> {
    Ok(read(DESCRIPTORS, |text| word(text, LIMITS))?.unwrap_or(true))
}

/// The most detailed level of messages that goes to standard error.
pub(crate) fn log() -> Result<Option<LevelFilter>, SetupError> {
    read(LOG, |text| word(text, LEVELS))
}

/// The interfaces, networks or addresses at which other hosts reach this process.
///
/// # Errors
/// [`SetupError::Environment`] where there are more than four.
pub fn net() -> Result<Vec<String>, SetupError> {
    Ok(read(NET, net_words)?.unwrap_or_default())
}

/// The pattern for the names of capture files.
pub(crate) fn capture() -> Result<Option<PathBuf>, SetupError> {
    read(CAPTURE, capture_pattern)
}

/// Checks the pattern for the names of capture files, as [`crate::NetOptions::capture`] takes it.
///
/// # Errors
/// A text that says why several processes would write the same file.
pub fn capture_pattern(text: &str) -> Result<PathBuf, String> {
    match text.contains(WHOSE) {
        true => Ok(text.into()),
        false => Err(format!("all ranks would write this one file: it has no {WHOSE}")),
    }
}

/// The name of one process's capture file, by the pattern: with its rank, else the rank that its
/// launcher has given it, else its process number. Further ports of a process get names of their
/// own.
pub(crate) fn capture_of(pattern: &Path, rank: Option<usize>) -> PathBuf {
    static GIVEN: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());
    let Some(text) = pattern.to_str().filter(|text| text.contains(WHOSE)) else {
        return pattern.to_owned();
    };
    let told = |name: &&str| std::env::var(name).ok()?.parse::<usize>().ok();
    let rank = rank.or_else(|| RANKS.iter().find_map(told));
    let whose = rank.map_or_else(|| std::process::id().to_string(), |rank| rank.to_string());
    let first = PathBuf::from(text.replace(WHOSE, &whose));
    let mut given = GIVEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let times = given.entry(first.clone()).or_default();
    *times += 1;
    match *times {
        1 => first,
        times => text.replace(WHOSE, &format!("{whose}-{times}")).into(),
    }
}

/// The variables by which launchers give a process its rank.
const RANKS: &[&str] =
    &["AYRE_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];

/// The group whose members' processes may connect with this one.
// spec: LIFE-7
pub(crate) fn group() -> Result<Option<u32>, SetupError> {
    read(GROUP, group_number)
}

/// The number of a group, from `/etc/group` only: other sources of groups need the C library.
fn group_number(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let found = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(text)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    found.ok_or_else(|| format!("/etc/group has no `{text}`"))
}

/// The time without a sign of life after which a process of another host counts as silent.
pub(crate) fn silence() -> Result<Option<Duration>, SetupError> {
    read(SILENCE, seconds)
}

/// The time without a sign of life after which a process of another host counts as dead.
pub(crate) fn dead_after() -> Result<Option<Duration>, SetupError> {
    let silence = silence()?;
    read(DEAD_AFTER, |text| seconds_of_death(text, silence))
}

/// Parses the dead time, and checks it against the time of silence, if that was set, too.
///
/// # Errors
/// A text that says what is wrong.
pub(crate) fn seconds_of_death(text: &str, silence: Option<Duration>) -> Result<Duration, String> {
    let time = seconds(text)?;
    match silence.filter(|silence| time < *silence) {
        None => Ok(time),
        Some(silence) => {
            let silence = silence.as_secs_f64();
            Err(format!("it is shorter than {SILENCE}, {silence} s"))
        }
    }
}

/// Reads a number of seconds such as `0.5`.
///
/// # Errors
/// A text that says what is wrong.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|it| (0.001..=1e9).contains(it));
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| format!("`{text}` is no number of seconds from 0.001 to 1e9"))
}

/// The memory, in bytes, that an endpoint may use.
pub(crate) fn memory() -> Result<Option<u64>, SetupError> {
    read(MEMORY, bytes_of_memory)
}

/// Parses an amount of memory with which an endpoint can work.
///
/// # Errors
/// A text that says what is wrong.
pub(crate) fn bytes_of_memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        few if few < MEMORY_LEAST => Err(format!("{few} bytes are too few")),
        enough => Ok(enough),
    }
}

/// Parses a number of bytes such as `512M`.
///
/// # Errors
/// A text that says what is wrong.
pub fn bytes(text: &str) -> Result<u64, String> {
    let shift = ["k", "M", "G"].iter().position(|unit| text.ends_with(unit));
    let number = if shift.is_some() { &text[..text.len() - 1] } else { text };
    let number: Option<u64> = number.parse().ok();
    let bytes =
        number.and_then(|number| number.checked_mul(1 << shift.map_or(0, |at| 10 * (at + 1))));
    bytes.ok_or_else(|| format!("`{text}` is no number of bytes such as `512M`"))
}

/// The name of the tuning file, or `none`.
pub(crate) fn tuning() -> Option<OsString> {
    std::env::var_os(TUNING)
}

/// An error: the tuning file that the variable names cannot be used.
pub(crate) fn wrong_tuning(file: &dyn Display, why: &dyn Display) -> SetupError {
    wrong(TUNING, &file.to_string(), why)
}

pub(crate) fn net_words(text: &str) -> Result<Vec<String>, String> {
    let words: Vec<_> =
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if words.len() > NET_MAX {
        return Err(format!("{} of them, and there are at most {NET_MAX} paths", words.len()));
    }
    Ok(words)
}

fn word<T: Copy>(text: &str, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| format!("there is no `{text}`"))
}

//! The processes of a job: starting them, signalling them, reaping them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait, waitpid};

use super::Mode;
use super::bind::{Bind, Pinned};
use super::output::{Sink, Stream};
use crate::sys::SignalFd;

const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The ranks of a job that this machine starts, and how.
pub(super) struct Share {
    /// The program and its arguments.
    pub(super) program: Vec<OsString>,
    pub(super) ranks: Range<u16>,
    /// Ranks of the whole job.
    pub(super) size: u16,
    pub(super) bind: Bind,
    pub(super) mode: Option<Mode>,
    /// How the ranks' output is relayed: each line with its rank in front, or unchanged.
    pub(super) relay: Relay,
    /// Rank 0 reads what this process would; else none reads anything.
    pub(super) has_input: bool,
    /// Further variables.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// How the ranks' output gets out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relay {
    /// The ranks write it themselves.
    No,
    Lines,
    PrefixedLines,
}

/// Variables of a job around this one, which would mislead its ranks.
pub(super) const OF_OTHER_JOBS: [&str; 3] =
    ["AYRE_PROCESSORS", "AYRE_HOST_RANKS", "AYRE_ADDRESSES"];

/// Why a job could not be started.
pub(super) struct StartFailure {
    pub(super) code: u8,
    pub(super) message: String,
}

/// The ranks that have not been reaped. Until then their process ids cannot be reused, so a signal
/// cannot reach another process. Dropping them kills and reaps the rest.
pub(super) struct Ranks {
    living: HashMap<Pid, u16>,
}

/// A child that has ended.
pub(super) enum Reaped {
    Rank(u16, ExitStatus),
    /// A process that some rank left behind and this launcher inherited.
    Stray(Pid),
}

impl Ranks {
    /// Starts all ranks, or none: when one cannot be started, those before it are killed.
    pub(super) fn start(
        share: &Share,
        directory: &Path,
        signals: &SignalFd,
    ) -> Result<(Self, Vec<Stream>), StartFailure> {
        let cores = share.bind.cores()?;
        let processors = distinct(cores.iter().take(share.ranks.len()));
        let mut ranks = Self { living: HashMap::with_capacity(share.ranks.len()) };
        let mut streams = Vec::new();
        for (place, rank) in share.ranks.clone().enumerate() {
            let pinned = match cores.as_slice() {
                [] => None,
                cores => {
                    let core = cores[place % cores.len()];
                    Some(Pinned::to(core)?)
                }
            };
            let mut command = command(share, directory, rank);
            if let Some(processors) = processors {
                command.env("AYRE_PROCESSORS", processors.to_string());
            }
            crate::sys::prepare_rank(&mut command, signals);
            let mut child = command.spawn().map_err(|error| explain(share, rank, &error))?;
            drop(pinned);
            ranks.living.insert(Pid::from_child(&child), rank);
            streams.extend(piped(&mut child, share.relay, rank));
        }
        Ok((ranks, streams))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.living.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.living.len()
    }

    pub(super) fn contains(&self, process: Pid) -> bool {
        self.living.contains_key(&process)
    }

    /// Sends `signal` to every rank. One that refuses it (it may have taken on another user's
    /// identity) is waited for like the others.
    pub(super) fn signal(&self, signal: Signal) {
        for process in self.living.keys() {
            let _ = kill_process(*process, signal);
        }
    }

    /// Reaps one ended child, without waiting.
    pub(super) fn reap(&mut self) -> io::Result<Option<Reaped>> {
        let (process, status) = match wait(WaitOptions::NOHANG) {
            Ok(Some(ended)) => ended,
            Ok(None) | Err(Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let ended = match self.living.remove(&process) {
            Some(rank) => Reaped::Rank(rank, ExitStatus::from_raw(status.as_raw())),
            None => Reaped::Stray(process),
        };
        Ok(Some(ended))
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        for process in self.living.keys() {
            while matches!(waitpid(Some(*process), WaitOptions::empty()), Err(Errno::INTR)) {}
        }
    }
}

impl From<anyhow::Error> for StartFailure {
    fn from(error: anyhow::Error) -> Self {
        Self { code: crate::TOOL_FAILED, message: format!("{error:#}") }
    }
}

fn command(share: &Share, directory: &Path, rank: u16) -> Command {
    let mut command = Command::new(&share.program[0]);
    command.args(&share.program[1..]);
    for name in OF_OTHER_JOBS {
        command.env_remove(name);
    }
    command
        .envs(share.environment.iter().map(|(name, value)| (name, value)))
        .env("AYRE_JOB", directory)
        .env("AYRE_RANK", rank.to_string())
        .env("AYRE_SIZE", share.size.to_string());
    if let Some(mode) = share.mode {
        command.env("AYRE_MODE", mode.name());
    }
    // Input can have one reader only; the others see its end at once instead of waiting for it.
    if rank != 0 || !share.has_input {
        command.stdin(Stdio::null());
    }
    if share.relay != Relay::No {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    command
}

/// How many cores bound ranks share: a rank sees its own only, and could not tell by itself whether
/// ranks outnumber cores. None when ranks are not bound, for then each sees all.
fn distinct<'a>(cores: impl Iterator<Item = &'a usize>) -> Option<usize> {
    let count = cores.collect::<HashSet<_>>().len();
    (count > 0).then_some(count)
}

fn piped(child: &mut Child, relay: Relay, rank: u16) -> impl Iterator<Item = Stream> {
    let prefix = (relay == Relay::PrefixedLines).then_some(rank);
    let stream = |end: OwnedFd, sink| Stream::new(end, sink, prefix);
    let stdout = child.stdout.take().map(|end| stream(end.into(), Sink::Stdout));
    let stderr = child.stderr.take().map(|end| stream(end.into(), Sink::Stderr));
    stdout.into_iter().chain(stderr)
}

fn explain(share: &Share, rank: u16, error: &io::Error) -> StartFailure {
    let program = Path::new(&share.program[0]);
    let is_path = program.components().count() > 1;
    let (code, reason) = match error.kind() {
        io::ErrorKind::NotFound if is_path && program.exists() => {
            (NOT_EXECUTABLE, "the interpreter it names is not found".to_owned())
        }
        io::ErrorKind::NotFound if is_path => (NOT_FOUND, "no such file".to_owned()),
        io::ErrorKind::NotFound => (NOT_FOUND, "not found in PATH".to_owned()),
        io::ErrorKind::PermissionDenied => (NOT_EXECUTABLE, "not executable".to_owned()),
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            (crate::TOOL_FAILED, error.to_string())
        }
        _ => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => {
                (crate::TOOL_FAILED, format!("{error}; raise `ulimit -n`"))
            }
            _ => (NOT_EXECUTABLE, error.to_string()),
        },
    };
    StartFailure {
        code,
        message: format!("rank {rank} cannot be started: {}: {reason}", program.display()),
    }
}

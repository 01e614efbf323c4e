//! The processes of a job: starting them, signalling them, reaping them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait, waitpid};

use super::Args;
use super::bind::Pinned;
use super::output::{Sink, Stream};
use crate::sys::SignalFd;

const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Why a job could not be started.
pub(super) struct StartFailure {
    pub(super) code: u8,
    pub(super) message: String,
}

/// The ranks that have not been reaped. Until then their process ids cannot be reused, so a signal
/// cannot reach a stranger. Dropping them kills and reaps what is left.
pub(super) struct Ranks {
    living: HashMap<Pid, u16>,
}

/// A child that has ended.
pub(super) enum Ended {
    Rank(u16, ExitStatus),
    /// A process that some rank left behind and this launcher inherited.
    Stray(Pid),
}

impl Ranks {
    /// Starts all ranks, or none: when one cannot be started, those before it are killed.
    pub(super) fn start(
        args: &Args,
        directory: &Path,
        signals: &SignalFd,
    ) -> Result<(Self, Vec<Stream>), StartFailure> {
        let cores = args.bind.cores().map_err(StartFailure::of_tool)?;
        let processors = distinct(cores.iter().take(args.ranks.into()));
        let mut ranks = Self { living: HashMap::with_capacity(args.ranks.into()) };
        let mut streams = Vec::new();
        for rank in 0..args.ranks {
            let pinned = match cores.as_slice() {
                [] => None,
                cores => {
                    let core = cores[usize::from(rank) % cores.len()];
                    Some(Pinned::to(core).map_err(StartFailure::of_tool)?)
                }
            };
            let mut command = command(args, directory, rank);
            if let Some(processors) = processors {
                command.env("AYRE_PROCESSORS", processors.to_string());
            }
            crate::sys::prepare_rank(&mut command, signals);
            let mut child = command.spawn().map_err(|error| explain(args, rank, &error))?;
            drop(pinned);
            ranks.living.insert(Pid::from_child(&child), rank);
            streams.extend(piped(&mut child, rank));
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
    pub(super) fn reap(&mut self) -> io::Result<Option<Ended>> {
        let (process, status) = match wait(WaitOptions::NOHANG) {
            Ok(Some(ended)) => ended,
            Ok(None) | Err(Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let ended = match self.living.remove(&process) {
            Some(rank) => Ended::Rank(rank, ExitStatus::from_raw(status.as_raw())),
            None => Ended::Stray(process),
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

impl StartFailure {
    fn of_tool(error: anyhow::Error) -> Self {
        Self { code: crate::TOOL_FAILED, message: format!("{error:#}") }
    }
}

fn command(args: &Args, directory: &Path, rank: u16) -> Command {
    let mut command = Command::new(&args.program[0]);
    command
        .args(&args.program[1..])
        .env("AYRE_JOB", directory)
        .env("AYRE_RANK", rank.to_string())
        .env("AYRE_SIZE", args.ranks.to_string())
        // Of a job around this one.
        .env_remove("AYRE_PROCESSORS");
    if let Some(mode) = args.mode {
        command.env("AYRE_MODE", mode.name());
    }
    // Input can have one reader only; the others see its end at once instead of waiting for it.
    if rank != 0 {
        command.stdin(Stdio::null());
    }
    if args.prefix {
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

fn piped(child: &mut Child, rank: u16) -> impl Iterator<Item = Stream> {
    let stdout = child.stdout.take().map(|end| Stream::new(OwnedFd::from(end), Sink::Stdout, rank));
    let stderr = child.stderr.take().map(|end| Stream::new(OwnedFd::from(end), Sink::Stderr, rank));
    stdout.into_iter().chain(stderr)
}

fn explain(args: &Args, rank: u16, error: &io::Error) -> StartFailure {
    let program = Path::new(&args.program[0]);
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
            Some(libc::EMFILE | libc::ENFILE) => (crate::TOOL_FAILED, error.to_string()),
            _ => (NOT_EXECUTABLE, error.to_string()),
        },
    };
    StartFailure {
        code,
        message: format!("rank {rank} cannot be started: {}: {reason}", program.display()),
    }
}

//! Starts the ranks of a measurement: copies of this program, in a job of the launcher's.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args as _, Command, FromArgMatches};

use super::Args;
use crate::run;

/// Runs `count` copies, with this process's arguments and the memory between them.
pub(super) fn ranks(args: &Args, count: usize, memory: &OwnedFd) -> Result<ExitCode> {
    // The launcher is given a command line, like by anybody else.
    let mut words: Vec<OsString> = vec!["run".into()];
    words.extend(["-n".into(), count.to_string().into()]);
    words.extend(["--bind".into(), (&args.bind).into()]);
    words.extend(["--mode".into(), args.mode.name().into()]);
    words.extend(["--".into(), "/proc/self/exe".into()]);
    words.extend(std::env::args_os().skip(1));
    words.push(format!("--shared-fd={}", memory.as_raw_fd()).into());
    let command = run::Args::augment_args(Command::new("run"));
    let matches = command.try_get_matches_from(words)?;
    run::run(run::Args::from_arg_matches(&matches)?)
}

//! Starts the ranks of a measurement: copies of this program, in a job of the launcher's.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args as _, Command, FromArgMatches};

use super::Args;
use super::kept::Kept;
use super::side::shared::RawShared;
use crate::run;

/// How a measurement has ended, and how many rows were printed.
pub(super) struct Ended {
    pub(super) code: ExitCode,
    pub(super) rows: u64,
}

/// Runs `count` copies with the arguments of this process.
pub(super) fn ranks(args: &Args, count: usize, kept: Option<&Kept>) -> Result<Ended> {
    ranks_with(args, std::env::args_os().skip(1), count, kept)
}

/// Runs `count` copies with these arguments, and with memory between them; what is to be kept of
/// their figures goes where `kept` says.
pub(super) fn ranks_with(
    args: &Args,
    arguments: impl IntoIterator<Item = OsString>,
    count: usize,
    kept: Option<&Kept>,
) -> Result<Ended> {
    let memory = RawShared::create().context("could not make shared memory")?;
    // The launcher is given a command line, like by anybody else.
    let mut words: Vec<OsString> = vec!["run".into()];
    words.extend(["-n".into(), count.to_string().into()]);
    words.extend(["--bind".into(), (&args.bind).into()]);
    words.extend(["--mode".into(), args.mode.name().into()]);
    words.extend(["--".into(), "/proc/self/exe".into()]);
    words.extend(arguments);
    words.push(format!("--shared-fd={}", memory.as_raw_fd()).into());
    words.extend(kept.map(|kept| format!("--kept-fd={}", kept.descriptor()).into()));
    let command = run::Args::augment_args(Command::new("run"));
    let matches = command.try_get_matches_from(words)?;
    let code = run::run(run::Args::from_arg_matches(&matches)?)?;
    let rows = RawShared::rows(&memory).context("could not read the shared memory")?;
    Ok(Ended { code, rows })
}

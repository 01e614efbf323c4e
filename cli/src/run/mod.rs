//! `ayre run`: starts the ranks of a parallel job, on this machine or on several ([`hosts`]), and
//! stays until all have ended.
//!
//! The launcher is one loop over readable events ([`job`]); with `--prefix` a second thread relays
//! the ranks' output ([`output`]), so that a slow reader never delays a signal. A job that
//! fails also ends the processes that its ranks have started ([`orphans`]); after a success they go
//! on.

mod bind;
mod crew;
mod directory;
mod hosts;
mod job;
mod orphans;
mod output;
mod ranks;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub(crate) use self::bind::{Bind, Pinned};
use self::crew::Local;
use self::directory::JobDirectory;
pub(crate) use self::hosts::serve;
use self::job::{Job, JobSignals};
use self::orphans::Orphans;
use self::output::{Output, Own};
use self::ranks::{Ranks, Relay, Share};

/// The arguments of `ayre run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many ranks to start; with --hosts, as many as these take if it is left out
    #[arg(short = 'n', long = "ranks", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=ayre::PEERS_MAX as i64))]
    ranks: Option<u16>,

    /// Cores for the ranks, in turn: none, cores (all usable ones), or a list such as 0,2 or 0-3
    #[arg(long, value_name = "CORES", default_value = "none")]
    bind: Bind,

    /// Begin every line of output with the rank that wrote it
    #[arg(long)]
    prefix: bool,

    /// How the ranks reach each other's memory; their programs decide when this is left out
    #[arg(long, value_enum)]
    mode: Option<Mode>,

    /// End the job, with code 124, when it runs longer than this
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,

    /// When a rank fails, let the others go on: the job ends with the highest code of any rank.
    /// Without it they have a second to say what they saw of it, and are then asked to end
    #[arg(long)]
    keep_going: bool,

    /// How long ranks that were asked to end may take before they are killed
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_seconds)]
    grace: Duration,

    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,

    // Last: its heading stands over whatever follows.
    #[command(flatten)]
    hosts: hosts::Options,
}

impl Args {
    /// All ranks, on this machine.
    fn share(&self, ranks: u16) -> Share {
        Share {
            program: self.program.clone(),
            ranks: 0..ranks,
            size: ranks,
            bind: self.bind.clone(),
            mode: self.mode,
            relay: if self.prefix { Relay::PrefixedLines } else { Relay::No },
            has_input: true,
            environment: Vec::new(),
        }
    }
}

/// The argument of `--mode`, handed to the ranks in AYRE_MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Mode {
    /// The initiator copies into the target's memory itself: for ranks that trust each other
    Direct,
    /// The target's engine executes every operation
    Mediated,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Mediated => "mediated",
        }
    }
}

/// Runs the job; the exit code is the job's.
// spec: LIFE-30
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    ayre::settings::check()?;
    match (args.hosts.layout(args.ranks)?, args.ranks) {
        (Some(layout), _) => hosts::run(&args, &layout),
        (None, Some(ranks)) => run_here(&args, ranks),
        (None, None) => bail!("how many ranks? (-n N, or --hosts)"),
    }
}

/// Runs the job on this machine.
fn run_here(args: &Args, ranks: u16) -> Result<ExitCode> {
    // Wrong ones are an error even where there is no other host.
    let net = ayre::settings::net()?;
    if !net.is_empty() {
        ayre::network::host_addresses(&net).context("AYRE_NET")?;
    }
    crate::sys::keep_child_status();
    let signals = JobSignals::block().context("setting up signal handling")?;
    let orphans = Orphans::inherit();
    // Declared before the ranks, so that it is removed after they have ended.
    let directory = JobDirectory::create(ranks.into())?;
    let share = args.share(ranks);
    let (ranks, streams) = match Ranks::start(&share, directory.path(), &signals.0) {
        Ok(started) => started,
        Err(failure) => {
            say(&failure.message);
            return Ok(ExitCode::from(failure.code));
        }
    };
    let output = if args.prefix { Some(Output::relay(streams, Own)?) } else { None };
    let code = Job::new(args, signals, Local::new(ranks, orphans, output)).run()?;
    Ok(ExitCode::from(code))
}

/// Prints one line on standard error, in one piece because the ranks may be writing there too.
fn say(message: &str) {
    // When nobody can be told, the exit code still tells.
    let _ = std::io::stderr().write_all(format!("ayre: {message}\n").as_bytes());
}

fn parse_seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse()?;
    // A bound of thirty years keeps every later sum of times within its type.
    ensure!((0.0..=1e9).contains(&seconds), "not a number of seconds from 0 to 1e9");
    Ok(Duration::try_from_secs_f64(seconds)?)
}

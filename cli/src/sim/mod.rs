//! `ayre sim`: networks and network interfaces in simulated time, as a file or the default values
//! describe them.

mod interface;
mod list;
mod merge;
mod numbers;
mod outputs;
mod page;
mod run;
mod script;
mod text;
mod watch;

use std::process::ExitCode;

use anyhow::Result;

/// The arguments of `ayre sim`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List all parameters: their values, defaults, meanings, and where the defaults come from
    List(list::Args),
    /// Run a scenario of one point, and print all that it gives
    #[command(after_help = STATUS)]
    Run(run::Run),
    /// Run each combination of the values that a scenario lists, and print a line of each
    #[command(after_help = STATUS)]
    Sweep(run::Sweep),
    /// Print results again that were kept by --json
    #[command(after_help = STATUS)]
    Report(run::Report),
    /// Make a schedule (GOAL) of the recordings of an MPI program that ran with FI_AYRE_RECORD
    Merge(merge::Args),
}

const STATUS: &str = "A scenario is a TOML file of parameters (ayre sim list), such as \
    `load = 0.9`; `load = [0.5, 0.9]` makes two points. Without a file all parameters have their \
    default values.\n\n\
    Exit status: 0; 2: the input has a fault; 3: a network does not carry the load, or is \
    deadlocked, or a script failed; 130: stopped by Ctrl-C, with the results up to then.";

/// Does what is asked for.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::List(args) => list::run(args),
        Command::Run(args) => args.run(),
        Command::Sweep(args) => args.run(),
        Command::Report(args) => args.run(),
        Command::Merge(args) => merge::run(args),
    }
}

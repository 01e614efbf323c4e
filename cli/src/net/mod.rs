//! `ayre net`: what follows from the topology of a network alone, without running it.

mod route;

use std::process::ExitCode;

use anyhow::Result;

/// The arguments of `ayre net`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Route a topology: tables, strings for packets, loads of links, and whether it may deadlock
    #[command(after_help = route::FORMS)]
    Route(route::Args),
}

/// Does what is asked for.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Route(args) => args.run(),
    }
}

//! The tool `ayre`: runs parallel jobs, measures, and tells what the machine offers.

mod deposit;
mod info;
mod manual;
mod net;
mod page;
mod perf;
mod run;
mod sim;
mod sockets;
mod study;
mod sys;
mod top;
mod tune;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The code for a failure of the tool itself, as `env` and `timeout` use it: a job's own codes stay
/// recognisable.
const TOOL_FAILED: u8 = 125;
/// The code for a fault in what the tool was given to read, as for its arguments.
const BAD_INPUT: u8 = 2;
/// The code for a finding that its reader should not miss, such as a deadlock.
const BAD_NEWS: u8 = 3;

/// Ayre: one-sided communication, messages and remote queues between processes.
#[derive(Parser)]
#[command(name = "ayre", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program as a parallel job of N ranks, on this machine or on several
    Run(Box<run::Args>),
    /// Run the ranks of this host for a launcher on another one
    #[command(hide = true)]
    Agent,
    /// Run a program whose TCP connections within this host go by shared memory where they can
    Sockets(sockets::Args),
    /// Measure every operation beside the machine's own limits
    Perf(perf::Args),
    /// Tell what this machine offers and which path connections would take
    Info(info::Args),
    /// Measure the methods of moving many bytes, and store from where on each is the fastest
    Tune(tune::Args),
    /// Turn deposit instructions from text into words, one a line
    Asm(deposit::Args),
    /// Turn the words of deposit instructions and messages into text
    Disasm(deposit::Args),
    /// Watch the links that running processes have with other hosts
    Top(top::Args),
    /// Study recordings of collectives: which loads of links go with slow calls
    Study(study::Args),
    /// Run networks in simulated time: delays, throughput, loads, deadlocks
    Sim(sim::Args),
    /// Look into the topology of a network: routes, their loads, their deadlocks
    Net(net::Args),
    /// Print what a shell completes commands and options by
    Completions(manual::Completions),
    /// Write the pages of the manual, for `man`
    #[command(hide = true)]
    Man(manual::Pages),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::run(*args),
        Command::Agent => run::serve(),
        Command::Sockets(args) => sockets::run(&args),
        Command::Perf(args) => perf::run(args),
        Command::Info(args) => info::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Asm(args) => deposit::assemble(&args),
        Command::Disasm(args) => deposit::disassemble(&args),
        Command::Top(args) => top::run(&args),
        Command::Study(args) => study::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Net(args) => net::run(&args),
        Command::Completions(args) => manual::complete(&args, tool()),
        Command::Man(args) => manual::print(&args, tool()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("ayre: {error:#}");
        ExitCode::from(TOOL_FAILED)
    })
}

/// Says what is wrong with what the tool was given to read.
fn refused(error: &anyhow::Error) -> ExitCode {
    eprintln!("ayre: {error:#}");
    ExitCode::from(BAD_INPUT)
}

/// Prints a text.
fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // A reader such as `head` may have seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// All that the tool takes.
fn tool() -> clap::Command {
    Cli::command()
}

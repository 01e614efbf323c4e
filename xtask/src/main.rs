//! The project's own tools: they keep the tree tidy, the spec cited, instruction counts low and
//! the golden vectors current.

mod api;
mod finding;
mod header;
mod instructions;
mod modules;
mod rules;
mod source;
mod spec;
mod tidy;
mod tokens;
mod tree;
mod vectors;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::modules::Modules;
use crate::tree::Tree;

/// The project's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the public items of the published crates with their lists, `*/api.txt`.
    Api {
        /// Write the lists anew.
        #[arg(long)]
        write: bool,
    },
    /// Compare the header of the library for C with its sources.
    Header {
        /// Write it anew.
        #[arg(long)]
        write: bool,
    },
    /// Check the rules of CONTRIBUTING.md; print `path:line: what` for each breach.
    Tidy,
    /// Check and count the citations of the requirements in spec/.
    Spec {
        /// Fail also when a requirement has no test that cites it.
        #[arg(long)]
        strict: bool,
    },
    /// Count the instructions of each hot operation; fail when one is over its limit.
    Instructions(instructions::Options),
    /// Print the modules of a crate in their layers, and the imports of those that form cycles.
    Modules {
        /// Its sources, such as `engine/src/`.
        folder: String,
    },
    /// Write the golden vectors of the machines, `vectors/*.txt`, anew.
    Vectors,
}

fn main() -> Result<ExitCode> {
    let clean = match Cli::parse().command {
        Command::Api { write } => api::run(&root(), write)?,
        Command::Header { write } => header::run(&root(), write)?,
        Command::Tidy => tidy::run(&Tree::load(&root())?),
        Command::Spec { strict } => spec::run(&Tree::load(&root())?, strict),
        Command::Instructions(options) => instructions::run(&root(), &options)?,
        Command::Modules { folder } => {
            print!("{}", Modules::of(&Tree::load(&root())?, &folder));
            true
        }
        Command::Vectors => vectors::run(&root())?,
    };
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The root of the repository: this package lies one folder below it. Cargo says where, as what it
/// has built may have been copied from another place.
fn root() -> PathBuf {
    let built = || env!("CARGO_MANIFEST_DIR").into();
    let mut root: PathBuf = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(built, Into::into);
    root.pop();
    root
}

//! `ayre sim merge`: recordings of a real run become a schedule.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use ayre_sim::goal::Recordings;

/// The arguments of `ayre sim merge`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The folder that `FI_AYRE_RECORD` named
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let recordings = match Recordings::read_folder(&args.folder) {
        Ok(recordings) => recordings,
        Err(error) => return Ok(crate::refused(&error.into())),
    };
    let mut text = String::new();
    recordings.write(&mut text)?;
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

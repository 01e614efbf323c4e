//! The results of a run: printed, and written to the files that were asked for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use ayre_sim::report::Results;

use super::page::page;
use super::text;

/// The code of a process that Ctrl-C has ended.
const STOPPED: u8 = 130;

/// Files that results are written to.
#[derive(clap::Args)]
pub(super) struct Outputs {
    /// Keep the results in this file, as `ayre sim report` reads them
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    views: Views,
}

/// Files for people and other programs.
#[derive(clap::Args)]
pub(super) struct Views {
    /// Write a line for each point to this file, its numbers between commas
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw a page of charts for a browser into this file, which fetches nothing
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Outputs {
    /// Prints and writes results.
    pub(super) fn give(&self, results: &Results) -> Result<ExitCode> {
        // First of all: whatever happens to files, the results have been seen.
        crate::print(&text::text(results))?;
        if let Some(path) = &self.json {
            write(path, &results.to_json()?)?;
        }
        self.views.write(results)?;
        Ok(status(results))
    }
}

impl Views {
    /// Prints and writes results that were kept.
    pub(super) fn give(&self, results: &Results) -> Result<ExitCode> {
        crate::print(&text::text(results))?;
        self.write(results)?;
        Ok(status(results))
    }

    fn write(&self, results: &Results) -> Result<()> {
        if let Some(path) = &self.csv {
            write(path, &results.to_csv()?)?;
        }
        if let Some(path) = &self.html {
            page(results)?.write(path)?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}

/// The exit status: bad news about the network goes before those about the run.
fn status(results: &Results) -> ExitCode {
    match (results.is_unstable(), results.complete) {
        (true, _) => ExitCode::from(crate::BAD_NEWS),
        (false, false) => ExitCode::from(STOPPED),
        (false, true) => ExitCode::SUCCESS,
    }
}

//! `ayre sim run`, `sweep` and `report`: scenarios are read and run, results are read and given.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail};
use ayre_sim::report::{Results, Trace, UnitTrace};
use ayre_sim::scenario::{FILE_MAX, Scenario};

use super::outputs::{Outputs, Views};
use super::watch::Progress;

/// Packets on links that a trace shows at most.
const SLICES_MAX: usize = 100_000;
/// Operations of an interface that a trace shows.
const OPERATIONS: usize = 32;
/// Bytes of kept results at most.
const RESULTS_MAX: usize = 1 << 30;

/// A scenario, as it is named in arguments.
#[derive(clap::Args)]
struct Given {
    /// The scenario's file, and values of parameters that take the place of those in the file
    #[arg(value_name = "FILE | KEY=VALUE")]
    words: Vec<String>,
    /// Run on this number of threads; on all processors otherwise. The results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

/// The arguments of `ayre sim run`.
#[derive(clap::Args)]
pub(super) struct Run {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    outputs: Outputs,
    /// Write the packets on links of the first replica, or the busy units of an interface, to this
    /// file, which Perfetto and Chrome show
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// The arguments of `ayre sim sweep`.
#[derive(clap::Args)]
pub(super) struct Sweep {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    outputs: Outputs,
}

/// The arguments of `ayre sim report`.
#[derive(clap::Args)]
pub(super) struct Report {
    /// Results that `ayre sim run` or `sweep` has kept by --json
    results: PathBuf,
    #[command(flatten)]
    views: Views,
}

impl Run {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let (name, scenario) = match self.given.read().and_then(only_point) {
            Ok(read) => read,
            Err(error) => return Ok(crate::refused(&error)),
        };
        let plan = scenario.plan(0);
        let of_network = self.trace.is_some() && plan.trial.is_none();
        let traced = if of_network { plan.warmup + plan.packets } else { 0 };
        let watch = Progress::new(scenario.packets() + traced)?;
        let results = scenario.run_watched(&name, self.given.threads(), &watch);
        let trace = of_network.then(|| scenario.trace(0, SLICES_MAX, &watch));
        drop(watch);
        let status = self.outputs.give(&results)?;
        if let Some(path) = &self.trace {
            match (trace, scenario.unit_trace(0, OPERATIONS)) {
                (Some(trace), _) => write_trace(path, &trace)?,
                (None, Some(trace)) => write_unit_trace(path, &trace)?,
                (None, None) => {}
            }
        }
        Ok(status)
    }
}

impl Sweep {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let (name, scenario) = match self.given.read() {
            Ok(read) => read,
            Err(error) => return Ok(crate::refused(&error)),
        };
        let watch = Progress::new(scenario.packets())?;
        let results = scenario.run_watched(&name, self.given.threads(), &watch);
        drop(watch);
        self.outputs.give(&results)
    }
}

impl Report {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let read = || {
            let text = read(&self.results, RESULTS_MAX)?;
            Results::from_json(&text).with_context(|| self.results.display().to_string())
        };
        match read() {
            Ok(results) => self.views.give(&results),
            Err(error) => Ok(crate::refused(&error)),
        }
    }
}

impl Given {
    /// The scenario with its name.
    fn read(&self) -> Result<(String, Scenario)> {
        let (values, files): (Vec<_>, Vec<_>) =
            self.words.iter().partition(|word| word.contains('='));
        let (name, text) = match files[..] {
            [] => ("default values".to_owned(), String::new()),
            [file] => (file.clone(), read(Path::new(file), FILE_MAX)?),
            [_, second, ..] => bail!("there is one file at a time: `{second}` is another one"),
        };
        let scenario = Scenario::read(&name, &text, &values)?;
        Ok((name, scenario))
    }

    fn threads(&self) -> usize {
        self.threads.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get)
    }
}

fn only_point((name, scenario): (String, Scenario)) -> Result<(String, Scenario)> {
    Ok((name, scenario.one_point()?))
}

/// The text of a file that is no longer than this, and one byte more of another one.
fn read(path: &Path, most: usize) -> Result<String> {
    let read = || {
        let mut text = String::new();
        File::open(path)?.take(most as u64 + 1).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    read().with_context(|| format!("could not read {}", path.display()))
}

fn write_trace(path: &Path, trace: &Trace) -> Result<()> {
    write_file(path, |file| trace.write(file))?;
    let (shown, missed) = (trace.slices().len(), trace.missed());
    crate::print(&format!(
        "trace        {shown} packets on links in {}, {missed} more not shown\n",
        path.display()
    ))?;
    Ok(())
}

fn write_unit_trace(path: &Path, trace: &UnitTrace) -> Result<()> {
    write_file(path, |file| trace.write(file))?;
    let (shown, path) = (trace.slices(), path.display());
    crate::print(&format!(
        "trace        {shown} times that a unit was kept by {OPERATIONS} operations, in {path}\n"
    ))?;
    Ok(())
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        write(&mut file)?;
        file.flush()
    };
    write().with_context(|| format!("could not write {}", path.display()))
}

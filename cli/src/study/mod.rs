//! `ayre study`: what recordings of collectives tell of the links that they went over.

mod cluster;
mod predict;
mod recording;
mod report;
mod stats;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use self::recording::{Calls, Kind, Recording};
use self::report::Study;
use crate::page::made_by;

/// Calls of one kind from which on they are worth a study.
const CALLS_MIN: usize = 40;

/// The arguments of `ayre study`.
#[derive(clap::Args)]
#[command(after_help = "What the figures mean: docs/reading-the-numbers.md")]
pub(crate) struct Args {
    /// Recordings of a group, one of each member (written by `Collectives::write_recording`)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Study these calls, such as `allreduce-1024`; the ones that took the most time otherwise
    #[arg(long)]
    calls: Option<String>,
    /// Draw the charts of the page into this folder, each as an SVG file
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Write what is found as a page for a browser, too, which fetches nothing
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Studies recordings.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let recordings: Vec<_> = args.files.iter().map(|file| Recording::read(file)).collect();
    let recordings = recordings.into_iter().collect::<Result<Vec<_>>>()?;
    let all = Calls::merge(&recordings)?;
    let kind = pick(&all, args.calls.as_deref())?;
    let calls = all.of(&kind);
    ensure!(
        calls.len() >= CALLS_MIN,
        "{kind}: {} calls that all members have recorded; a study needs {CALLS_MIN}",
        calls.len()
    );
    let study = Study::make(&calls);
    let mut text = format!("{}{}", report::kinds(&all), study.text(&kind));
    if let Some(folder) = &args.plots {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for (name, chart) in study.charts() {
            let path = folder.join(name).with_extension("svg");
            let drawing = chart.file(&format!("Calls of {kind}. {}", made_by()))?;
            std::fs::write(&path, drawing).with_context(|| path.display().to_string())?;
            text += &format!("drawn: {}\n", path.display());
        }
    }
    if let Some(path) = &args.html {
        study.page(&all, &kind)?.write(path)?;
    }
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The kind of calls that is asked for, or the one that took the most time in all.
fn pick(all: &Calls, asked: Option<&str>) -> Result<Kind> {
    let kinds = all.kinds();
    let Some(asked) = asked else {
        let most = kinds.into_iter().max_by(|one, other| one.total.total_cmp(&other.total));
        return most.map(|most| most.kind).context("no call that all members have recorded");
    };
    let names: Vec<_> = kinds.iter().map(|one| one.kind.to_string()).collect();
    match names.iter().position(|name| *name == asked.to_lowercase()) {
        Some(at) => Ok(kinds.into_iter().nth(at).expect("it is there").kind),
        None => bail!("no calls are `{asked}`; there are {}", names.join(", ")),
    }
}

//! `ayre top`: the links of this user's running processes, and their connections by the sockets
//! library, again and again, with what they did since the last look.

mod connections;
mod look;
mod page;
mod rates;
mod screen;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};

use self::look::Look;
use crate::info::links::remarks;
use crate::info::tables::aligned;

/// The arguments of `ayre top`.
#[derive(clap::Args)]
#[command(after_help = "What the columns mean: docs/reading-the-numbers.md")]
pub(crate) struct Args {
    /// Seconds between two looks
    #[arg(long, short, default_value_t = 1.0)]
    interval: f64,
    /// Look twice, print what happened in between, and end; so it is without a terminal
    #[arg(long)]
    once: bool,
    /// Look twice, write what is seen as a page for a browser, which fetches nothing, and end
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Shows links and connections until the user leaves.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!((0.05..=3600.0).contains(&args.interval), "an interval is 0.05 to 3600 seconds");
    let interval = Duration::from_secs_f64(args.interval);
    let is_watched = io::stdout().is_terminal() && io::stdin().is_terminal();
    if args.once || args.html.is_some() || !is_watched {
        return once(interval, args.html.as_deref());
    }
    screen::run(interval)?;
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "a rate is taken over a time")]
fn once(interval: Duration, html: Option<&Path>) -> Result<ExitCode> {
    let before = Look::take(None)?;
    sleep(interval);
    let Look { seen, traffic, connections, .. } = Look::take(Some(&before))?;
    if let Some(path) = html {
        page::page(&seen, &traffic, &connections)?.write(path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{}\n", traffic.summary) + &traffic.tables.text();
    if !connections.is_empty() {
        text += &("\n".to_owned() + &aligned(&connections));
    }
    text += &remarks(&seen);
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

//! `ayre info --links`: the links that this user's running processes have with other hosts.

use std::time::Duration;

use anyhow::Result;
use ayre::{WireReport, WireReports, wire_reports};
use serde::Serialize;

use super::tables::{Tables, again, number};

/// How long a port may take to answer; its keeper looks several times in that time.
const PATIENCE: Duration = Duration::from_secs(1);

/// What programs read.
#[derive(Serialize)]
struct Ports<'a> {
    ports: &'a [WireReport],
    silent: &'a [String],
}

/// The table, or JSON.
pub(super) fn text(is_json: bool) -> Result<String> {
    let seen = look()?;
    if is_json {
        let ports = Ports { ports: &seen.reports, silent: &seen.silent };
        return Ok(serde_json::to_string_pretty(&ports)? + "\n");
    }
    Ok(table(&seen) + &remarks(&seen))
}

/// All ports of this user that are open to other hosts.
pub(crate) fn look() -> Result<WireReports> {
    Ok(wire_reports(PATIENCE)?)
}

/// What is to be said besides the links.
pub(crate) fn remarks(seen: &WireReports) -> String {
    let mut text = String::new();
    if seen.reports.is_empty() {
        text += "no process of this user has a port open to other hosts\n";
    }
    for name in &seen.silent {
        text += &format!("no answer: {name}\n");
    }
    text
}

fn table(seen: &WireReports) -> String {
    Tables::of(seen, &["sent", "again"], |_, link| vec![number(link.sent), number(again(link))])
        .text()
}

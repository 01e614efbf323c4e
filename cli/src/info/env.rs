//! `ayre info --env`: the variables that Ayre reads, what they are set to, and what is wrong there.

use std::fmt::{self, Display, Formatter};

use anyhow::Result;
use ayre::settings::{self, SETTINGS};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    settings: Vec<Row>,
    /// The mistake because of which no port can be opened.
    wrong: Option<String>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// None where it is not set.
    value: Option<String>,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
}

// spec: LIFE-30
pub(super) fn text(is_json: bool) -> Result<String> {
    let report = Report::make();
    Ok(if is_json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() })
}

impl Report {
    fn make() -> Self {
        let row = |setting: &settings::Setting| Row {
            name: setting.name,
            value: setting.value().map(|value| value.to_string_lossy().into_owned()),
            values: setting.values,
            default: setting.default,
            meaning: setting.meaning,
        };
        let wrong = settings::check().err().map(|error| error.to_string());
        Self { settings: SETTINGS.iter().map(row).collect(), wrong }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for Row { name, value, values, default, meaning } in &self.settings {
            match value {
                Some(value) => writeln!(f, "{name}={value}  (set)")?,
                None => writeln!(f, "{name}  (not set: {})", plain(default))?,
            }
            writeln!(f, "    {}", plain(meaning))?;
            writeln!(f, "    values: {}", plain(values))?;
        }
        match &self.wrong {
            Some(wrong) => writeln!(f, "\nno port can be opened: {}", plain(wrong)),
            None => Ok(()),
        }
    }
}

/// Without the marks that stand for a typeface.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

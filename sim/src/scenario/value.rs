//! Values of parameters: what is allowed, and what a text says.
use super::nearest::nearest;
use super::script::{Script, ScriptError};
use super::units::{self, Rate, Span, UnitError};
use crate::goal::{Pattern, ReadError, Schedule};
use crate::interface::MODELS;
use crate::time::Time;
use crate::topology::{FileError, Named};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// The values that a parameter may have.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One of these names, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// A whole number.
    Count {
        /// The least one.
        least: u64,
        /// The greatest one.
        most: u64,
    },
    /// A length in bytes.
    Bytes {
        /// The least one.
        least: u64,
        /// The greatest one.
        most: u64,
    },
    /// A span of time up to a second, or a number of cycles.
    Time,
    /// The rate of a link.
    Rate,
    /// The rate of a clock, in hertz.
    Frequency {
        /// The least one.
        least: u64,
        /// The greatest one.
        most: u64,
    },
    /// An operation of a model of an interface.
    Operation,
    /// A share: a number or a percentage from `least` to `most`.
    Share {
        /// The least one.
        least: f64,
        /// The greatest one.
        most: f64,
    },
    /// A share, or [`SATURATION`].
    Load {
        /// The least share.
        least: f64,
        /// The greatest one.
        most: f64,
    },
    /// Numbers of routers, joined by `x`.
    Sides,
    /// Numbers of nodes, joined by commas.
    Nodes,
    /// Any text up to a limit.
    Text,
    /// The name of a file that has a topology.
    Topology,
    /// A usual schedule, or the name of a file that has one.
    Schedule,
    /// The name of a file that has a script.
    Script,
}

/// The load that is looked for: the greatest one that the network carries.
pub const SATURATION: &str = "saturation";

/// Schedules that have names, with those that are for any number of ranks.
pub(super) const SCHEDULES: [(&str, Option<Pattern>); 6] = [
    ("dissemination", Some(Pattern::Dissemination)),
    ("broadcast", Some(Pattern::Broadcast)),
    ("doubling", Some(Pattern::Doubling)),
    ("ring", Some(Pattern::Ring)),
    ("all-to-all", Some(Pattern::AllToAll)),
    ("halo", None),
];

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The name of a choice.
    Choice(&'static str),
    /// A number, a length in bytes, or a rate in hertz.
    Number(u64),
    /// A span of time.
    Time(Span),
    /// A rate.
    Rate(Rate),
    /// A share.
    Share(f64),
    /// Several numbers.
    List(Vec<u32>),
    /// A text.
    Text(String),
    /// The topology of a file; nothing, if no file is named.
    Topology(Option<Arc<Named>>),
    /// The schedule of a file.
    Schedule(Arc<Schedule>),
    /// The script of a file; nothing, if no file is named.
    Script(Option<Arc<Script>>),
}

/// Why a text is no value of a parameter.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ValueError {
    /// It cannot be read.
    #[error("{0}")]
    Unit(#[from] UnitError),
    /// It is no choice.
    #[error("there is no such choice{}", near(.0))]
    NoChoice(Option<&'static str>),
    /// It is no whole number.
    #[error("it is no whole number")]
    NoNumber,
    /// It is too small or too large.
    #[error("it is out of range")]
    Range,
    /// A file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// A file of a topology is faulty.
    #[error(transparent)]
    Topology(#[from] FileError),
    /// A script is faulty.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

fn near(nearest: &Option<&'static str>) -> String {
    nearest.map(|name| format!("; `{name}` is near")).unwrap_or_default()
}

/// Numbers in a list at most.
const LIST_MAX: usize = 1 << 16;
/// Bytes of a text at most.
const TEXT_MAX: u64 = 4096;
/// Bytes of a file that a scenario names at most.
const CONTENT_MAX: u64 = 1 << 28;
/// Picoseconds in a second.
const SECOND: u64 = 1_000_000_000_000;
/// Cycles at most.
const CYCLES_MAX: u64 = 1_000_000;

impl Kind {
    /// Reads a value. Files are looked for in `folder`.
    ///
    /// # Errors
    /// See [`ValueError`].
    pub fn read(&self, text: &str, folder: &Path) -> Result<Value, ValueError> {
        let text = text.trim();
        match *self {
            Self::Choice(choices) => {
                let names = || choices.iter().map(|(name, _)| *name);
                let found = names().find(|name| *name == text);
                found.map(Value::Choice).ok_or_else(|| ValueError::NoChoice(nearest(text, names())))
            }
            Self::Count { least, most } => {
                let number = text.parse().map_err(|_| ValueError::NoNumber)?;
                Ok(Value::Number(within(number, least, most)?))
            }
            Self::Bytes { least, most } => {
                Ok(Value::Number(within(units::bytes(text)?, least, most)?))
            }
            Self::Time => {
                let span = units::span(text)?;
                match span {
                    Span::Picos(picos) => within(picos, 0, SECOND)?,
                    Span::Cycles(cycles) => within(cycles, 0, CYCLES_MAX)?,
                };
                Ok(Value::Time(span))
            }
            Self::Rate => Ok(Value::Rate(units::rate(text)?)),
            Self::Frequency { least, most } => {
                Ok(Value::Number(within(units::frequency(text)?, least, most)?))
            }
            Self::Operation => {
                let found = operations().find(|name| *name == text);
                found
                    .map(Value::Choice)
                    .ok_or_else(|| ValueError::NoChoice(nearest(text, operations())))
            }
            Self::Load { .. } if text == SATURATION => Ok(Value::Choice(SATURATION)),
            Self::Share { least, most } | Self::Load { least, most } => {
                let share = units::share(text)?;
                if (least..=most).contains(&share) {
                    Ok(Value::Share(share))
                } else {
                    Err(ValueError::Range)
                }
            }
            Self::Sides => numbers(text, 'x'),
            Self::Nodes => numbers(text, ','),
            Self::Text => {
                within(text.len() as u64, 0, TEXT_MAX)?;
                Ok(Value::Text(text.to_owned()))
            }
            Self::Topology if text.is_empty() => Ok(Value::Topology(None)),
            Self::Topology => {
                let (path, text) = content(folder, text)?;
                Ok(Value::Topology(Some(Arc::new(Named::read(&path, &text)?))))
            }
            Self::Script if text.is_empty() => Ok(Value::Script(None)),
            Self::Script => {
                let (path, text) = content(folder, text)?;
                Ok(Value::Script(Some(Arc::new(Script::read(&path, &text)?))))
            }
            Self::Schedule => {
                if let Some((name, _)) = SCHEDULES.iter().find(|(name, _)| *name == text) {
                    return Ok(Value::Choice(name));
                }
                let (path, text) = content(folder, text)?;
                let schedule = Schedule::read(text.as_bytes());
                let fail = |error: ReadError| ValueError::File { path, why: error.to_string() };
                Ok(Value::Schedule(Arc::new(schedule.map_err(fail)?)))
            }
        }
    }
}

/// The operations of all models of interfaces.
fn operations() -> impl Iterator<Item = &'static str> {
    MODELS.iter().flat_map(|model| model.operations.iter().map(|operation| operation.name))
}

/// The path and the text of a file.
fn content(folder: &Path, name: &str) -> Result<(String, String), ValueError> {
    let path = folder.join(name);
    let shown = path.display().to_string();
    let fail = |why: String| ValueError::File { path: shown.clone(), why };
    let file = std::fs::File::open(&path).map_err(|error| fail(error.to_string()))?;
    let mut text = String::new();
    // Some files have no length, or no end.
    let read = file.take(CONTENT_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| fail(error.to_string()))?;
    if text.len() as u64 > CONTENT_MAX {
        return Err(fail(format!("the file is longer than the limit of {CONTENT_MAX} B")));
    }
    Ok((shown, text))
}

fn within(number: u64, least: u64, most: u64) -> Result<u64, ValueError> {
    if (least..=most).contains(&number) { Ok(number) } else { Err(ValueError::Range) }
}

fn numbers(text: &str, between: char) -> Result<Value, ValueError> {
    let parts: Vec<_> = text.split(between).take(LIST_MAX + 1).collect();
    if parts.len() > LIST_MAX {
        return Err(ValueError::Range);
    }
    let numbers = parts.iter().map(|part| part.trim().parse());
    let numbers = numbers.collect::<Result<_, _>>().map_err(|_| ValueError::NoNumber)?;
    Ok(Value::List(numbers))
}

/// Tells the range.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Choice(choices) => {
                let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                f.write_str(&names.join(", "))
            }
            Self::Count { least, most } => write!(f, "{least} to {most}"),
            Self::Bytes { least, most } => write!(f, "{} to {}", size(least), size(most)),
            Self::Time => write!(f, "0 ps to 1 s, or up to {CYCLES_MAX} cycles"),
            Self::Rate => f.write_str("a rate such as 2.5 Gb/s, or a frequency of phits"),
            Self::Frequency { least, most } => {
                write!(f, "{} MHz to {} MHz", least / 1_000_000, most / 1_000_000)
            }
            Self::Operation => f.write_str("those of the interface: `ayre sim list NAME`"),
            Self::Share { least, most } => write!(f, "{least} to {most}, or a percentage"),
            Self::Load { least, most } => {
                write!(f, "{least} to {most}, a percentage, or {SATURATION}")
            }
            Self::Sides => f.write_str("numbers of routers such as 8x8"),
            Self::Nodes => f.write_str("numbers of nodes such as 1,0,3,2"),
            Self::Schedule => {
                let names: Vec<_> = SCHEDULES.iter().map(|(name, _)| *name).collect();
                write!(f, "{}, or the name of a file", names.join(", "))
            }
            Self::Script => f.write_str("the name of a file"),
            Self::Text => write!(f, "up to {TEXT_MAX} B"),
            Self::Topology => {
                f.write_str("the name of a file in the text form, or in DOT (.dot, .gv)")
            }
        }
    }
}

/// Bytes in the largest unit that they are a whole number of.
fn size(bytes: u64) -> String {
    match bytes.trailing_zeros() {
        _ if bytes == 0 => "0 B".to_owned(),
        30.. => format!("{} GiB", bytes >> 30),
        20..30 => format!("{} MiB", bytes >> 20),
        10..20 => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

impl Value {
    /// A number; zero for any other value.
    pub(super) fn number(&self) -> u64 {
        if let Self::Number(number) = self { *number } else { 0 }
    }

    /// A share; zero for any other value.
    pub(super) fn share(&self) -> f64 {
        if let Self::Share(share) = self { *share } else { 0.0 }
    }

    /// The name of a choice; empty for any other value.
    pub(super) fn choice(&self) -> &'static str {
        if let Self::Choice(name) = self { name } else { "" }
    }

    /// A list; empty for any other value.
    pub(super) fn list(&self) -> &[u32] {
        if let Self::List(list) = self { list } else { &[] }
    }

    /// A text; empty for any other value.
    pub(super) fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    /// A span of time, where a cycle takes this time; zero for any other value.
    pub(super) fn time(&self, cycle: Time) -> Time {
        if let Self::Time(span) = self { span.time(cycle) } else { Time::ZERO }
    }
}

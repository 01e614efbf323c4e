//! Scenario files: TOML with a key for each parameter, and lists for sweeps.
use super::nearest::nearest;
use super::table::{KEYS, Key};
use super::value::{Value, ValueError};
use crate::cluster::ClusterError;
use crate::goal::{PatternError, RunError};
use crate::interface::Refusal;
use crate::network::BuildError;
use crate::topology::{LinkError, TopologyError};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Bytes of a scenario file at most.
pub const FILE_MAX: usize = 1 << 20;

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file; lines and columns count from 1.
    File {
        /// The file's name.
        file: String,
        /// The line.
        line: usize,
        /// The column, in characters.
        column: usize,
    },
    /// In an argument `key=value`.
    Argument(String),
    /// Nowhere: it is the value that the table gives.
    Default,
}

/// A scenario that cannot be run.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{place}: {problem}")]
pub struct ScenarioError {
    /// Where the fault is.
    pub place: Place,
    /// The fault.
    pub problem: Box<Problem>,
}

impl ScenarioError {
    pub(super) fn new(place: Place, problem: impl Into<Problem>) -> Self {
        Self { place, problem: Box::new(problem.into()) }
    }
}

/// Faults of scenarios.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Problem {
    /// The file is no TOML.
    #[error("{0}")]
    Syntax(String),
    /// The file is too long.
    #[error("the file has {0} B, and the limit is {FILE_MAX} B")]
    LongFile(usize),
    /// An argument without `=`.
    #[error("an argument has the form key=value")]
    NoArgument,
    /// There is no such parameter.
    #[error("there is no parameter `{key}`{}", hint(.nearest))]
    UnknownKey {
        /// Its name.
        key: String,
        /// A parameter with a similar name.
        nearest: Option<&'static str>,
    },
    /// A value that the parameter cannot have.
    #[error("`{key}` cannot be {found}: {why}; allowed: {allowed}")]
    Value {
        /// The parameter.
        key: &'static str,
        /// The value.
        found: String,
        /// The reason.
        why: ValueError,
        /// The range.
        allowed: String,
    },
    /// A value of a type that no parameter has.
    #[error("`{key}` cannot be {found}: a value is a number, a text or a list of these")]
    Type {
        /// The parameter.
        key: &'static str,
        /// The type.
        found: &'static str,
    },
    /// A list without a value.
    #[error("`{0}` is an empty list: there would be nothing to run")]
    EmptyList(&'static str),
    /// A parameter that nothing uses here.
    #[error("`{key}` is not used here: it belongs to {needs}")]
    Unused {
        /// The parameter.
        key: &'static str,
        /// The values of others that it is used with.
        needs: String,
    },
    /// More points than can be run.
    #[error("the lists make {0} points, and the limit is {limit}", limit = super::POINTS_MAX)]
    ManyPoints(u64),
    /// A parameter that has to be given.
    #[error("`{key}` is missing: it belongs to {needs}")]
    Missing {
        /// The parameter.
        key: &'static str,
        /// The values of others that it is used with.
        needs: String,
    },
    /// There is no such topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Links that are to fail are not there.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no such network.
    #[error(transparent)]
    Network(#[from] BuildError),
    /// A schedule is made for another number of ranks.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A schedule would not run to its end, or its hosts are impossible.
    #[error(transparent)]
    Schedule(#[from] RunError),
    /// An interface cannot do it.
    #[error(transparent)]
    Interface(#[from] Refusal),
    /// A script names nodes that are not there.
    #[error(transparent)]
    Script(#[from] super::script::ScriptError),
    /// The frames of a script's operations do not fit the network.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A link that is too fast or too slow.
    #[error("{0}")]
    Rate(super::units::UnitError),
    /// The queues of a network do not fit into memory.
    #[error("{what} would be {number}, and the limit is {limit}")]
    Large {
        /// The things of which there would be too many.
        what: &'static str,
        /// How many there would be.
        number: u64,
        /// The limit.
        limit: u64,
    },
    /// No more than one point was asked for.
    #[error("`{0}` is a list, which makes a sweep: give it one value, or sweep")]
    Sweep(&'static str),
}

fn hint(nearest: &Option<&str>) -> String {
    nearest.map(|name| format!("; is `{name}` meant?")).unwrap_or_default()
}

/// A value with its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) text: String,
    pub(super) place: Place,
}

/// A parameter that a file or an argument gives: one value, or those of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Its place in the table.
    pub(super) key: usize,
    pub(super) values: Vec<Given>,
    pub(super) place: Place,
}

/// Where a text comes from.
#[derive(Clone, Copy)]
enum Origin<'a> {
    File { name: &'a str, text: &'a str },
    Argument(&'a str),
}

impl Origin<'_> {
    /// The folder in which files are looked for: that of the scenario's file, or the current one.
    fn folder(&self) -> &Path {
        match self {
            Self::File { name, .. } => Path::new(name).parent().unwrap_or_else(|| Path::new("")),
            Self::Argument(_) => Path::new(""),
        }
    }

    /// The place of a part of the text.
    fn place(&self, span: Range<usize>) -> Place {
        match self {
            Self::Argument(argument) => Place::Argument((*argument).to_owned()),
            Self::File { name, text } => {
                let before = text.get(..span.start).unwrap_or(text);
                let line = before.rsplit('\n').next().unwrap_or("");
                Place::File {
                    file: (*name).to_owned(),
                    line: before.matches('\n').count() + 1,
                    column: line.chars().count() + 1,
                }
            }
        }
    }
}

/// Reads a file.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Setting>, ScenarioError> {
    let origin = Origin::File { name, text };
    if text.len() > FILE_MAX {
        let problem = Problem::LongFile(text.len());
        return Err(ScenarioError::new(origin.place(0..0), problem));
    }
    let table = DeTable::parse(text).map_err(|error| {
        let place = origin.place(error.span().unwrap_or(0..0));
        ScenarioError::new(place, Problem::Syntax(error.message().to_owned()))
    })?;
    let mut lines: Vec<_> = table.get_ref().iter().collect();
    // As the file has them: the order of lists is that of points.
    lines.sort_by_key(|(key, _)| key.span().start);
    let settings =
        lines.iter().map(|(key, value)| setting(origin, key.get_ref(), key.span(), value));
    settings.collect()
}

/// Reads an argument: its value is TOML, or a text without quotes.
pub(super) fn argument(argument: &str) -> Result<Setting, ScenarioError> {
    let origin = Origin::Argument(argument);
    let fail = |problem| ScenarioError::new(origin.place(0..0), problem);
    let (key, text) = argument.split_once('=').ok_or_else(|| fail(Problem::NoArgument))?;
    let quoted;
    let value = match DeValue::parse(text.trim()) {
        Ok(value) => value,
        Err(_) => {
            quoted = Spanned::new(0..0, DeValue::String(text.trim().into()));
            quoted
        }
    };
    setting(origin, key.trim(), 0..0, &value)
}

fn setting(
    origin: Origin<'_>,
    name: &str,
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Setting, ScenarioError> {
    let place = origin.place(span);
    let Some(key) = KEYS.iter().position(|key| key.name == name) else {
        let nearest = nearest(name, KEYS.iter().map(|key| key.name));
        let problem = Problem::UnknownKey { key: name.to_owned(), nearest };
        return Err(ScenarioError::new(place, problem));
    };
    let values = match value.get_ref() {
        DeValue::Array(list) => several(origin, &KEYS[key], list, &place)?,
        _ => vec![one(origin, &KEYS[key], value)?],
    };
    Ok(Setting { key, values, place })
}

fn several(
    origin: Origin<'_>,
    key: &Key,
    list: &DeArray<'_>,
    place: &Place,
) -> Result<Vec<Given>, ScenarioError> {
    if list.is_empty() {
        let problem = Problem::EmptyList(key.name);
        return Err(ScenarioError::new(place.clone(), problem));
    }
    list.iter().map(|value| one(origin, key, value)).collect()
}

fn one(
    origin: Origin<'_>,
    key: &Key,
    value: &Spanned<DeValue<'_>>,
) -> Result<Given, ScenarioError> {
    let place = origin.place(value.span());
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
        DeValue::Float(number) => number.as_str().replace('_', ""),
        other => {
            let problem = Problem::Type { key: key.name, found: other.type_str() };
            return Err(ScenarioError::new(place, problem));
        }
    };
    match key.kind.read(&text, origin.folder()) {
        Ok(value) => Ok(Given { value, text: text.trim().to_owned(), place }),
        Err(why) => {
            let allowed = key.kind.to_string();
            let found = format!("`{}`", text.chars().take(64).collect::<String>());
            let problem = Problem::Value { key: key.name, found, why, allowed };
            Err(ScenarioError::new(place, problem))
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Argument(argument) => write!(f, "argument `{argument}`"),
            Self::Default => f.write_str("default values"),
        }
    }
}

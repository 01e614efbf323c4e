//! Requests to a model: an operation, and settings by their names.
use crate::forth::posting::PostError;
use crate::time::{Clock, Time};
use thiserror::Error;

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The name of a choice.
    Choice(&'static str),
    /// A number, or the hertz of a clock.
    Number(u64),
    /// A span of time.
    Time(Time),
}

/// A request to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub operation: &'static str,
    /// The bytes that it moves.
    pub size: u32,
    /// All settings, of which a model takes those that it knows.
    pub settings: Vec<(&'static str, Setting)>,
}

/// Why a model cannot do what is asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// It has no such operation.
    #[error("{model} has no operation `{operation}`; it has {known}")]
    Operation {
        /// The model.
        model: &'static str,
        /// The operation.
        operation: &'static str,
        /// Those that it has.
        known: String,
    },
    /// The operation moves more bytes, or fewer.
    #[error("`{operation}` moves {least} B to {most} B, and `size` is {size} B")]
    Size {
        /// The operation.
        operation: &'static str,
        /// The bytes.
        size: u32,
        /// The fewest.
        least: u32,
        /// The most.
        most: u32,
    },
    /// It has no such variant.
    #[error("`{setting}` cannot be `{value}` here: this interface takes {known}")]
    Choice {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: &'static str,
        /// The values that it takes.
        known: String,
    },
    /// A program cannot post like this.
    #[error(transparent)]
    Post(#[from] PostError),
}

impl Refusal {
    /// The settings that the fault lies in, the likeliest one first.
    pub fn settings(&self) -> Vec<&'static str> {
        match self {
            Self::Operation { .. } => vec!["operation", "interface"],
            Self::Size { .. } => vec!["size", "operation", "interface"],
            Self::Choice { setting, .. } => vec![setting, "operation", "interface"],
            Self::Post(PostError::Bytes(_)) => vec!["size", "operation"],
            Self::Post(_) => vec!["batch", "style", "operation"],
        }
    }
}

impl Request {
    /// A setting.
    ///
    /// # Panics
    /// If there is none of this name, which is a fault of the simulator.
    fn setting(&self, name: &str) -> Setting {
        let found = self.settings.iter().find(|(other, _)| *other == name);
        found.expect("a setting of the table").1
    }

    /// The entry that a setting names in a model's list.
    pub(super) fn choose<T: Copy>(
        &self,
        name: &'static str,
        among: &[(&'static str, T)],
    ) -> Result<T, Refusal> {
        let value = if let Setting::Choice(value) = self.setting(name) { value } else { "" };
        let found = among.iter().find(|(other, _)| *other == value);
        found.map(|(_, entry)| *entry).ok_or_else(|| {
            let known: Vec<_> = among.iter().map(|(name, _)| *name).collect();
            Refusal::Choice { setting: name, value, known: known.join(", ") }
        })
    }

    /// A number; zero for any other setting.
    pub(super) fn number(&self, name: &str) -> u32 {
        let Setting::Number(number) = self.setting(name) else { return 0 };
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// A span of time; zero for any other setting.
    pub(super) fn time(&self, name: &str) -> Time {
        if let Setting::Time(time) = self.setting(name) { time } else { Time::ZERO }
    }

    /// A clock.
    ///
    /// # Panics
    /// If the setting is no rate of a clock, which is a fault of the simulator.
    pub(super) fn clock(&self) -> Clock {
        let hertz = if let Setting::Number(hertz) = self.setting("clock") { hertz } else { 0 };
        Clock::new(hertz).expect("a rate of the table's range")
    }
}

//! The parameters of scenarios: the one list that the reader of files, `ayre sim list` and the
//! checks use.
mod interface;
mod network;
mod script;
mod work;

use super::value::Kind;
use core::fmt;

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in a file.
    pub name: &'static str,
    /// The part of the simulated system that it belongs to.
    pub group: &'static str,
    /// Its values.
    pub kind: Kind,
    /// Its value where a file does not give it.
    pub default: Default,
    /// Its meaning.
    pub meaning: &'static str,
    /// Where the default value comes from.
    pub source: &'static str,
    /// The values of other parameters, one of each list, with which this one is used.
    pub needs: &'static [Need],
}

/// Another parameter, and the values of it with which one is used.
pub type Need = (&'static str, &'static [&'static str]);

/// The value of a parameter that a file does not give.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// One value.
    Fixed(&'static str),
    /// It follows from the choice that another parameter has.
    By {
        /// The other parameter.
        key: &'static str,
        /// Choices, with the value for them.
        cases: &'static [(&'static [&'static str], &'static str)],
        /// The value for all other choices.
        other: &'static str,
    },
}

impl Default {
    /// The value, where `choice` gives the choices of other parameters.
    pub fn value<'a>(&self, choice: impl FnOnce(&'static str) -> &'a str) -> &'static str {
        match *self {
            Self::Fixed(text) => text,
            Self::By { key, cases, other } => {
                let choice = choice(key);
                let case = cases.iter().find(|(choices, _)| choices.contains(&choice));
                case.map_or(other, |(_, text)| text)
            }
        }
    }
}

/// Cases that are told at most.
const CASES_TOLD: usize = 6;

/// Tells the value, or all of them with their cases if these are few.
impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fixed(text) => f.write_str(text),
            Self::By { key, cases, other } if cases.len() > CASES_TOLD => {
                write!(f, "{other}, or by {key}")
            }
            Self::By { key, cases, other } => {
                let case =
                    |(choices, text): &(&[&str], &str)| format!("{text} ({})", choices.join(", "));
                let cases: Vec<_> = cases.iter().map(case).collect();
                write!(f, "{other}, or by {key}: {}", cases.join(", "))
            }
        }
    }
}

/// Work that needs a network.
const NETWORK: Need = ("work", &["packets", "goal", "script"]);
/// Work of a single network interface.
const INTERFACE: Need = ("work", &["interface"]);
const OURS: &str = "our choice";
const FORTH: &str = "FORTH prototype, 2006: 8 x 8 buffered crossbar";

/// Topologies of one switch.
pub(super) const ONE_SWITCH: &[&str] = &["star", "switch"];

/// All parameters.
pub const KEYS: &[Key] = &{
    let tables = [network::KEYS, work::KEYS, interface::KEYS, script::KEYS];
    const NUMBER: usize =
        network::KEYS.len() + work::KEYS.len() + interface::KEYS.len() + script::KEYS.len();
    let mut all = [network::KEYS[0]; NUMBER];
    let (mut at, mut table, mut place) = (0, 0, 0);
    while at < NUMBER {
        if place == tables[table].len() {
            (table, place) = (table + 1, 0);
        } else {
            all[at] = tables[table][place];
            (at, place) = (at + 1, place + 1);
        }
    }
    all
};

/// The place of a parameter in [`KEYS`].
///
/// # Panics
/// If there is no parameter of this name, which is a fault of the simulator.
pub(super) fn index(name: &str) -> usize {
    KEYS.iter().position(|key| key.name == name).expect("a parameter of the table")
}

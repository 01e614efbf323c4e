//! Scenarios: a file says which network, which load, and how long; lists in it make a sweep.
//!
//! An empty file is a scenario, too: [`KEYS`] has the value of each parameter that a file does not
//! give, with its meaning and its range.
//!
//! ```
//! use ayre_sim::scenario::Scenario;
//!
//! let scenario = Scenario::from_toml(
//!     r#"
//!     topology = "torus"
//!     sides = "4x4"
//!     rate = "10 GB/s"
//!     width = "16 B"
//!     load = [0.1, 0.3]
//!     packets = 2000
//!     warmup = 500
//!     "#,
//! )?;
//! let results = scenario.run();
//! for point in &results.points {
//!     let delay = point.delay_ns;
//!     println!("load {}: {:.0} ns +- {:.0}", point.swept[0].1, delay.mean, delay.half_width);
//! }
//! # assert_eq!(results.points.len(), 2);
//! # assert!(results.points[0].delay_ns.mean < results.points[1].delay_ns.mean);
//! # Ok::<(), ayre_sim::scenario::ScenarioError>(())
//! ```
mod file;
mod goal;
mod interface;
mod nearest;
mod plan;
mod run;
mod script;
mod table;
pub mod units;
mod value;
mod work;

pub use file::{FILE_MAX, Place, Problem, ScenarioError};
pub use goal::Goal;
pub use interface::Trial;
pub use plan::Plan;
pub use run::Watch;
pub use script::{Script, ScriptError, ScriptFault, ScriptWork};
pub use table::{Default, KEYS, Key, Need};
pub use value::{Kind, SATURATION, Value, ValueError};

use crate::interface::Model;
use file::{Given, Setting};
use plan::Values;

/// Points of a sweep at most.
pub const POINTS_MAX: u64 = 10_000;

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The names of the parameters with several values.
    swept: Vec<&'static str>,
    points: Vec<Values>,
}

impl Scenario {
    /// Reads a scenario, and checks all of its points.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        Self::read("scenario", text, &[] as &[&str])
    }

    /// Reads a scenario from the text of a file with this name. Arguments `key=value` take the
    /// place of what the file says.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn read<A: AsRef<str>>(
        file: &str,
        text: &str,
        arguments: &[A],
    ) -> Result<Self, ScenarioError> {
        let mut settings = file::read(file, text)?;
        for argument in arguments {
            let setting = file::argument(argument.as_ref())?;
            settings.retain(|other| other.key != setting.key);
            settings.push(setting);
        }
        let points = product(&settings)?;
        for setting in &settings {
            let key = &KEYS[setting.key];
            if !points.iter().any(|values| values.uses(key)) {
                let needs = key.needs_text();
                let problem = Problem::Unused { key: key.name, needs };
                return Err(ScenarioError::new(setting.place.clone(), problem));
            }
        }
        for values in &points {
            values.check()?;
        }
        let swept = settings.iter().filter(|setting| setting.values.len() > 1);
        Ok(Self { swept: swept.map(|setting| KEYS[setting.key].name).collect(), points })
    }

    /// The names of the parameters with several values: none, if this is one point.
    pub fn swept(&self) -> &[&'static str] {
        &self.swept
    }

    /// This scenario, if it has one point.
    ///
    /// # Errors
    /// [`Problem::Sweep`] names the first list.
    pub fn one_point(self) -> Result<Self, ScenarioError> {
        match self.swept.first() {
            Some(name) => Err(self.points[0].fail(&[name], Problem::Sweep(name))),
            None => Ok(self),
        }
    }

    /// The packets that all points and replicas deliver if nothing ends them before, those of the
    /// warm-up included: a [`Watch`] is told of as many.
    pub fn packets(&self) -> u64 {
        self.points.iter().map(Values::packets).sum()
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is no point, which is never so.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The network and work of a point.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn plan(&self, point: usize) -> Plan {
        self.points[point].plan().expect("it was checked when it was read")
    }
}

/// All combinations of the values of the settings. The last list varies fastest.
fn product(settings: &[Setting]) -> Result<Vec<Values>, ScenarioError> {
    let mut points: Vec<Vec<Option<Given>>> = vec![vec![None; KEYS.len()]];
    for setting in settings {
        let number = points.len() as u64 * setting.values.len() as u64;
        if number > POINTS_MAX {
            let problem = Problem::ManyPoints(number);
            return Err(ScenarioError::new(setting.place.clone(), problem));
        }
        let with = |point: &Vec<Option<Given>>, value: &Given| {
            let mut point = point.clone();
            point[setting.key] = Some(value.clone());
            point
        };
        points = points
            .iter()
            .flat_map(|point| setting.values.iter().map(move |value| with(point, value)))
            .collect();
    }
    Ok(points.iter().map(|given| Values::new(given)).collect())
}

impl Key {
    /// The values of other parameters with which this one is used.
    pub fn needs_text(&self) -> String {
        let one = |(name, values): &Need| format!("{name} = {}", values.join(" or "));
        self.needs.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Whether it is a parameter of a model of an interface.
    pub fn is_of(&self, model: &Model) -> bool {
        let mut operations = model.operations.iter().map(|operation| operation.name);
        let is_met = |(name, values): &Need| match *name {
            "work" => values.contains(&"interface"),
            "interface" => values.contains(&model.name),
            "operation" => operations.any(|operation| values.contains(&operation)),
            other => KEYS[table::index(other)].is_of(model),
        };
        !self.needs.is_empty() && self.needs.iter().all(is_met)
    }
}

#[cfg(test)]
mod tests;

//! A single network interface as the work of a scenario.
use crate::interface::{Bench, Measured, Model, Refusal, Request};
use crate::machine::Label;
use crate::report::{Interface, UnitLoad};

/// An operation of a model.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The model.
    pub model: &'static Model,
    /// The operation, and all settings.
    pub request: Request,
}

impl Trial {
    /// Builds it.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn bench(&self) -> Result<Bench, Refusal> {
        self.model.bench(&self.request)
    }

    /// Measures it.
    ///
    /// # Panics
    /// If no scenario made it: a scenario has built it before.
    pub(super) fn run(&self) -> Interface {
        let Measured { latency, parts, rate, busy } = self.sound().measure();
        Interface {
            latency_ps: latency.0,
            parts_ps: parts.iter().map(|(part, time)| (part.0.to_owned(), time.0)).collect(),
            rate,
            bandwidth: rate * f64::from(self.request.size),
            units: busy.into_iter().map(load).collect(),
        }
    }

    /// The machines that a scenario has built before.
    ///
    /// # Panics
    /// If no scenario made it.
    pub(super) fn sound(&self) -> Bench {
        self.bench().expect("it was built when the scenario was read")
    }
}

fn load(((place, unit), busy): (Label, f64)) -> UnitLoad {
    UnitLoad { place: place.to_owned(), unit: unit.to_owned(), busy }
}

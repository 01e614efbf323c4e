//! Models of single network interfaces, each with the operations that it can do.
//!
//! ```text
//!   Request: operation, size, settings --build of a Model--> Bench --measure--> Measured
//!                                       units, courses of one     latency, its parts,
//!                                       operation and of many     rate, busy units
//! ```
//!
//! A model joins by its entry in [`MODELS`]. It makes a [`Bench`] of a [`Request`], and everything
//! else is done here, for all models alike.
mod ayre;
mod bench;
mod bus;
mod dart;
mod extoll;
mod forth;
mod grim;
mod request;
mod whtra;

pub use bench::{Bench, Measured, Setup, WAITING};
pub use request::{Refusal, Request, Setting};

/// A model.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The thing that it is a model of.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// The operations; a request that names none means the first one.
    pub operations: &'static [Operation],
    /// Builds the machines of a request.
    build: fn(&Request) -> Result<Bench, Refusal>,
}

/// An operation of a model.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Its effect, and the section of the source.
    pub meaning: &'static str,
    /// The fewest bytes that it can move, and the most.
    pub sizes: (u32, u32),
}

/// An entry of a model's list of operations.
const fn operation(name: &'static str, meaning: &'static str, sizes: (u32, u32)) -> Operation {
    Operation { name, meaning, sizes }
}

/// All models.
pub const MODELS: &[Model] = &[
    extoll::MODEL,
    forth::MODEL,
    dart::MODEL,
    dart::EMULATION,
    grim::MODEL,
    whtra::XD1000,
    whtra::HT3,
    whtra::BRIDGE,
    bus::MODEL,
    ayre::MODEL,
];

impl Model {
    /// The model of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MODELS.iter().find(|model| model.name == name)
    }

    /// Builds what a request asks for.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn bench(&self, request: &Request) -> Result<Bench, Refusal> {
        let known = || self.operations.iter().map(|operation| operation.name);
        let operation = self.operations.iter().find(|other| other.name == request.operation);
        let Some(operation) = operation else {
            let known = known().collect::<Vec<_>>().join(", ");
            let (model, operation) = (self.name, request.operation);
            return Err(Refusal::Operation { model, operation, known });
        };
        let (least, most) = operation.sizes;
        if !(least..=most).contains(&request.size) {
            let (operation, size) = (operation.name, request.size);
            return Err(Refusal::Size { operation, size, least, most });
        }
        (self.build)(request)
    }
}

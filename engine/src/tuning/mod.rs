//! The method by which bytes are moved, by their number: cut-offs measured on a machine.
//!
//! ```text
//!   measured:  1K 2K ... 512K 1M ... 16M         a file, or a program's own
//!                 |  the fastest of each size       |
//!                 '--> [{ from, method }, ...] <----'
//!                        one look for each operation that is long enough
//! ```
mod caches;
mod choices;
#[cfg(feature = "tuning")]
mod file;
mod rings;
mod trials;

pub(crate) use caches::{stream_width, width_in_turns};
pub(crate) use choices::{Choices, Chosen};
pub(crate) use rings::{Rings, Share, are_few};
use trials::{ROUND, Trials};

#[cfg(feature = "tuning")]
pub use file::{ActiveTuning, TuningError, TuningOrigin, active, file_of_user};

/// The cut-offs of a port whose program has not set any.
///
/// # Errors
/// As [`active`]. Without the feature `tuning` no file is read, and the cut-offs are built in.
pub(crate) fn of_user() -> Result<Tuning, crate::error::SetupError> {
    #[cfg(feature = "tuning")]
    let tuning = active()?.tuning;
    #[cfg(not(feature = "tuning"))]
    let tuning = Tuning::new();
    Ok(tuning)
}

/// A method to move bytes.
// spec: INJ-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "tuning", derive(serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Method {
    /// An ordinary copy, through the caches.
    Cached,
    /// A copy with non-temporal stores, past the caches.
    Streaming,
    /// Pieces through memory that both sides share: two copies, which overlap in time.
    Pipeline,
    /// One copy, which the kernel makes for the receiver from the sender's memory.
    Kernel,
}

impl Method {
    /// The method's name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Streaming => "streaming",
            Self::Pipeline => "pipeline",
            Self::Kernel => "kernel",
        }
    }
}

/// A use: an operation whose method depends on its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// A put of the program's bytes to a peer's memory, on a direct connection.
    Put,
    /// A get into the program's bytes, on a direct connection.
    Get,
    /// A long active message between processes of one host, on a direct connection.
    Message,
    /// A matched message of an endpoint that waits for its receive, between processes of one host.
    /// Without steps, each endpoint measures which method is the fastest.
    Receive,
}

impl Use {
    /// All uses, in the order of the file.
    pub const ALL: [Self; 4] = [Self::Put, Self::Get, Self::Message, Self::Receive];

    /// The uses that `ayre tune` measures.
    pub const MEASURED: [Self; 3] = [Self::Put, Self::Get, Self::Message];

    /// The use's name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Message => "message",
            Self::Receive => "receive",
        }
    }

    /// The methods that the use has. The first one is the default where nothing was measured.
    // spec: INJ-2
    pub const fn methods(self) -> &'static [Method] {
        match self {
            Self::Put | Self::Get => &[Method::Cached, Method::Streaming],
            Self::Message | Self::Receive => &[Method::Pipeline, Method::Kernel],
        }
    }
}

/// A step: from this number of bytes on, this method is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "tuning", derive(serde::Deserialize), serde(deny_unknown_fields))]
pub struct Step {
    /// The least number of bytes.
    pub from: u64,
    /// The method from there on.
    pub method: Method,
}

/// The time of each method of a use, for operations of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The size of the operations in bytes.
    pub bytes: u64,
    /// Nanoseconds per operation. A method that is not available here is left out.
    pub times: Vec<(Method, f64)>,
}

/// A method is chosen over the default only if it takes at most this share of the default's time: a
/// smaller difference is noise.
const NOISE: f64 = 0.97;
/// The largest number of steps of a use.
const STEPS_MAX: usize = 16;

impl Measured {
    /// The fastest method, or the use's first one if the difference is only noise.
    // spec: INJ-5
    pub fn best(&self, of: Use) -> Method {
        let first = of.methods()[0];
        let weigh = |&(method, time): &(Method, f64)| match method == first {
            true => time * NOISE,
            false => time,
        };
        let best = self.times.iter().min_by(|a, b| weigh(a).total_cmp(&weigh(b)));
        best.map_or(first, |(method, _)| *method)
    }
}

/// The cut-offs of all uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    steps: [Vec<Step>; Use::ALL.len()],
}

impl Tuning {
    /// The built-in cut-offs: the first method of each use, for all sizes.
    pub const fn new() -> Self {
        Self { steps: [const { Vec::new() }; Use::ALL.len()] }
    }

    /// The steps of a use, in ascending order of bytes.
    pub fn steps(&self, of: Use) -> &[Step] {
        &self.steps[of as usize]
    }

    /// Sets the steps of a use.
    ///
    /// # Errors
    /// A text: the steps are not ascending, or too many, or name a method that the use does not
    /// have.
    // spec: INJ-2
    pub fn with_steps(mut self, of: Use, steps: Vec<Step>) -> Result<Self, &'static str> {
        if steps.len() > STEPS_MAX {
            return Err("more than 16 steps");
        }
        if !steps.is_sorted_by(|before, after| before.from < after.from) {
            return Err("steps are not in the order of their sizes");
        }
        if steps.iter().any(|step| !of.methods().contains(&step.method)) {
            return Err("a method that this use does not have");
        }
        self.steps[of as usize] = steps;
        Ok(self)
    }

    /// Sets the steps of a use from measurements in ascending order of sizes. A step begins at each
    /// size whose best method differs from that of the size before.
    // spec: INJ-5
    pub fn with_measured(mut self, of: Use, rows: &[Measured]) -> Self {
        let mut last = of.methods()[0];
        let mut steps = Vec::new();
        for row in rows {
            let method = row.best(of);
            if method != last && steps.len() < STEPS_MAX {
                steps.push(Step { from: row.bytes, method });
                last = method;
            }
        }
        self.steps[of as usize] = steps;
        self
    }

    /// The method for this number of bytes, if the use has steps.
    // spec: INJ-2
    pub(crate) fn said(&self, of: Use, bytes: u64) -> Option<Method> {
        (!self.steps(of).is_empty()).then(|| self.method(of, bytes))
    }

    /// The method for this number of bytes; the use's first one where it has no steps.
    // spec: INJ-2
    #[inline]
    pub fn method(&self, of: Use, bytes: u64) -> Method {
        let steps = self.steps[of as usize].iter();
        let step = steps.rev().find(|step| step.from <= bytes);
        step.map_or_else(|| of.methods()[0], |step| step.method)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use Method::{Cached, Kernel, Pipeline, Streaming};

    fn row(bytes: u64, cached: f64, streaming: f64) -> Measured {
        Measured { bytes, times: vec![(Cached, cached), (Streaming, streaming)] }
    }

    // spec: INJ-5
    #[test]
    fn each_size_has_the_method_that_was_fastest() {
        let rows = [
            row(1024, 100.0, 300.0),
            row(2048, 200.0, 150.0),
            row(4096, 400.0, 300.0),
            row(8192, 800.0, 900.0),
            row(16384, 1600.0, 1590.0),
            row(32768, 3200.0, 2000.0),
        ];
        let tuning = Tuning::new().with_measured(Use::Put, &rows);
        for row in &rows {
            let fastest = row.times.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            // One percent is noise, and no reason to leave the default.
            let expected = if row.bytes == 16384 { Cached } else { fastest.0 };
            assert_eq!(tuning.method(Use::Put, row.bytes), expected, "{}", row.bytes);
        }
        let between = [(0, Cached), (2047, Cached), (4095, Streaming), (9000, Cached)];
        for (bytes, method) in between.into_iter().chain([(u64::MAX, Streaming)]) {
            assert_eq!(tuning.method(Use::Put, bytes), method, "{bytes}");
        }
        assert_eq!(tuning.method(Use::Get, 32768), Cached, "nothing was measured");
    }

    // spec: INJ-2, INJ-5
    #[test]
    fn an_unsuitable_method_is_never_chosen() {
        let row = Measured { bytes: 1 << 20, times: vec![(Pipeline, 5.0)] };
        assert_eq!(row.best(Use::Message), Pipeline);
        assert_eq!(Measured { bytes: 1, times: vec![] }.best(Use::Get), Cached);
        let with = |steps: &[Step]| Tuning::new().with_steps(Use::Put, steps.to_vec());
        let step = |from, method| Step { from, method };
        assert!(with(&[step(5, Streaming), step(9, Cached)]).is_ok());
        assert!(with(&[step(5, Kernel)]).is_err());
        assert!(with(&[step(5, Streaming), step(5, Cached)]).is_err());
        let many: Vec<_> = (0..17).map(|at| step(at, Streaming)).collect();
        assert!(with(&many[..16]).is_ok() && with(&many).is_err());
    }
}

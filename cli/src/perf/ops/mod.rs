//! Ayre's operations as cases. They use the library as a program would, and wait as most programs
//! do: poll, pause, poll again.

use anyhow::Result;
use ayre::PostError;

use super::case::RawKind;
use super::case::{Metric, Path};
use super::side::spin::spin_until;

pub(crate) mod active;
pub(crate) mod carrier;
pub(crate) mod collective;
pub(crate) mod crowd;
pub(crate) mod deposit;
pub(crate) mod multicast;
pub(crate) mod pair;
pub(crate) mod poll;
pub(crate) mod single;
pub(crate) mod two_sided;
pub(crate) mod wake;

/// The text of a case in the report, and the limit to which it is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) path: Path,
    pub(crate) metric: Metric,
    pub(crate) sizes: &'static [usize],
    pub(crate) raw: RawKind,
    /// See [`super::case::Case::raw_steps`].
    pub(crate) raw_steps: u64,
}

impl Label {
    /// This operation, executed in this way.
    pub(crate) const fn on(self, path: Path) -> Self {
        Self { path, ..self }
    }
}

/// The part of `impl Case` that a label answers.
macro_rules! labelled {
    () => {
        fn name(&self) -> &'static str {
            self.label.name
        }

        fn path(&self) -> Path {
            self.label.path
        }

        fn sizes(&self) -> &'static [usize] {
            self.label.sizes
        }

        fn metric(&self) -> Metric {
            self.label.metric
        }

        fn raw(&self, _size: usize) -> Option<RawKind> {
            Some(self.label.raw)
        }

        fn raw_steps(&self) -> u64 {
            self.label.raw_steps
        }
    };
}
use labelled;

/// Polls until `attempt` succeeds or fails for good.
#[inline(always)]
pub(crate) fn poll_until(mut attempt: impl FnMut() -> Result<bool>) -> Result<()> {
    let mut outcome = Ok(());
    spin_until(|| match attempt() {
        Ok(done) => done,
        Err(error) => {
            outcome = Err(error);
            true
        }
    });
    outcome
}

/// Whether an operation was posted; not where there is no room for it yet.
#[inline(always)]
pub(crate) fn posted<T>(result: Result<T, PostError>) -> Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(PostError::Busy(_)) => Ok(false),
        Err(PostError::Fault(fault)) => Err(fault.into()),
    }
}

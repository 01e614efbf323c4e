//! Exceptions that signals and handlers raise while a call of the engine runs.
use crate::error::Outcome;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exceptions that were raised while a call ran.
#[derive(Debug, Default)]
pub(crate) struct Signals(Mutex<Raised>);

#[derive(Debug, Default)]
struct Raised {
    /// Of a signal: it ends the call early.
    by_signal: Option<PyErr>,
    /// Of a handler: its call does what it was to do first.
    by_handler: Option<PyErr>,
}

impl Signals {
    /// Whether a signal has raised an exception. Runs the handlers of Python if this is the main
    /// thread.
    pub(crate) fn look(&self) -> bool {
        // A handler of a signal may call the port, whose calls look here.
        match Python::try_attach(|py| py.check_signals()) {
            Some(Ok(())) => self.raised().by_signal.is_some(),
            Some(Err(error)) => {
                self.raised().by_signal = Some(error);
                true
            }
            // The interpreter ends.
            None => true,
        }
    }

    /// Keeps the exception of a handler, which the call that ran it raises in the end. A later one
    /// goes to `sys.unraisablehook`. An exception that ends programs, as KeyboardInterrupt does,
    /// counts as a signal's.
    pub(crate) fn keep(&self, py: Python<'_>, error: PyErr, handler: &Bound<'_, PyAny>) {
        let mut raised = self.raised();
        let Raised { by_signal, by_handler } = &mut *raised;
        let ends = !error.is_instance_of::<PyException>(py);
        let kept = if ends { by_signal } else { by_handler };
        if kept.is_none() {
            *kept = Some(error);
            return;
        }
        drop(raised);
        error.write_unraisable(py, Some(handler));
    }

    /// Raises what was raised, the exception of a signal first.
    pub(crate) fn take(&self) -> Outcome<()> {
        let Raised { by_signal, by_handler } = std::mem::take(&mut *self.raised());
        by_signal.or(by_handler).map_or(Ok(()), |error| Err(error.into()))
    }

    fn raised(&self) -> MutexGuard<'_, Raised> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

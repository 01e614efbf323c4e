//! Where completions come from: the side of the data path that queues and counters see.

use crate::error::Outcome;
use crate::object::wait::Wait;
use ayre_guest::cell::{Guard, Policy};
use rustix::fd::BorrowedFd;
use std::sync::Arc;

/// Something that moves data when it is given time: the engine behind an endpoint.
///
/// An endpoint hands one to every queue and counter that is bound to it.
pub(crate) trait Source: Send + Sync + 'static {
    /// Takes in what has arrived and sends what can go; completions are written into queues and
    /// counters on the way. Never blocks. May be called by several threads at a time, unless the
    /// domain is a serial one. Whether anything may have been written.
    fn progress(&self) -> bool;

    /// The program is about to sleep: the descriptor is to become readable when progress would
    /// find something. False if progress is due now.
    fn arm(&self) -> bool {
        true
    }

    /// The descriptor that becomes readable, for sleepers.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The sources that calls on a queue or a counter give time to.
pub(crate) struct Sources<L: Policy> {
    all: L::Cell<Vec<Arc<dyn Source>>>,
}

impl<L: Policy> Sources<L> {
    pub(crate) fn new() -> Self {
        Self { all: L::cell(Vec::new()) }
    }

    /// Adds a source. A sleeper in `wait` wakes for it, too.
    ///
    /// # Errors
    /// The system's code where the source cannot be slept for.
    pub(crate) fn add(&self, source: &Arc<dyn Source>, wait: Option<&Wait>) -> Outcome {
        if let (Some(wait), Some(descriptor)) = (wait, source.descriptor()) {
            wait.watch(descriptor)?;
        }
        self.all.with(|all| {
            if !all.iter().any(|known| Arc::ptr_eq(known, source)) {
                all.push(Arc::clone(source));
            }
        });
        Ok(())
    }

    /// The source goes; what it has written stays.
    pub(crate) fn remove(&self, source: &Arc<dyn Source>) {
        self.all.with(|all| all.retain(|known| !Arc::ptr_eq(known, source)));
    }

    /// Gives time to all; whether any has written something.
    #[inline(always)]
    pub(crate) fn progress(&self) -> bool {
        self.all.with(|all| match &**all {
            [one] => one.progress(),
            all => progress_of(all),
        })
    }

    /// Whether all of them let the program sleep.
    pub(crate) fn arm(&self) -> bool {
        self.all.with(|all| all.iter().all(|source| source.arm()))
    }
}

#[inline(never)]
fn progress_of(sources: &[Arc<dyn Source>]) -> bool {
    sources.iter().fold(false, |any, source| any | source.progress())
}

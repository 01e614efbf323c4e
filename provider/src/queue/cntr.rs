//! Counters: of operations that have ended well, and of those that have failed.

use crate::abi::errno;
use crate::error::{Code, Outcome};
use crate::object::registry::{Body, Entity};
use crate::object::wait::{POLLED, Wait, Waitable, block, deadline};
use crate::queue::sources::Sources;
use crate::queue::wait_set::Attachment;
use ayre_guest::cell::{Guard, Policy};
use std::ffi::c_int;
use std::sync::Arc;

/// The values of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) value: u64,
    pub(crate) errors: u64,
}

#[derive(Debug, Default)]
struct State {
    now: Count,
    /// When somebody last looked by polling, waited, or set it.
    seen: Count,
    is_armed: bool,
}

/// A counter.
pub(crate) struct Cntr<L: Policy> {
    state: L::Cell<State>,
    /// The sources of data: each endpoint adds one when it is bound.
    pub(crate) sources: Sources<L>,
    wait: Option<Attachment>,
    pub(crate) domain: Arc<dyn Entity>,
}

impl<L: Policy> Cntr<L> {
    pub(crate) fn new(domain: Arc<dyn Entity>, wait: Option<Attachment>) -> Self {
        let state = L::cell(State::default());
        Self { state, sources: Sources::new(), wait, domain }
    }

    /// Changes the count and wakes the threads that wait for that.
    #[inline]
    pub(crate) fn change(&self, f: impl FnOnce(&mut Count)) {
        let must_ring = self.state.with(|state| {
            f(&mut state.now);
            std::mem::take(&mut state.is_armed)
        });
        if must_ring {
            self.ring();
        }
    }

    /// Wakes those who sleep.
    pub(crate) fn ring(&self) {
        if let Some(wait) = self.wait() {
            wait.ring();
        }
    }

    /// The program changes the count: it is not news to it.
    pub(crate) fn adjust(&self, f: impl FnOnce(&mut Count)) {
        self.change(f);
        self.state.with(|state| state.seen = state.now);
    }

    /// The count after what progress has brought.
    #[inline]
    pub(crate) fn read(&self) -> Count {
        self.sources.progress();
        self.state.with(|state| state.now)
    }

    /// Waits until the value is at least `threshold`; a counter that was opened without anything
    /// to wait with is polled until then.
    ///
    /// # Errors
    /// `EAVAIL` when an operation fails meanwhile, `ETIMEDOUT` when time is up, `EINTR` when a
    /// signal has come, `EINVAL` where the counter waits with others in a set.
    pub(crate) fn wait_for(&self, threshold: u64, milliseconds: c_int) -> Outcome {
        let wait = match &self.wait {
            Some(attachment) => attachment.own().ok_or(Code::INVALID)?,
            None => &POLLED,
        };
        let errors = self.state.with(|state| state.now.errors);
        let judge = |now: Count| match now {
            now if now.value >= threshold => Some(Ok(())),
            now if now.errors != errors => Some(Err(Code(errno::EAVAIL))),
            _ => None,
        };
        let arm = || self.arm_if(|state| judge(state.now).is_none());
        let until = (deadline(milliseconds), Code(errno::ETIMEDOUT));
        block(wait, until, || judge(self.read()), arm)?
    }

    /// Has the bell rung for the next change, if there is nothing to do yet.
    fn arm_if(&self, is_idle: impl FnOnce(&State) -> bool) -> bool {
        let sources_sleep = self.sources.arm();
        self.state.with(|state| {
            let is_idle = is_idle(state);
            state.is_armed |= is_idle;
            is_idle && sources_sleep
        })
    }

    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        self.wait.as_ref()
    }

    /// Whether the count is another than when this was last asked.
    pub(crate) fn has_changed(&self) -> bool {
        self.sources.progress();
        self.state.with(|state| std::mem::replace(&mut state.seen, state.now) != state.now)
    }
}

impl<L: Policy> Waitable for Cntr<L> {
    fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref().map(Attachment::wait)
    }

    fn look(&self) -> bool {
        self.has_changed()
    }

    fn arm(&self) -> bool {
        self.arm_if(|state| state.now == state.seen)
    }
}

impl<L: Policy> Body for Cntr<L> {
    fn waitable(&self) -> Option<&dyn Waitable> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::WAIT_UNSPEC;
    use crate::object::registry::tests::owner;
    use crate::sys::threads::Serial;
    use ayre_guest::cell::Shared;
    use std::thread;

    /// Milliseconds after which a sleeper that nobody has woken fails its test.
    const PATIENCE: c_int = 60_000;

    fn counter<L: Policy>(wait: u32) -> Cntr<L> {
        Cntr::new(owner(), Attachment::open(wait, std::ptr::null()).unwrap())
    }

    fn counts<L: Policy>() {
        let counter = counter::<L>(0);
        counter.change(|count| count.value += 3);
        counter.change(|count| count.errors += 1);
        assert_eq!(counter.read(), Count { value: 3, errors: 1 });
        assert!(counter.has_changed() && !counter.has_changed());
        counter.adjust(|count| count.value = 9);
        assert!(!counter.has_changed());
        assert_eq!(counter.wait_for(9, -1), Ok(()));
        assert_eq!(counter.wait_for(10, 1), Err(Code(errno::ETIMEDOUT)));
    }

    #[test]
    fn it_counts_under_both_policies() {
        counts::<Shared>();
        counts::<Serial>();
    }

    #[test]
    fn a_threshold_and_a_failure_wake_all_sleepers() {
        for fails in [false, true] {
            let counter = counter::<Shared>(WAIT_UNSPEC);
            thread::scope(|scope| {
                let sleepers = [(); 3].map(|()| scope.spawn(|| counter.wait_for(5, PATIENCE)));
                (0..4).for_each(|_| counter.change(|count| count.value += 1));
                if fails {
                    // Only who waits already is told of a failure: so it goes on happening.
                    while !sleepers.iter().all(|sleeper| sleeper.is_finished()) {
                        counter.change(|count| count.errors += 1);
                    }
                } else {
                    counter.change(|count| count.value += 1);
                }
                let wanted = if fails { Err(Code(errno::EAVAIL)) } else { Ok(()) };
                for sleeper in sleepers {
                    assert_eq!(sleeper.join().unwrap(), wanted);
                }
            });
        }
    }

    #[test]
    fn time_runs_out() {
        let counter = counter::<Shared>(WAIT_UNSPEC);
        assert_eq!(counter.wait_for(1, 3), Err(Code(errno::ETIMEDOUT)));
        counter.change(|count| count.value += 1);
        assert_eq!(counter.wait_for(1, 0), Ok(()));
    }
}

//! Cells for the state of objects: with a lock, or, where the program has promised to keep its
//! threads apart, without.
//!
//! The policy is chosen once, when a domain is opened. Each policy makes a set of function tables:
//! the calls themselves do not ask.

use ayre::guest::Biased;
use std::cell::UnsafeCell;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Looks of our thread whether a call of the program's is over.
const LOOKS: u32 = 100;

/// How the objects of a domain are kept from being used by two threads at a time.
pub(crate) trait Policy: Send + Sync + 'static {
    /// Where state is kept.
    type Cell<T: Send + 'static>: Guard<T>;

    /// Where state is kept that the domain's own thread uses, too.
    type Visited<T: Send + 'static>: Visit<T>;

    /// The domain's own thread may use other cells while it uses a visited one.
    const IS_SHARED: bool;

    /// The calls on the objects are recorded.
    const IS_RECORDED: bool = false;
}

/// State that one thread uses at a time.
pub(crate) trait Guard<T>: Send + Sync + 'static {
    fn new(value: T) -> Self;

    /// Runs `f` on the state. It must not come back to the same cell.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

/// State that a thread of ours uses in the program's absence.
pub(crate) trait Visit<T>: Guard<T> {
    /// That thread may come from here on.
    fn admit(&self);

    /// It comes: runs `f` on the state, unless a call of the program's does so just now.
    fn visit<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R>;
}

/// Any thread may make any call at any time.
#[derive(Debug)]
pub(crate) enum Shared {}

/// The program makes one call at a time on the objects of a domain: `FI_THREAD_DOMAIN`.
#[derive(Debug)]
pub(crate) enum Serial {}

/// As [`Shared`], and all calls are recorded.
#[derive(Debug)]
pub(crate) enum Recorded {}

impl Policy for Shared {
    type Cell<T: Send + 'static> = Mutex<T>;
    type Visited<T: Send + 'static> = Mutex<T>;
    const IS_SHARED: bool = true;
}

impl Policy for Serial {
    type Cell<T: Send + 'static> = SerialCell<T>;
    type Visited<T: Send + 'static> = Biased<T>;
    const IS_SHARED: bool = false;
}

impl Policy for Recorded {
    type Cell<T: Send + 'static> = Mutex<T>;
    type Visited<T: Send + 'static> = Mutex<T>;
    const IS_SHARED: bool = true;
    const IS_RECORDED: bool = true;
}

impl<T: Send + 'static> Guard<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // A panic ends the process, so no lock is ever found poisoned.
        f(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Send + 'static> Visit<T> for Mutex<T> {
    fn admit(&self) {}

    fn visit<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        // Most calls are short.
        let free = (0..LOOKS).find_map(|_| match self.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) => {
                std::hint::spin_loop();
                None
            }
        });
        free.map(|mut value| f(&mut value))
    }
}

impl<T: Send + 'static> Guard<T> for Biased<T> {
    fn new(value: T) -> Self {
        // SAFETY: such cells exist in domains only that were opened with FI_THREAD_DOMAIN, by which
        // the program has promised what is asked for here.
        unsafe { Self::new(value) }
    }

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(f)
    }
}

impl<T: Send + 'static> Visit<T> for Biased<T> {
    fn admit(&self) {
        self.admit();
    }

    fn visit<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.visit(f)
    }
}

/// A cell without a lock.
#[derive(Debug)]
pub(crate) struct SerialCell<T> {
    value: UnsafeCell<T>,
    #[cfg(debug_assertions)]
    is_used: std::cell::Cell<bool>,
}

// SAFETY: such cells exist in domains only that were opened with FI_THREAD_DOMAIN, by which the
// program has promised never to be in two calls on one domain's objects at a time. The values are
// `Send`, so each call may be another thread's.
unsafe impl<T: Send> Sync for SerialCell<T> {}

impl<T: Send + 'static> Guard<T> for SerialCell<T> {
    fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            #[cfg(debug_assertions)]
            is_used: std::cell::Cell::new(false),
        }
    }

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(debug_assertions)]
        assert!(!self.is_used.replace(true), "two uses at a time under FI_THREAD_DOMAIN");
        // SAFETY: no other thread is here, see above, and `f` does not come back to this cell,
        // which the assertion has watched over in every test.
        let result = f(unsafe { &mut *self.value.get() });
        #[cfg(debug_assertions)]
        self.is_used.set(false);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count<L: Policy>() -> u32 {
        let cell = L::Cell::new(1);
        cell.with(|value| *value += 1);
        cell.with(|value| *value)
    }

    #[test]
    fn both_kinds_keep_their_value() {
        assert_eq!(count::<Shared>(), 2);
        assert_eq!(count::<Serial>(), 2);
    }

    fn visits<L: Policy>() {
        let cell = L::Visited::new(1);
        cell.admit();
        assert_eq!(cell.with(|value| (*value, cell.visit(|value| *value))), (1, None));
        assert_eq!(cell.visit(|value| std::mem::replace(value, 2)), Some(1));
        assert_eq!(cell.with(|value| *value), 2);
    }

    #[test]
    fn our_thread_comes_only_while_the_program_is_in_no_call() {
        visits::<Shared>();
        visits::<Serial>();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "two uses at a time")]
    fn a_second_use_inside_the_first_is_noticed() {
        let cell = SerialCell::new(0);
        cell.with(|_| cell.with(|value| *value = 1));
    }
}

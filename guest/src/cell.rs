//! Cells for the state of objects: with a lock, or, where the program has promised to keep its
//! threads apart, without.
//!
//! The policy is chosen once, when the program says how it uses threads. A library compiles its
//! calls for each policy, and they do not ask.

use ayre::guest::Biased;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Looks of our thread whether a call of the program's is over.
const LOOKS: u32 = 100;

/// How the objects of a program are kept from being used by two threads at a time.
pub trait Policy: Send + Sync + 'static {
    /// Where state is kept.
    type Cell<T: Send + 'static>: Guard<T>;

    /// Where state is kept that our own thread uses, too.
    type Visited<T: Send + 'static>: Visit<T>;

    /// Our own thread may use other cells while it uses a visited one.
    const IS_SHARED: bool;

    /// The calls on the objects are recorded.
    const IS_RECORDED: bool = false;

    /// A cell with this state.
    fn cell<T: Send + 'static>(value: T) -> Self::Cell<T>;

    /// A cell with this state, for our own thread, too.
    fn visited<T: Send + 'static>(value: T) -> Self::Visited<T>;
}

/// State that one thread uses at a time.
pub trait Guard<T>: Send + Sync + 'static {
    /// Runs `f` on the state. It must not come back to the same cell.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

/// State that a thread of ours uses in the program's absence.
pub trait Visit<T>: Guard<T> {
    /// That thread may come from here on.
    fn admit(&self);

    /// It comes: runs `f` on the state, unless a call of the program's does so just now.
    fn visit<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R>;
}

/// Any thread may make any call at any time.
#[derive(Debug)]
pub enum Shared {}

/// As [`Shared`], and all calls are recorded.
#[derive(Debug)]
pub enum Recorded {}

/// The program makes one call at a time, as `P` says.
#[derive(Debug)]
pub struct Serial<P>(PhantomData<P>);

/// By what a program promises to keep its threads apart.
///
/// # Safety
/// No two calls of [`Guard::with`] on one cell of [`Serial<Self>`] overlap, and one happens before
/// the next: neither those of two threads, nor one within another.
pub unsafe trait Promise: Send + Sync + 'static {}

impl Policy for Shared {
    type Cell<T: Send + 'static> = Mutex<T>;
    type Visited<T: Send + 'static> = Mutex<T>;
    const IS_SHARED: bool = true;

    fn cell<T: Send + 'static>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    fn visited<T: Send + 'static>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl Policy for Recorded {
    type Cell<T: Send + 'static> = Mutex<T>;
    type Visited<T: Send + 'static> = Mutex<T>;
    const IS_SHARED: bool = true;
    const IS_RECORDED: bool = true;

    fn cell<T: Send + 'static>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    fn visited<T: Send + 'static>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl<P: Promise> Policy for Serial<P> {
    type Cell<T: Send + 'static> = SerialCell<T>;
    type Visited<T: Send + 'static> = Biased<T>;
    const IS_SHARED: bool = false;

    fn cell<T: Send + 'static>(value: T) -> SerialCell<T> {
        SerialCell::new(value)
    }

    fn visited<T: Send + 'static>(value: T) -> Biased<T> {
        // SAFETY: the promise of `P`.
        unsafe { Biased::new(value) }
    }
}

impl<T: Send + 'static> Guard<T> for Mutex<T> {
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

/// A cell without a lock, of the policy [`Serial`].
#[derive(Debug)]
pub struct SerialCell<T> {
    value: UnsafeCell<T>,
    #[cfg(debug_assertions)]
    is_used: std::cell::Cell<bool>,
}

// SAFETY: `Serial` alone makes such cells, by whose promise no two threads use one at a time. The
// values are `Send`, so each use may be another thread's.
unsafe impl<T: Send> Sync for SerialCell<T> {}

impl<T> SerialCell<T> {
    fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            #[cfg(debug_assertions)]
            is_used: std::cell::Cell::new(false),
        }
    }
}

impl<T: Send + 'static> Guard<T> for SerialCell<T> {
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(debug_assertions)]
        assert!(!self.is_used.replace(true), "two uses at a time of a cell without a lock");
        // SAFETY: the promise of `Serial`, which the assertion watches over in every test: nobody
        // else is here.
        let result = f(unsafe { &mut *self.value.get() });
        #[cfg(debug_assertions)]
        self.is_used.set(false);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum OneThread {}

    // SAFETY: each test has cells of its own in one thread. The one that uses a cell within a use
    // is there with the assertion only, which comes first.
    unsafe impl Promise for OneThread {}

    fn count<L: Policy>() -> u32 {
        let cell = L::cell(1);
        cell.with(|value| *value += 1);
        cell.with(|value| *value)
    }

    #[test]
    fn both_kinds_keep_their_value() {
        assert_eq!(count::<Shared>(), 2);
        assert_eq!(count::<Serial<OneThread>>(), 2);
    }

    fn visits<L: Policy>() {
        let cell = L::visited(1);
        cell.admit();
        assert_eq!(cell.with(|value| (*value, cell.visit(|value| *value))), (1, None));
        assert_eq!(cell.visit(|value| std::mem::replace(value, 2)), Some(1));
        assert_eq!(cell.with(|value| *value), 2);
    }

    #[test]
    fn our_thread_comes_only_while_the_program_is_in_no_call() {
        visits::<Shared>();
        visits::<Serial<OneThread>>();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "two uses at a time")]
    fn a_second_use_inside_the_first_is_noticed() {
        let cell = SerialCell::new(0);
        cell.with(|_| cell.with(|value| *value = 1));
    }
}

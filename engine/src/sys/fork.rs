//! Forks of a program's process. A child has copies of all the parent's memory, and none of its
//! threads: a lock that another thread held stays locked in the child for ever.
use crate::sync::{Ordering, StaticCounter};
use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The number of forks between this process and the first of its ancestors that has used this
/// library.
static GENERATION: StaticCounter = StaticCounter::new(0);

/// A number that differs from the parent's: objects of another generation belong to an ancestor.
#[inline]
pub fn generation() -> u64 {
    // Relaxed: it changes while the process has one thread.
    GENERATION.load(Ordering::Relaxed)
}

/// Counts this process's forks from now on. Call it before the generation is stored.
pub fn count() {
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| around(None, None, Some(counted)));
}

extern "C" fn counted() {
    // Relaxed: it changes while the process has one thread.
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Registers functions that are called around each fork of this process: before it, and after it in
/// the parent and in the child. Of several registrations, the last one's first function is called
/// first.
pub fn around(
    before: Option<extern "C" fn()>,
    in_parent: Option<extern "C" fn()>,
    in_child: Option<extern "C" fn()>,
) {
    let of = |function: Option<extern "C" fn()>| function.map(|it| it as unsafe extern "C" fn());
    // SAFETY: they are functions, which stay as long as the library does; the C library forgets
    // them when that is unmapped. Without memory for it, forks go unnoticed.
    let _ = unsafe { libc::pthread_atfork(of(before), of(in_parent), of(in_child)) };
}

/// A value of the process under a lock that is free in a forked child.
#[derive(Debug)]
pub struct Shared<T: 'static> {
    value: Mutex<T>,
    /// The guard, held from before a fork until after it by the thread that forks.
    held: UnsafeCell<Option<MutexGuard<'static, T>>>,
}

// SAFETY: `held` is accessed only by the thread that has the lock.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: it moves before it is a static, and only then is anything held.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T: Send> Shared<T> {
    /// A new value, not locked.
    pub const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), held: UnsafeCell::new(None) }
    }

    /// Takes the lock; blocks until it is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.value.try_lock().ok()
    }

    /// Takes the lock before a fork. Call it before each fork.
    pub fn before_fork(&'static self) {
        let guard = self.lock();
        // SAFETY: this thread has the lock.
        unsafe { *self.held.get() = Some(guard) };
    }

    /// Releases the lock after a fork, in the parent and in the child, by the same thread.
    pub fn after_fork(&'static self, change: impl FnOnce(&mut T)) {
        // SAFETY: this thread has the lock, since before the fork.
        let guard = unsafe { (*self.held.get()).take() };
        if let Some(mut value) = guard {
            change(&mut value);
        }
    }
}

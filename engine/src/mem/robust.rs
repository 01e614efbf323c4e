//! Exclusion and sleep between the processes of one program: mutexes of the C library, which tell
//! of their holder's death, and half words at which the system lets threads sleep.
//!
//! All processes that have the memory trust each other: one that writes over a mutex harms all.
use super::fence::Fencing;
use super::map::Mapping;
use crate::error::SetupError;
use crate::sync::{AtomicU32, Ordering};
use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::thread::futex;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a mutex in memory: a line of its own.
pub(crate) const MUTEX_BYTES: usize = 64;

/// The word before a mutex that was made.
const MADE: u64 = u64::from_le_bytes(*b"ayrelock");
/// The place of the mutex behind it.
const MUTEX: usize = 8;

const _: () = assert!(
    MUTEX + size_of::<libc::pthread_mutex_t>() <= MUTEX_BYTES,
    "a mutex has room in its line"
);
const _: () = assert!(align_of::<libc::pthread_mutex_t>() <= MUTEX, "and is aligned there");

/// How a mutex was found when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// No thread held it.
    Free,
    /// Its holder has died: what it guards may be half changed.
    Abandoned,
}

/// A mutex in shared memory. The system releases it when its holder dies.
#[derive(Debug)]
pub(crate) struct Mutex {
    at: NonNull<libc::pthread_mutex_t>,
    _mapping: Arc<Mapping>,
}

// SAFETY: the pointer leads to a mutex in a mapping that this value keeps alive; any thread may
// call the C library's functions on it.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

impl Mutex {
    /// Makes a mutex. Nobody may use its memory for anything else afterwards.
    pub(crate) fn make(mapping: &Arc<Mapping>, offset: u64) -> Result<Self, SetupError> {
        let this = Self::place(mapping, offset);
        let mut kind = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let kind = kind.as_mut_ptr();
        // SAFETY: the attributes are initialised before they are used, and the mutex has room.
        let made = unsafe {
            [
                libc::pthread_mutexattr_init(kind),
                libc::pthread_mutexattr_setpshared(kind, libc::PTHREAD_PROCESS_SHARED),
                libc::pthread_mutexattr_setrobust(kind, libc::PTHREAD_MUTEX_ROBUST),
                libc::pthread_mutexattr_settype(kind, libc::PTHREAD_MUTEX_ERRORCHECK),
                libc::pthread_mutex_init(this.at.as_ptr(), kind),
                libc::pthread_mutexattr_destroy(kind),
            ]
        };
        if let Some(error) = made.into_iter().find(|error| *error != 0) {
            let errno = Errno::from_raw_os_error(error);
            return Err(SetupError::Os { call: "pthread_mutex_init", errno });
        }
        // SHARE-R1: the mutex is made before the word says so.
        mapping.word(offset).store(MADE, Ordering::Release);
        Ok(this)
    }

    /// The mutex at a place; None if none was made there.
    pub(crate) fn made_at(mapping: &Arc<Mapping>, offset: u64) -> Option<Self> {
        // SHARE-A1: the word says that the mutex was made.
        let word = mapping.word(offset).load(Ordering::Acquire);
        (word == MADE).then(|| Self::place(mapping, offset))
    }

    fn place(mapping: &Arc<Mapping>, offset: u64) -> Self {
        assert!(mapping.writable(), "a mutex is written");
        let word = mapping.word(offset);
        let fits = offset as usize + MUTEX_BYTES <= mapping.len();
        assert!(fits, "a mutex lies in its mapping");
        let at = NonNull::from(word).cast::<u8>();
        // SAFETY: the bytes behind the word are in the mapping, just checked.
        let at = unsafe { at.add(MUTEX) }.cast();
        Self { at, _mapping: mapping.clone() }
    }

    /// Takes it, if nobody holds it. An error where this thread does.
    #[inline]
    pub(crate) fn try_lock(&self) -> Result<Option<Taken>, Errno> {
        // SAFETY: it was made, and is in memory that stays: place().
        self.taken(unsafe { libc::pthread_mutex_trylock(self.at.as_ptr()) })
    }

    /// Takes it as soon as nobody holds it, until a time since the beginning of 1970.
    pub(crate) fn lock(&self, until: Duration) -> Result<Option<Taken>, Errno> {
        let until = libc::timespec {
            tv_sec: until.as_secs().min(1 << 40) as libc::time_t,
            tv_nsec: until.subsec_nanos().into(),
        };
        // SAFETY: as in try_lock().
        self.taken(unsafe { libc::pthread_mutex_timedlock(self.at.as_ptr(), &raw const until) })
    }

    fn taken(&self, result: libc::c_int) -> Result<Option<Taken>, Errno> {
        match result {
            0 => Ok(Some(Taken::Free)),
            libc::EBUSY | libc::ETIMEDOUT => Ok(None),
            libc::EOWNERDEAD => {
                // SAFETY: as in try_lock(); this thread holds it.
                let consistent = unsafe { libc::pthread_mutex_consistent(self.at.as_ptr()) };
                assert_eq!(consistent, 0, "the holder may say that all is well");
                Ok(Some(Taken::Abandoned))
            }
            error => Err(Errno::from_raw_os_error(error)),
        }
    }

    /// Releases it. An error where this thread does not hold it.
    #[inline]
    pub(crate) fn unlock(&self) -> Result<(), Errno> {
        // SAFETY: as in try_lock().
        match unsafe { libc::pthread_mutex_unlock(self.at.as_ptr()) } {
            0 => Ok(()),
            error => Err(Errno::from_raw_os_error(error)),
        }
    }
}

/// Where threads sleep until a condition holds that another process brings about. An odd value:
/// somebody sleeps, or has slept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bed<'a>(&'a AtomicU32);

impl<'a> Bed<'a> {
    pub(crate) fn at(mapping: &'a Mapping, offset: u64) -> Self {
        Self(mapping.half_word(offset))
    }

    /// Sleeps until woken, for a time at most, unless the condition holds.
    pub(crate) fn sleep_unless(self, condition: impl Fn() -> bool, at_most: Duration) {
        // Relaxed: the fence behind it orders it.
        let seen = self.0.fetch_or(1, Ordering::Relaxed) | 1;
        // A full fence, which pairs with the one in wake().
        Fencing::Symmetric.light();
        if !condition() {
            sleep_at(self.0, seen, at_most);
        }
    }

    /// Wakes all that sleep, after the condition has come to hold.
    #[inline]
    pub(crate) fn wake(self) {
        // A full fence, which pairs with the one in sleep_unless().
        Fencing::Symmetric.light();
        // Relaxed: only whether somebody sleeps matters.
        let seen = self.0.load(Ordering::Relaxed);
        if seen & 1 == 1 {
            self.wake_all(seen);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_all(self, seen: u32) {
        let next = seen.wrapping_add(1);
        // Relaxed: what is to be seen was published before. If another has changed it, that one
        // wakes.
        let changed = self.0.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed);
        if changed.is_ok() {
            wake_at(self.0);
        }
    }
}

/// Sleeps while a half word of shared memory has a value, for a time at most.
pub(crate) fn sleep_at(word: &AtomicU32, value: u32, at_most: Duration) {
    let time = Timespec {
        tv_sec: at_most.as_secs().min(1 << 40) as i64,
        tv_nsec: at_most.subsec_nanos().into(),
    };
    // Woken, changed meanwhile, interrupted, or the time is over: callers look again.
    let _ = futex::wait(word, futex::Flags::empty(), value, Some(&time));
}

/// Wakes all that sleep at a half word.
pub(crate) fn wake_at(word: &AtomicU32) {
    // It fails for no word that can be written.
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two threads take turns. Each sleeps for an hour unless the other one wakes it.
    #[test]
    fn no_wake_up_is_lost() {
        const TURNS: u64 = 10_000;
        let memory = Mapping::of_words(vec![0; 24]);
        let take_turns = |own: u64| {
            let turn = memory.word(128);
            // SHARE-A2: what the other one did before.
            let now = || turn.load(Ordering::Acquire);
            while now() < TURNS {
                let is_ours = || now() % 2 == own || now() >= TURNS;
                while !is_ours() {
                    Bed::at(&memory, 64 * own).sleep_unless(is_ours, Duration::from_secs(3600));
                }
                if now() < TURNS {
                    // SHARE-R2: the end of this turn.
                    turn.store(now() + 1, Ordering::Release);
                }
                Bed::at(&memory, 64 * (1 - own)).wake();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| take_turns(0));
            take_turns(1);
        });
    }
}

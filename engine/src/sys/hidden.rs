//! Descriptors in a program's process that the program's own calls cannot reach, because a library
//! before the C library sees those calls. They have high numbers, are close-on-exec, and can be
//! moved to another number.
use super::fork::{self, Shared};
use crate::sync::{Ordering, StaticCounter};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, Once};

/// Numbers below this one are known by a bit; others are never hidden.
const NUMBERS: usize = 1 << 20;

/// The highest first number: the kernel's table of descriptors grows with the highest one.
const FLOOR_MOST: u64 = 4000;

static IS_HIDDEN: [StaticCounter; NUMBERS / 64] = [const { StaticCounter::new(0) }; NUMBERS / 64];

/// The number of each, by that number.
static PLACES: Shared<BTreeMap<RawFd, Arc<AtomicI32>>> = Shared::new(BTreeMap::new());

/// Has forked children find the table whole.
pub fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| fork::around(Some(before), Some(after), Some(after)));
}

extern "C" fn before() {
    PLACES.before_fork();
}

extern "C" fn after() {
    PLACES.after_fork(|_| {});
}

/// Whether a number belongs to a hidden descriptor.
#[inline]
pub fn is_hidden(fd: RawFd) -> bool {
    let bit = |word: &StaticCounter| word.load(Ordering::Relaxed) >> (fd % 64) & 1 != 0;
    usize::try_from(fd).is_ok_and(|fd| IS_HIDDEN.get(fd / 64).is_some_and(bit))
}

fn mark(fd: RawFd, is_hidden: bool) {
    let Some(word) = IS_HIDDEN.get(fd as usize / 64) else { return };
    let bit = 1 << (fd % 64);
    // Relaxed: the program can only guess a number that it was not given.
    match is_hidden {
        true => word.fetch_or(bit, Ordering::Relaxed),
        false => word.fetch_and(!bit, Ordering::Relaxed),
    };
}

/// A hidden descriptor. Dropping it closes it.
#[derive(Debug)]
pub struct Hidden(Arc<AtomicI32>);

impl Hidden {
    /// Hides a descriptor: moves it to a high number.
    ///
    /// # Errors
    /// `EMFILE` where no number is free there.
    pub fn new(made: OwnedFd) -> Result<Self, Errno> {
        Self::copy_of(made.as_fd())
    }

    /// A hidden duplicate of a descriptor.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn copy_of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let high = fcntl_dupfd_cloexec(fd, floor())?.into_raw_fd();
        let this = Self(Arc::new(AtomicI32::new(high)));
        PLACES.lock().insert(high, this.0.clone());
        mark(high, true);
        Ok(this)
    }

    /// Its number. It changes only where the program puts a file of its own at that number.
    pub fn number(&self) -> RawFd {
        self.0.load(Ordering::Relaxed)
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it stays open until self is dropped.
        unsafe { BorrowedFd::borrow_raw(self.number()) }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let mut places = PLACES.lock();
        let fd = self.number();
        mark(fd, false);
        places.remove(&fd);
        // SAFETY: nothing uses it after this.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

/// Moves a hidden descriptor away from a number that the program is about to use.
///
/// # Errors
/// `EMFILE` where no other number is free.
pub fn make_way(fd: RawFd) -> Result<(), Errno> {
    let mut places = PLACES.lock();
    let Some(place) = places.remove(&fd) else { return Ok(()) };
    // SAFETY: hidden descriptors stay open while they are in the table.
    let old = unsafe { BorrowedFd::borrow_raw(fd) };
    match fcntl_dupfd_cloexec(old, floor().max(fd + 1)) {
        Ok(moved) => {
            let moved = moved.into_raw_fd();
            place.store(moved, Ordering::Relaxed);
            places.insert(moved, place);
            mark(moved, true);
            mark(fd, false);
            Ok(())
        }
        Err(errno) => {
            places.insert(fd, place);
            Err(errno)
        }
    }
}

/// The first number for hidden descriptors.
fn floor() -> RawFd {
    let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (soft - soft / 4).min(FLOOR_MOST) as RawFd
}

/// All hidden numbers, in order.
pub fn numbers() -> Vec<RawFd> {
    PLACES.lock().keys().copied().collect()
}

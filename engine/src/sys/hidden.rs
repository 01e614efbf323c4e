//! Descriptors in a program's process that the program's own calls cannot reach, because a library
//! before the C library sees those calls. They have high numbers, are close-on-exec, and can be
//! moved to another number.
use super::fork::{self, Shared};
use crate::sync::{Ordering, StaticCounter};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use rustix::fs::fstat;
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

/// Whether all descriptors that the engine makes are to be hidden.
static HIDES_ALL: StaticCounter = StaticCounter::new(0);

/// From now on, all descriptors that the engine makes in this process are hidden.
pub fn hide_all() {
    // Relaxed, here and below: a descriptor that is made meanwhile is hidden or not.
    HIDES_ALL.store(1, Ordering::Relaxed);
}

pub(super) fn hides_all() -> bool {
    HIDES_ALL.load(Ordering::Relaxed) != 0
}

/// A hidden descriptor. Dropping it closes it.
#[derive(Debug)]
pub struct Hidden(Arc<AtomicI32>);

impl Hidden {
    /// Hides a descriptor: moves it to a high number. Meanwhile the program may close it, and put
    /// another file there.
    ///
    /// # Errors
    /// `EMFILE` where no number is free there, and `EBADF` where the program has closed it.
    pub fn new(made: OwnedFd) -> Result<Self, Errno> {
        Self::new_or(made).map_err(|(made, errno)| {
            if errno == Errno::BADF {
                std::mem::forget(made);
            }
            errno
        })
    }

    /// As [`Self::new`]. Gives the descriptor back where no number is free.
    // spec: LIFE-40
    pub(super) fn new_or(made: OwnedFd) -> Result<Self, (OwnedFd, Errno)> {
        match Self::copy_of(made.as_fd()) {
            Ok(this) => {
                close_if_same(made, this.fd());
                Ok(this)
            }
            Err(errno) => Err((made, errno)),
        }
    }

    /// A hidden duplicate of a descriptor.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn copy_of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let high = copy_from(fd, 0)?.into_raw_fd();
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

impl Hidden {
    /// Takes the descriptor out: it is not hidden any more, and nothing uses self.
    pub(super) fn take(&mut self) -> OwnedFd {
        let mut places = PLACES.lock();
        let fd = self.number();
        mark(fd, false);
        places.remove(&fd);
        // SAFETY: it is open, and nothing else closes it.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Closes a descriptor, unless the program has closed it, and perhaps put another file there.
fn close_if_same(made: OwnedFd, copy: BorrowedFd<'_>) {
    let file = |fd: BorrowedFd<'_>| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    if file(made.as_fd()).is_err() || file(made.as_fd()) != file(copy) {
        std::mem::forget(made);
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
    match copy_from(old, fd + 1) {
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

/// A duplicate at a high number, which is this one or a higher one. Where many are taken, it is a
/// middle one.
fn copy_from(fd: BorrowedFd<'_>, first: RawFd) -> Result<OwnedFd, Errno> {
    let floor = floor(limit());
    let high = fcntl_dupfd_cloexec(fd, floor.max(first));
    high.or_else(|_| fcntl_dupfd_cloexec(fd, (floor / 2).max(first)))
}

/// How many descriptors this process may have.
fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The first number for hidden descriptors.
fn floor(limit: u64) -> RawFd {
    (limit - limit / 4).min(FLOOR_MOST) as RawFd
}

/// How many hidden descriptors there may be at high numbers.
pub(crate) fn room() -> u32 {
    let limit = limit();
    (limit - floor(limit) as u64).min(NUMBERS as u64) as u32
}

/// All hidden numbers, in order.
pub fn numbers() -> Vec<RawFd> {
    PLACES.lock().keys().copied().collect()
}

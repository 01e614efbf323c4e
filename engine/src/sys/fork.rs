//! Forks of a program's process. A child has copies of everything that its parent had, and none of
//! its threads: what a thread had locked stays locked in it for ever.
use crate::sync::{Ordering, StaticCounter};
use crate::sys::descriptor::Descriptor;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::fs::fstat;
use rustix::io::Errno;
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Forks between this process and the first one of its line that has used this library.
static GENERATION: StaticCounter = StaticCounter::new(0);

/// Tells this process from its parent: what was made in another generation is not its own.
#[inline]
pub fn generation() -> u64 {
    // Relaxed: it changes while the process has one thread.
    GENERATION.load(Ordering::Relaxed)
}

/// Counts this process's forks from here on. Before what is made has its generation noted.
pub fn count() {
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| around(None, None, Some(counted)));
}

extern "C" fn counted() {
    // Relaxed: as above.
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Has functions called around each fork of this process: before it, and then in the parent and in
/// the child. Of several, what is to be called first before a fork is named last.
pub fn around(
    before: Option<extern "C" fn()>,
    in_parent: Option<extern "C" fn()>,
    in_child: Option<extern "C" fn()>,
) {
    let of = |function: Option<extern "C" fn()>| function.map(|it| it as unsafe extern "C" fn());
    // SAFETY: they are functions, which stay for as long as the library does, and the C library
    // forgets them if that is unmapped. Where there is no memory for it, forks go unnoticed.
    let _ = unsafe { libc::pthread_atfork(of(before), of(in_parent), of(in_child)) };
}

/// A value of the process under a lock that is free in a forked child.
#[derive(Debug)]
pub struct Shared<T: 'static> {
    value: Mutex<T>,
    /// Held from before a fork until after it, by the thread that forks.
    held: UnsafeCell<Option<MutexGuard<'static, T>>>,
}

// SAFETY: `held` is touched by the thread only that has the lock.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: it moves before it is a static, and only then is anything held.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T: Send> Shared<T> {
    /// One that nobody has locked.
    pub const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), held: UnsafeCell::new(None) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.value.try_lock().ok()
    }

    /// To be called before each fork.
    pub fn before_fork(&'static self) {
        let guard = self.lock();
        // SAFETY: this thread has the lock.
        unsafe { *self.held.get() = Some(guard) };
    }

    /// To be called after each fork, in the parent and in the child, by the same thread.
    pub fn after_fork(&'static self, change: impl FnOnce(&mut T)) {
        // SAFETY: this thread has the lock, since before the fork.
        let guard = unsafe { (*self.held.get()).take() };
        if let Some(mut value) = guard {
            change(&mut value);
        }
    }
}

/// A descriptor of this process alone: a forked child does not have it. For what the system keeps
/// for as long as any process has the open file, such as a lock.
#[derive(Debug)]
pub(crate) struct Unshared {
    file: ManuallyDrop<Descriptor>,
    generation: u64,
}

/// Numbers of such descriptors, and what each is of: a program may have closed one that it knows
/// nothing of, and have something else there.
static UNSHARED: Shared<BTreeMap<RawFd, Option<File>>> = Shared::new(BTreeMap::new());

/// Device and inode.
type File = (u64, u64);

fn file_of(descriptor: BorrowedFd<'_>) -> Option<File> {
    fstat(descriptor).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

impl Unshared {
    /// What `open` opens; no child is forked meanwhile.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn open(open: impl FnOnce() -> Result<Descriptor, Errno>) -> Result<Self, Errno> {
        count();
        watch_unshared();
        let mut numbers = UNSHARED.lock();
        let file = open()?;
        numbers.insert(file.as_raw_fd(), file_of(file.as_fd()));
        Ok(Self { file: ManuallyDrop::new(file), generation: generation() })
    }

    /// None in a child.
    pub(crate) fn get(&self) -> Option<BorrowedFd<'_>> {
        (generation() == self.generation).then(|| self.file.as_fd())
    }
}

impl Drop for Unshared {
    fn drop(&mut self) {
        // In a child the number is free, or of something else.
        if generation() == self.generation {
            let mut numbers = UNSHARED.lock();
            numbers.remove(&self.file.as_raw_fd());
            // SAFETY: nothing uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn watch_unshared() {
    extern "C" fn before() {
        UNSHARED.before_fork();
    }
    extern "C" fn in_parent() {
        UNSHARED.after_fork(|_| {});
    }
    extern "C" fn in_child() {
        UNSHARED.after_fork(|numbers| {
            for (number, file) in std::mem::take(numbers) {
                // SAFETY: if it is what it was, it is open; if not, it is only asked what it is.
                if file_of(unsafe { BorrowedFd::borrow_raw(number) }) == file {
                    // SAFETY: the child's copy is nobody's: its owner sees that it is a child's.
                    unsafe { libc::close(number) };
                }
            }
        });
    }
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| around(Some(before), Some(in_parent), Some(in_child)));
}

//! Descriptors that forked children do not have.
use super::descriptor::Descriptor;
use super::fork::{Shared, around, count, generation};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::fs::fstat;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::Once;

/// A descriptor of this process alone, which forked children do not have: for open files with a
/// state that the system keeps while any process has them, such as locks.
#[derive(Debug)]
pub(crate) struct Unshared {
    file: ManuallyDrop<Descriptor>,
    generation: u64,
}

/// The numbers of such descriptors, and their files: the program may have closed one, and opened
/// something else there.
static UNSHARED: Shared<BTreeMap<RawFd, Option<File>>> = Shared::new(BTreeMap::new());

/// Device and inode.
type File = (u64, u64);

fn file_of(descriptor: BorrowedFd<'_>) -> Option<File> {
    fstat(descriptor).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

impl Unshared {
    /// Opens a descriptor by `open`; no child is forked meanwhile.
    ///
    /// # Errors
    /// The errors of `open`.
    pub(crate) fn open(open: impl FnOnce() -> Result<Descriptor, Errno>) -> Result<Self, Errno> {
        count();
        watch_forks();
        let mut numbers = UNSHARED.lock();
        let file = open()?;
        numbers.insert(file.as_raw_fd(), file_of(file.as_fd()));
        Ok(Self { file: ManuallyDrop::new(file), generation: generation() })
    }

    /// The descriptor; None in a child.
    pub(crate) fn get(&self) -> Option<BorrowedFd<'_>> {
        (generation() == self.generation).then(|| self.file.as_fd())
    }
}

impl Drop for Unshared {
    fn drop(&mut self) {
        // In a child the number is free, or of another file.
        if generation() == self.generation {
            let mut numbers = UNSHARED.lock();
            numbers.remove(&self.file.as_raw_fd());
            // SAFETY: nothing uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// Has forked children close their copies.
pub(crate) fn watch_forks() {
    extern "C" fn before() {
        UNSHARED.before_fork();
    }
    extern "C" fn in_parent() {
        UNSHARED.after_fork(|_| {});
    }
    extern "C" fn in_child() {
        UNSHARED.after_fork(|numbers| {
            for (number, file) in std::mem::take(numbers) {
                // SAFETY: if it is the same file, it is open; if not, only its properties are read.
                if file_of(unsafe { BorrowedFd::borrow_raw(number) }) == file {
                    // SAFETY: nobody uses the child's copy: its owner sees that it is in a child.
                    unsafe { libc::close(number) };
                }
            }
        });
    }
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| around(Some(before), Some(in_parent), Some(in_child)));
}

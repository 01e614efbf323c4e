//! Memory that the processes of a test share: numbers, and one bell that rings at each change.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers in the memory; the first is the bell.
pub(crate) const WORDS: usize = 4096;

/// How often a waiting process looks again, in milliseconds: a bell may be lost with its ringer.
const LOOK_MILLISECONDS: i64 = 50;

/// After how many looks in vain a wait is over.
const LOOKS: u32 = 600;

/// The memory, mapped.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    words: NonNull<AtomicU64>,
}

// SAFETY: the memory holds atomics only, and stays mapped until the process ends.
unsafe impl Send for Shared {}
// SAFETY: as for Send.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps the memory, which has zeros where it is new.
    pub(crate) fn open(path: &Path) -> Self {
        let options = OpenOptions::new().read(true).write(true).create(true).clone();
        let file = options.open(path).expect("the shared file opens");
        let bytes = WORDS * size_of::<AtomicU64>();
        file.set_len(bytes as u64).expect("the shared file has its length");
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the file has the length that is mapped, at an address that the kernel chooses.
        let mapped = unsafe {
            let none = std::ptr::null_mut();
            libc::mmap(none, bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(mapped, libc::MAP_FAILED, "the shared file is mapped");
        Self { words: NonNull::new(mapped.cast()).expect("a mapping has an address") }
    }

    /// A number of the memory.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < WORDS, "the shared memory has word {index}");
        // SAFETY: the mapping has so many words, and is never unmapped.
        unsafe { self.words.add(index).as_ref() }
    }

    pub(crate) fn get(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::SeqCst)
    }

    /// Sets a number, and wakes those that wait for it.
    pub(crate) fn set(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::SeqCst);
        self.ring();
    }

    pub(crate) fn add(&self, index: usize, value: u64) -> u64 {
        let before = self.word(index).fetch_add(value, Ordering::SeqCst);
        self.ring();
        before
    }

    /// Wakes all that wait.
    pub(crate) fn ring(&self) {
        self.word(0).fetch_add(1, Ordering::SeqCst);
        let bell = self.words.as_ptr();
        let _ = call!(syscall(libc::SYS_futex, bell, libc::FUTEX_WAKE, i32::MAX));
    }

    /// Waits until a condition holds; false if it did not within half a minute.
    pub(crate) fn wait(&self, holds: impl Fn(&Self) -> bool) -> bool {
        let bell = self.words.as_ptr();
        let time = libc::timespec { tv_sec: 0, tv_nsec: LOOK_MILLISECONDS * 1_000_000 };
        for _ in 0..LOOKS {
            // The bell's number may ring between the look and the wait: then the wait ends at once.
            loop {
                let before = self.get(0);
                if holds(self) {
                    return true;
                }
                let seen = before as u32;
                let rung = call!(syscall(libc::SYS_futex, bell, libc::FUTEX_WAIT, seen, &time));
                if rung == Err(libc::ETIMEDOUT) {
                    break;
                }
            }
        }
        false
    }
}

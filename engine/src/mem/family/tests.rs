//! The lock between processes: exclusion, sleep, and holders that die.
use super::*;
use crate::mem::file::{Pages, memory_file};
use crate::mem::map::Mapping;
use rustix::fd::AsFd;
use std::sync::Arc;

/// Words that forked children share.
#[derive(Clone)]
struct Words(Arc<Mapping>);

const LOCK: u64 = 0;
const VALUE: u64 = 64;

impl Words {
    fn new() -> Self {
        let file = memory_file(4096, Pages::Ordinary).unwrap();
        Self(Arc::new(Mapping::own_in_part(file.as_fd(), 4096, []).unwrap()))
    }

    fn lock(&self) -> &AtomicU32 {
        self.0.half_word(LOCK)
    }

    fn value(&self) -> &AtomicU32 {
        self.0.half_word(VALUE)
    }

    /// Adds one in two steps, which only the lock keeps together.
    fn add_slowly(&self) {
        let _held = lock(self.lock()).expect("this thread does not have it");
        // Relaxed: the lock, or the test, orders it.
        let value = self.value().load(Ordering::Relaxed);
        std::hint::spin_loop();
        // Relaxed: the lock, or the test, orders it.
        self.value().store(value + 1, Ordering::Relaxed);
    }

    /// Waits until another process or thread has made this true.
    fn until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            std::thread::yield_now();
        }
    }
}

/// Runs `f` in a forked child, which ends with its answer.
fn fork(f: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child uses the lock, and the allocator, which forks leave whole.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        in_child();
        let is_right = f();
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(i32::from(!is_right)) };
    }
    child
}

/// Waits for the end of a child; its status.
fn reap(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: it is our child, which nobody has waited for.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

#[test]
fn a_thread_that_holds_the_lock_is_not_given_it_again() {
    let word = AtomicU32::new(0);
    let held = lock(&word).unwrap();
    assert!(lock(&word).is_none());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| lock(&word).is_some());
        // The other thread has found the lock held.
        // Relaxed: the lock, or the test, orders it.
        while word.load(Ordering::Relaxed) & IS_WAITED_FOR == 0 {
            std::thread::yield_now();
        }
        drop(held);
        assert!(other.join().unwrap());
    });
    // Relaxed: the lock, or the test, orders it.
    assert_eq!(word.load(Ordering::Relaxed), 0);
    assert!(lock(&word).is_some());
}

#[test]
fn threads_and_forked_children_exclude_each_other() {
    const EACH: u32 = 20_000;
    let words = Words::new();
    let add = |words: &Words| (0..EACH).for_each(|_| words.add_slowly());
    let children = [(); 2].map(|()| {
        fork(|| {
            add(&words);
            true
        })
    });
    std::thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(|| add(&words)));
    });
    assert_eq!(children.map(reap), [0, 0]);
    // Relaxed: the lock, or the test, orders it.
    assert_eq!(words.value().load(Ordering::Relaxed), 4 * EACH);
}

#[test]
fn a_forked_child_does_not_have_the_lock_that_its_parent_holds() {
    let words = Words::new();
    let held = lock(words.lock()).unwrap();
    let child = fork(|| {
        let held = lock(words.lock());
        // Relaxed: the lock, or the test, orders it.
        held.is_some() && words.value().load(Ordering::Relaxed) == 7
    });
    // Relaxed: the lock, or the test, orders it.
    words.until(|words| words.lock().load(Ordering::Relaxed) & IS_WAITED_FOR != 0);
    // Relaxed: the lock, or the test, orders it.
    words.value().store(7, Ordering::Relaxed);
    drop(held);
    assert_eq!(reap(child), 0);
}

// spec: SOCK-25
#[test]
fn the_lock_of_a_process_that_was_killed_is_taken_over() {
    for is_reaped_first in [true, false] {
        let words = Words::new();
        let child = fork(|| {
            let _held = lock(words.lock());
            // Relaxed: the lock, or the test, orders it.
            words.value().store(1, Ordering::Relaxed);
            words.until(|_| false);
            true
        });
        // Relaxed: the lock, or the test, orders it.
        words.until(|words| words.value().load(Ordering::Relaxed) == 1);
        // SAFETY: it is our child.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        if is_reaped_first {
            reap(child);
        }
        drop(lock(words.lock()).expect("it is taken over"));
        // Relaxed: the lock, or the test, orders it.
        assert_eq!(words.lock().load(Ordering::Relaxed), 0);
        if !is_reaped_first {
            reap(child);
        }
    }
}

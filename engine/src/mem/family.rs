//! A lock that the threads of a process and of its forked children share. If its holder dies, the
//! next thread takes it over: what it guards is consistent after each store.
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use rustix::event::Timespec;
use rustix::process::{Pid, getpid, test_kill_process};
use rustix::thread::{futex, gettid};
use std::cell::Cell;

/// In the word of a lock: threads sleep until it is released.
const IS_WAITED_FOR: u32 = 1 << 31;

/// Looks at the word before a thread sleeps.
const LOOKS: u32 = 100;

/// How long a thread sleeps before it sees whether the holder is alive.
const LIFE_SIGN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

thread_local! {
    static SELF: Cell<u32> = const { Cell::new(0) };
}

/// The number of this thread, which is unlike all others of the host.
#[inline]
fn this_thread() -> u32 {
    SELF.with(|number| match number.get() {
        0 => {
            number.set(gettid().as_raw_nonzero().get() as u32);
            number.get()
        }
        known => known,
    })
}

/// This process sees the numbers of its family's others no longer.
static IS_APART: AtomicBool = AtomicBool::new(false);

/// In a forked child: the thread has another number now. False where it is in a namespace of
/// numbers of its own, so that it cannot tell which others of its family are alive.
pub(crate) fn in_child() -> bool {
    SELF.with(|number| number.set(0));
    let is_apart = getpid().is_init();
    // Relaxed: the child has one thread.
    IS_APART.fetch_or(is_apart, Ordering::Relaxed);
    !is_apart
}

/// The lock while it is held.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a AtomicU32);

/// Takes a lock. None where this thread holds it already: it runs a signal handler.
#[inline]
pub(crate) fn lock(word: &AtomicU32) -> Option<Held<'_>> {
    let this = this_thread();
    // FAMILY-A1: all that the last holder did.
    match word.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Some(Held(word)),
        Err(_) => lock_slowly(word, this),
    }
}

/// Takes a lock that is free.
pub(crate) fn try_lock(word: &AtomicU32) -> Option<Held<'_>> {
    // FAMILY-A1: as above.
    let taken = word.compare_exchange(0, this_thread(), Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok().then_some(Held(word))
}

#[cold]
fn lock_slowly(word: &AtomicU32, this: u32) -> Option<Held<'_>> {
    let mut looks = 0;
    loop {
        // Relaxed: the exchange decides.
        let found = word.load(Ordering::Relaxed);
        let holder = found & !IS_WAITED_FOR;
        if holder == this {
            return None;
        }
        if holder == 0 || (looks > LOOKS && !is_alive(holder)) {
            // Others may wait, too, so the word says so. FAMILY-A1: as above.
            let mine = this | IS_WAITED_FOR;
            if word.compare_exchange(found, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(Held(word));
            }
            continue;
        }
        looks += 1;
        if looks < LOOKS {
            std::hint::spin_loop();
            continue;
        }
        let waited = found | IS_WAITED_FOR;
        // Relaxed: the lock is not taken by this.
        if word.compare_exchange(found, waited, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let _ = futex::wait(word, futex::Flags::empty(), waited, Some(&LIFE_SIGN));
        }
    }
}

/// Whether a thread, or a process, runs still. One that nobody has waited for yet does not.
pub(crate) fn is_alive(thread: u32) -> bool {
    // Relaxed: it changes while the process has one thread.
    if IS_APART.load(Ordering::Relaxed) {
        return true;
    }
    if !exists(thread) {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat"));
    // The state follows the name of the program, which is in brackets.
    let state = |stat: String| stat.rsplit(')').next()?.trim_start().chars().next();
    !matches!(stat.ok().and_then(state), Some('Z' | 'X'))
}

/// Whether a thread, or a process, runs, or nobody has waited for it yet.
pub(crate) fn exists(thread: u32) -> bool {
    // Relaxed: it changes while the process has one thread.
    if IS_APART.load(Ordering::Relaxed) {
        return true;
    }
    // A peer can write any number there, and no process has a negative one.
    let of = i32::try_from(thread).ok().and_then(Pid::from_raw);
    of.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // FAMILY-R1: all that was done while it was held.
        if self.0.swap(0, Ordering::Release) & IS_WAITED_FOR != 0 {
            let _ = futex::wake(self.0, futex::Flags::empty(), 1);
        }
    }
}

#[cfg(test)]
mod tests;

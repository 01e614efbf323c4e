//! Writes beyond this process's limit on the length of files (`ulimit -f`), memory files among
//! them: the call fails, in place of a signal that ends the program.
use super::descriptor::Descriptor;
use rustix::io::write;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::ptr;

/// Calls `grow`, which makes files longer, without the signal: beyond the limit its calls fail with
/// `EFBIG`. A signal that was already pending in this thread stays pending.
// spec: LIFE-38
pub(crate) fn within_limit<T>(grow: impl FnOnce() -> T) -> T {
    let mut signal = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the system fills each set before it is read.
    unsafe {
        libc::sigemptyset(signal.as_mut_ptr());
        libc::sigaddset(signal.as_mut_ptr(), libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, signal.as_ptr(), before.as_mut_ptr());
    }
    let was_pending = is_pending();
    let result = grow();
    if !was_pending && is_pending() {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set is filled, and no more is to be known of the signal.
        unsafe { libc::sigtimedwait(signal.as_ptr(), ptr::null_mut(), &raw const at_once) };
    }
    // SAFETY: the first call has filled it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

/// A file whose writes cause no signal.
#[derive(Debug)]
pub(crate) struct Limited(pub(crate) Descriptor);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(within_limit(|| write(&self.0, bytes))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the system fills the set, which is read only if it has.
    unsafe {
        libc::sigpending(pending.as_mut_ptr()) == 0
            && libc::sigismember(pending.as_ptr(), libc::SIGXFSZ) == 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::{Ordering, StaticCounter};

    static SEEN: StaticCounter = StaticCounter::new(0);

    extern "C" fn seen(_signal: libc::c_int) {
        // Relaxed: the thread that reads it is the one that was interrupted.
        SEEN.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends the signal to this thread, as the system does for a file that would be too long.
    fn raise() {
        // SAFETY: it takes any number.
        assert_eq!(unsafe { libc::raise(libc::SIGXFSZ) }, 0);
    }

    // spec: LIFE-38
    #[test]
    fn the_signal_of_files_that_are_too_long_is_taken_unless_it_was_the_programs() {
        let handler = seen as extern "C" fn(libc::c_int);
        // SAFETY: the handler adds to an atomic number only.
        unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
        within_limit(raise);
        assert_eq!((SEEN.load(Ordering::Relaxed), is_pending()), (0, false));
        raise();
        assert_eq!(SEEN.load(Ordering::Relaxed), 1, "the program's own reaches it");
        // A signal that the program has blocked and pending is still there afterwards.
        within_limit(|| {
            raise();
            within_limit(raise);
            assert!(is_pending());
        });
        assert_eq!((SEEN.load(Ordering::Relaxed), is_pending()), (1, false));
    }
}

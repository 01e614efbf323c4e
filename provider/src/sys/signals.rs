//! Signals, which are the program's and its threads'.

use std::mem::MaybeUninit;
use std::ptr;

/// Runs `f` with all signals blocked; threads that it makes inherit that.
pub(crate) fn without<R>(f: impl FnOnce() -> R) -> R {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are there for the system to fill or read, and the first one is filled
    // before it is used.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = f();
    // SAFETY: the call above has filled it; with sets that are there neither call fails.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked() -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: with no set to change to, the call fills the other one.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), now.as_mut_ptr());
            libc::sigismember(now.as_ptr(), libc::SIGUSR1) == 1
        }
    }

    #[test]
    fn a_thread_that_is_made_meanwhile_hears_none() {
        assert!(!is_blocked());
        assert!(without(|| std::thread::spawn(is_blocked)).join().unwrap());
        assert!(!is_blocked());
    }
}

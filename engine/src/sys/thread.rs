//! Threads that Ayre starts in a program's process: signals are for the program's own threads.
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::{Builder, JoinHandle};

/// Starts a thread in which all signals are blocked, from its first instruction on: a handler never
/// runs there, and a program that waits for a signal in a thread of its own gets it.
///
/// # Errors
/// What the system answers where it refuses a thread.
// spec: LIFE-28
pub fn start<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // A thread begins with the signals blocked that its starter has blocked.
    without_signals(|| Builder::new().name(name.to_owned()).spawn(run))
}

fn without_signals<R>(f: impl FnOnce() -> R) -> R {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Signals that can be blocked here, 1 to 31 and SIGRTMIN to SIGRTMAX, and are.
    fn blocked() -> Vec<i32> {
        let mut now = MaybeUninit::uninit();
        let all = (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
        // SAFETY: with no set to change to, the call fills the other one.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), now.as_mut_ptr());
            all.filter(|signal| libc::sigismember(now.as_ptr(), *signal) == 1).collect()
        }
    }

    // spec: LIFE-28
    #[test]
    fn a_thread_starts_with_every_signal_blocked_and_its_starter_keeps_its_own() {
        let before = blocked();
        let all = (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
        let can_be: Vec<_> = all.filter(|s| ![libc::SIGKILL, libc::SIGSTOP].contains(s)).collect();
        assert_eq!(start("test", blocked).unwrap().join().unwrap(), can_be);
        assert_eq!(blocked(), before);
    }
}

//! Threads that Ayre starts in a program's process. Signals are for the program's own threads.
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};
use std::{io, ptr};

/// Starts a thread in which all signals are blocked from its first instruction on. So no handler
/// runs there, and a program that waits for a signal in a thread of its own gets it.
///
/// # Errors
/// The system's error where it refuses a thread.
// spec: LIFE-28
pub fn start<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // A thread starts with the signals blocked that its starter has blocked.
    without_signals(|| Builder::new().name(name.to_owned()).spawn(run))
}

/// Asks the system to run this thread soon after a wake-up, even if other threads compute, as it
/// needs little time. Has an effect on Linux 6.12 and later, where it is not refused.
pub fn be_prompt() {
    /// The length of a time slice in nanoseconds, the least that the system accepts.
    const TURN: u64 = 100_000;
    let mut attributes = MaybeUninit::<libc::sched_attr>::zeroed();
    let size = size_of::<libc::sched_attr>();
    // SAFETY: zeros are valid attributes, and the system fills at most their size.
    let attributes = unsafe {
        let place = attributes.as_mut_ptr();
        if libc::syscall(libc::SYS_sched_getattr, 0, place, size, 0) != 0 {
            return;
        }
        attributes.assume_init_mut()
    };
    if attributes.sched_policy == libc::SCHED_OTHER as u32 {
        attributes.sched_runtime = TURN;
        // SAFETY: the attributes are this thread's own except for one.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, ptr::from_ref(attributes), 0) };
    }
}

fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    let mut before = MaybeUninit::uninit();
    // SAFETY: the system fills or reads both sets, and the first one is filled before it is used.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = f();
    // SAFETY: the call above has filled it; with valid sets neither call fails.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The blocked signals of those that can be blocked, 1 to 31 and SIGRTMIN to SIGRTMAX.
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

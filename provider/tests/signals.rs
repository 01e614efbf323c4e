//! Signals end every wait, and end nothing else.

mod common;

use ayre_fi::abi::*;
use common::*;
use std::ptr::{null, null_mut};
use std::thread;

extern "C" fn ignore(_signal: i32) {}

/// Has a signal interrupt what a thread waits for, without restarting it.
fn catch_signals() {
    let handler: extern "C" fn(i32) = ignore;
    // SAFETY: the handler does nothing, so it may run anywhere.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, null_mut()), 0);
    }
}

/// The return value of a call that only signals to its thread interrupt.
fn interrupted(call: impl FnOnce() -> isize + Send) -> isize {
    thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let waiter = scope.spawn(move || {
            // SAFETY: it takes nothing.
            tell.send(unsafe { libc::pthread_self() }).unwrap();
            call()
        });
        let thread = told.recv().unwrap();
        // The first ones may come before it waits.
        while !waiter.is_finished() {
            // SAFETY: the thread has not been joined.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            thread::yield_now();
        }
        waiter.join().unwrap()
    })
}

/// An object's address, for another thread.
struct At<T>(*mut T);

// SAFETY: the objects are those of a domain that any thread may use.
unsafe impl<T> Send for At<T> {}

impl<T> At<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

#[test]
fn a_signal_ends_every_wait() {
    catch_signals();
    let opened = Opened::new(&Infos::hints());
    let cq = open_cq(&opened, |attr| attr.wait_obj = WAIT_FD).unwrap();
    let (cntr, eq) = (open_cntr(&opened, WAIT_FD), open_eq(&opened, 0, WAIT_FD));
    let (mut attr, mut set) = (WaitAttr { wait_obj: WAIT_FD, ..blank() }, null_mut());
    assert_eq!(call!(opened.fabric, ops.wait_open(&mut attr, &mut set)), 0);
    let at = (At(cq), At(cntr), At(eq), At(set));
    let (cq_at, cntr_at, eq_at, set_at) = at;
    let results = [
        interrupted(move || call!(cq_at.get(), ops.sread(null_mut(), 0, null(), -1))),
        interrupted(move || call!(cntr_at.get(), ops.wait(1, -1)) as isize),
        interrupted(move || call!(eq_at.get(), ops.sread(null_mut(), null_mut(), 0, -1, 0))),
        interrupted(move || call!(set_at.get(), ops.wait(-1)) as isize),
    ];
    assert_eq!(results, [-(errno::EINTR as isize); 4]);
    assert_eq!(call!(cntr, ops.add(1)), 0);
    assert_eq!(call!(cntr, ops.wait(1, -1)), 0, "it works as before");
    assert_eq!([close(cq), close(cntr), close(eq), close(set)], [0; 4]);
}

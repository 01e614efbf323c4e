//! A forked child, which exits, or closes what is not its own. No other test runs in this process:
//! its thread's locks would be held for ever in the child.

mod common;

use ayre_fi::abi::*;
use common::ends::*;
use common::*;
use std::ptr::null_mut;

/// The result of `f` in a forked child, which then exits as programs do, through all handlers.
fn in_child(f: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child makes no other thread's lock its business: it calls `f` and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let status = f();
        // SAFETY: it runs the handlers of the libraries, as is wanted.
        unsafe { libc::exit(status) };
    }
    let mut status = 0;
    // SAFETY: it is our child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child was killed: {status:#x}");
    libc::WEXITSTATUS(status)
}

/// Two ends of a child's own, one of which sends to the other; whether it came.
fn own_ends_work() -> bool {
    let wishes = Wishes { data_progress: PROGRESS_AUTO, ..Wishes::default() };
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let mut room = [0u8; 3];
    let (start, none) = (room.as_mut_ptr().cast(), null_mut());
    let posted = call!(ends[1].ep, msg.recv(start, 3, none, ADDR_UNSPEC, none));
    let inject = || call!(ends[0].ep, msg.inject([1u8, 2, 3].as_ptr().cast(), 3, 0));
    let sent = until_taken(&ends, inject);
    let came = next(&ends[1], &ends).0.len == 3 && room == [1, 2, 3];
    ends.into_iter().for_each(End::close);
    posted == 0 && sent == 0 && came
}

/// A child has no objects of its parent: it may use and close them all, and nothing changes.
/// Objects that it opens itself work.
// spec: LIFE-35
#[test]
fn a_forked_child_leaves_everything_as_it_is_and_has_a_library_of_its_own() {
    core();
    assert_eq!(in_child(|| i32::from(own_ends_work())), 1, "after fi_getinfo alone");
    // With a thread of ours, which the child has not.
    let wishes = Wishes { data_progress: PROGRESS_AUTO, ..Wishes::default() };
    let opened = wishes.opened();
    let ends = End::pair(&opened, &wishes);
    let eq = open_eq(&opened, WRITE, WAIT_FD);
    let cq = open_cq(&opened, |attr| attr.wait_obj = WAIT_FD).unwrap();
    assert_eq!(call!(eq, ops.write(7, [1u8].as_ptr().cast(), 1, 0)), 1);
    assert_eq!(in_child(|| 3), 3);
    // In the order that the owner would be refused: nothing is looked at.
    let all = || {
        let (mut attr, mut another) = (blank(), null_mut());
        let open = call!(opened.domain, ops.cq_open(&mut attr, &mut another, null_mut()));
        let closed = [close(opened.fabric), close(opened.domain), close(cq), close(eq)];
        i32::from(closed == [0; 4] && open == -errno::EINVAL)
    };
    assert_eq!(in_child(all), 1);
    assert_eq!(in_child(|| i32::from(own_ends_work())), 1, "beside what is the parent's");
    let in_thread = || in_child(|| i32::from(own_ends_work()));
    assert_eq!(std::thread::scope(|scope| scope.spawn(in_thread).join().unwrap()), 1);
    let use_parents = || {
        let (mut byte, none) = ([1u8], null_mut());
        let at = byte.as_mut_ptr().cast();
        let answers = [
            call!(ends[0].ep, msg.inject(at, 1, 0)),
            call!(ends[0].ep, tagged.send(at, 1, none, 0, 7, none)),
            call!(ends[1].ep, msg.recv(at, 1, none, ADDR_UNSPEC, none)),
            call!(ends[0].ep, rma.read(at, 1, none, 0, 0, 5, none)),
            call!(ends[0].cq, ops.read(at, 1)),
            call!(eq, ops.read(none.cast(), at, 1, 0)),
        ];
        i32::from(answers.iter().all(|answer| *answer == -errno::ENOSYS as isize))
    };
    assert_eq!(in_child(use_parents), 1, "calls with what is the parent's");
    let (mut event, mut byte) = (0, 0u8);
    assert_eq!(call!(eq, ops.read(&mut event, (&raw mut byte).cast(), 1, 0)), 1);
    assert_eq!((event, byte), (7, 1));
    assert_eq!((close(cq), close(eq)), (0, 0));
    let mut room = [0u8; 3];
    let (start, none) = (room.as_mut_ptr().cast(), null_mut());
    assert_eq!(call!(ends[1].ep, msg.recv(start, 3, none, ADDR_UNSPEC, none)), 0);
    let inject = || call!(ends[0].ep, msg.inject([1u8, 2, 3].as_ptr().cast(), 3, 0));
    assert_eq!(until_taken(&ends, inject), 0);
    assert_eq!((next(&ends[1], &ends).0.len, room), (3, [1, 2, 3]));
    ends.into_iter().for_each(End::close);
}

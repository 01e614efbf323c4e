//! Wake-up, by the functions that programs call: what UCX's programs rely on.

mod common;

use ayre_ucp::abi::context::WorkerParams;
use ayre_ucp::abi::numbers::*;
use ayre_ucp::abi::status::Status;
use common::*;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::ffi::c_int;
use std::ptr::null_mut;

#[allow(clippy::unnecessary_safety_comment, reason = "every foreign block has one")]
// SAFETY: the functions of the library, by their declarations in C.
unsafe extern "C" {
    fn ucp_worker_get_efd(worker: Pointer, to: *mut c_int) -> Status;
    fn ucp_worker_arm(worker: Pointer) -> Status;
    fn ucp_worker_wait(worker: Pointer) -> Status;
    fn ucp_worker_signal(worker: Pointer) -> Status;
}

fn descriptor(worker: Pointer) -> Result<c_int, Status> {
    let mut descriptor = -1;
    // SAFETY: the worker is there.
    match unsafe { ucp_worker_get_efd(worker, &raw mut descriptor) } {
        Status::OK => Ok(descriptor),
        status => Err(status),
    }
}

fn arm(worker: Pointer) -> Status {
    // SAFETY: the worker is there.
    unsafe { ucp_worker_arm(worker) }
}

fn signal(worker: Pointer) {
    // SAFETY: the worker is there.
    assert_eq!(unsafe { ucp_worker_signal(worker) }, Status::OK);
}

/// Progress until nothing is left, then announced.
fn settle(world: &World, at: usize) {
    world.until(|| arm(world.workers[at]) == Status::OK);
}

fn is_readable(descriptor: c_int) -> bool {
    // SAFETY: the worker that it belongs to is there.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&at_once)).unwrap() > 0
}

#[test]
fn a_message_wakes_who_has_announced_himself() {
    let (world, mut into) = (World::new(), [0; 8]);
    let (worker, other) = (world.workers[1], world.workers[0]);
    let descriptor = descriptor(worker).unwrap();
    for round in 0..100_u64 {
        let received = world.receive(1, &mut into, (round, u64::MAX), &How::new());
        settle(&world, 1);
        assert!(!is_readable(descriptor), "{round}");
        assert_eq!(arm(worker), Status::OK, "twice is as once");
        assert_eq!(
            world.end(world.send(0, &round.to_le_bytes(), round, &How::new())).0,
            Status::OK
        );
        // SAFETY: the worker is there.
        unsafe { ucp_worker_progress(other) };
        assert!(is_readable(descriptor), "{round}");
        assert_eq!(world.end(received).0, Status::OK);
        assert_eq!(into, round.to_le_bytes());
    }
}

/// One that has come already: no sleep.
#[test]
fn a_worker_with_something_to_do_is_busy() {
    let world = World::new();
    settle(&world, 1);
    // SAFETY: the worker is there.
    unsafe { ucp_worker_progress(world.workers[1]) };
    assert_eq!(world.send(0, &[1], 1, &How::new()), Begun::Done);
    assert_eq!(arm(world.workers[1]), Status::BUSY);
    world.until(|| world.probe(1, (1, u64::MAX), false).is_some());
    settle(&world, 1);
}

/// A signal wakes, from any thread, or makes the next one busy, once.
#[test]
fn a_signal_wakes_once() {
    let world = World::new();
    let descriptor = descriptor(world.workers[1]).unwrap();
    settle(&world, 1);
    signal(world.workers[1]);
    assert!(is_readable(descriptor));
    assert_eq!(arm(world.workers[1]), Status::BUSY);
    settle(&world, 1);
    assert!(!is_readable(descriptor));
    std::thread::scope(|scope| {
        let world = &world;
        scope.spawn(move || signal(world.workers[1]));
        // SAFETY: the worker is there.
        assert_eq!(unsafe { ucp_worker_wait(world.workers[1]) }, Status::OK);
    });
}

fn worker(context: Pointer, set: impl FnOnce(&mut WorkerParams)) -> Pointer {
    let (mut params, mut worker): (WorkerParams, _) = (empty(), null_mut());
    set(&mut params);
    // SAFETY: the structure is as its mask says.
    let made = unsafe { ucp_worker_create(context, &raw const params, &raw mut worker) };
    assert_eq!(made, Status::OK);
    worker
}

/// An epoll of the program's gets the worker's events, with its data.
#[test]
fn an_epoll_of_the_programs_hears_of_it() {
    let world = World::new();
    let gatherer = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let worker = worker(world.contexts[0], |params| {
        params.field_mask = UCP_WORKER_PARAM_FIELD_EVENT_FD | UCP_WORKER_PARAM_FIELD_USER_DATA;
        params.event_fd = gatherer.as_raw_fd();
        params.user_data = std::ptr::without_provenance_mut(4711);
    });
    assert_eq!(descriptor(worker), Err(Status::UNSUPPORTED));
    signal(worker);
    let mut events = Vec::with_capacity(4);
    epoll::wait(&gatherer, rustix::buffer::spare_capacity(&mut events), None).unwrap();
    assert_eq!(events.iter().map(|event| event.data.u64()).collect::<Vec<_>>(), [4711]);
    // SAFETY: it is not used again.
    unsafe { ucp_worker_destroy(worker) };
}

/// Without announcements: a progress that finds nothing is one.
#[test]
fn a_worker_may_tell_of_new_events_alone() {
    let world = World::new();
    let worker = worker(world.contexts[1], |params| {
        params.field_mask = UCP_WORKER_PARAM_FIELD_EVENTS;
        params.events = UCP_WAKEUP_EDGE;
    });
    let ep = connect(world.workers[0], &address_of(worker)).unwrap();
    let descriptor = descriptor(worker).unwrap();
    let mut param = How::new().param;
    param.op_attr_mask = 0;
    // SAFETY: the worker is there.
    let progress = || unsafe { ucp_worker_progress(worker) };
    for _ in 0..10 {
        while progress() > 0 {}
        assert!(!is_readable(descriptor));
        let sent = world.send_by(ep, &[1], 1);
        world.until(|| is_readable(descriptor));
        world.until(|| {
            progress();
            world.has_ended(sent)
        });
    }
    // SAFETY: neither is used again.
    let closed = Begun::of(unsafe { ucp_ep_close_nbx(ep, &raw const param) });
    world.until(|| {
        progress();
        world.has_ended(closed)
    });
    // SAFETY: as above.
    unsafe { ucp_worker_destroy(worker) };
}

#[test]
fn wakeup_is_there_where_the_program_has_asked() {
    let context = init(UCP_FEATURE_TAG, Requests::default()).unwrap();
    let worker = worker(context, |_| {});
    assert_eq!(descriptor(worker), Err(Status::UNSUPPORTED));
    assert_eq!(arm(worker), Status::UNSUPPORTED);
    // SAFETY: neither is used again.
    unsafe {
        assert_eq!(ucp_worker_wait(worker), Status::UNSUPPORTED);
        assert_eq!(ucp_worker_signal(worker), Status::UNSUPPORTED);
        ucp_worker_destroy(worker);
        ucp_cleanup(context);
    }
}

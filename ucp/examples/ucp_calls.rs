//! Calls of UCP that are made most, a case each, for counting their instructions: the program
//! `cargo xtask instructions` runs with few and with many operations.

#[path = "../tests/common/mod.rs"]
mod common;

use ayre_ucp::abi::numbers::*;
use ayre_ucp::abi::request::{AmHandlerParam, AmRecvParam, RequestParam};
use ayre_ucp::abi::status::Status;
use common::*;
use std::cell::Cell;
use std::ffi::{c_uint, c_void};

/// The type of `ucp_am_send_nbx`.
type SendNbx = unsafe extern "C" fn(
    Pointer,
    c_uint,
    *const c_void,
    usize,
    *const c_void,
    usize,
    *const RequestParam,
) -> Pointer;

#[allow(clippy::unnecessary_safety_comment, reason = "every foreign block has one")]
// SAFETY: the functions of the library, by their declarations in C.
unsafe extern "C" {
    fn ucp_am_send_nbx();
    fn ucp_worker_set_am_recv_handler(worker: Pointer, p: *const AmHandlerParam) -> Status;
}

/// Messages that are on their way at a time.
const WINDOW: u64 = 64;

/// One message, as Open MPI receives it: a request of the program's own, and a look at it between
/// polls.
fn message(world: &World, memory: &mut [u8], into: &mut [u8; 8], bytes: &[u8; 8]) {
    // SAFETY: the program's part begins behind as much memory as the library has for itself.
    let request = unsafe { memory.as_mut_ptr().add(world.head_bytes()) }.cast();
    let posted = world.receive(1, into, (7, u64::MAX), &How::new().request(request));
    assert_eq!(world.send(0, bytes, 7, &How::new()), Begun::Done);
    let mut info = empty();
    if posted != Begun::Done {
        // SAFETY: the request is in use, and the worker is there.
        unsafe {
            while ucp_request_test(request, &raw mut info) == Status::IN_PROGRESS {
                ucp_worker_progress(world.workers[1]);
            }
        }
    }
}

/// Counts messages.
///
/// # Safety
/// The argument is a counter.
unsafe extern "C" fn count_message(
    counter: Pointer,
    _header: *const c_void,
    _header_length: usize,
    _data: Pointer,
    _len: usize,
    _param: *const AmRecvParam,
) -> Status {
    // SAFETY: the caller's promise.
    let counter = unsafe { &*counter.cast::<Cell<u64>>() };
    counter.set(counter.get() + 1);
    Status::OK
}

fn count_messages(world: &World, counter: &Cell<u64>) {
    let mut param: AmHandlerParam = empty();
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID
        | UCP_AM_HANDLER_PARAM_FIELD_CB
        | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = 1;
    param.cb = Some(count_message);
    param.arg = (&raw const *counter).cast_mut().cast();
    // SAFETY: the counter outlives the messages.
    let set = unsafe { ucp_worker_set_am_recv_handler(world.workers[1], &raw const param) };
    assert_eq!(set, Status::OK);
}

/// One active message.
fn active(world: &World, bytes: &[u8; 8], counter: &Cell<u64>) {
    let (before, param) = (counter.get(), How::new().param);
    // SAFETY: its declaration in C, and memory that stays until the end.
    let sent = Begun::of(unsafe {
        let send: SendNbx = std::mem::transmute(ucp_am_send_nbx as unsafe extern "C" fn());
        let start = bytes.as_ptr().cast();
        send(world.eps[0], 1, std::ptr::null(), 0, start, bytes.len(), &raw const param)
    });
    assert_eq!(sent, Begun::Done);
    while counter.get() == before {
        // SAFETY: the worker is there.
        unsafe { ucp_worker_progress(world.workers[1]) };
    }
}

/// A window of receives, and their messages.
fn window(world: &World, into: &mut [u8; 8], bytes: &[u8; 8]) {
    let requests: Vec<_> =
        (0..WINDOW).map(|_| world.receive(1, into, (7, u64::MAX), &How::new()).request()).collect();
    for _ in 0..WINDOW {
        assert_eq!(world.send(0, bytes, 7, &How::new()), Begun::Done);
    }
    for request in requests {
        // SAFETY: the request was not given back, and the worker is there.
        unsafe {
            while ucp_request_check_status(request) == Status::IN_PROGRESS {
                ucp_worker_progress(world.workers[1]);
            }
            ucp_request_free(request);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().expect("CASE COUNT");
    let count: u64 = arguments.next().and_then(|text| text.parse().ok()).expect("CASE COUNT");
    // As programs do, it asks for what it uses.
    let features = match case.as_str() {
        "ucp-active-8" => UCP_FEATURE_TAG | UCP_FEATURE_AM,
        _ => UCP_FEATURE_TAG,
    };
    let world = World::of(features, Requests::default(), UCS_THREAD_MODE_SINGLE);
    let (bytes, mut into) = ([1; 8], [0; 8]);
    // Aligned, as a request has to be.
    let mut memory = vec![0_u128; 64];
    // SAFETY: the memory of numbers is memory of bytes.
    let memory = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), 1024) };
    match case.as_str() {
        "ucp-tag-8" => (0..count).for_each(|_| message(&world, memory, &mut into, &bytes)),
        "ucp-tag-8-windows" => {
            (0..count / WINDOW).for_each(|_| window(&world, &mut into, &bytes));
        }
        "ucp-active-8" => {
            let counter = Cell::new(0);
            count_messages(&world, &counter);
            (0..count).for_each(|_| active(&world, &bytes, &counter));
        }
        "ucp-idle-progress" => (0..count).for_each(|_| {
            // SAFETY: the worker is there.
            unsafe { ucp_worker_progress(world.workers[1]) };
        }),
        other => panic!("no case {other}"),
    }
}

//! Requests.

use super::param::{StatusPtr, status_of};
use crate::abi::numbers::*;
use crate::abi::request::{RequestAttr, TagRecvInfo};
use crate::abi::status::Status;
use crate::sys::handle;
use crate::sys::request::Request;
use crate::worker::{Posted, Worker};
use ayre_guest::copy;
use std::ffi::{c_char, c_int, c_void};

/// Makes progress until an operation has ended.
pub(super) fn wait(worker: &Worker, posted: Posted) -> Status {
    let request = match posted {
        Posted::Done | Posted::Received(_) => return Status::OK,
        Posted::Failed(status) => return status,
        Posted::Pending(request) => request,
    };
    while request.status() == Status::IN_PROGRESS {
        worker.progress();
    }
    let status = request.status();
    if request.give_back(true) {
        worker.recycle(request);
    }
    status
}

/// Of an operation without a request: it goes on, and the next flush tells its end.
pub(super) fn release(worker: &Worker, posted: Posted) -> Status {
    if let Posted::Pending(request) = posted
        && request.give_back(true)
    {
        worker.recycle(request);
    }
    status_of(posted)
}

/// # Safety
/// A request that a call has returned, or one of the program's that an operation uses.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_check_status(request: *mut c_void) -> Status {
    // SAFETY: the caller's promise.
    unsafe { Request::of_program(request) }.status()
}

/// # Safety
/// As [`ucp_request_check_status`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_is_completed(request: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let status = unsafe { Request::of_program(request) }.status();
    (status != Status::IN_PROGRESS).into()
}

/// # Safety
/// As [`ucp_request_check_status`]; the place may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_test(request: *mut c_void, info: *mut TagRecvInfo) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let request = Request::of_program(request);
        let status = request.status();
        if status != Status::IN_PROGRESS {
            copy::put(info, request.info());
        }
        status
    }
}

/// # Safety
/// As [`ucp_request_test`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_recv_request_test(
    request: *mut c_void,
    info: *mut TagRecvInfo,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { ucp_request_test(request, info) }
}

/// # Safety
/// As [`ucp_request_check_status`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_query(request: *mut c_void, attr: *mut RequestAttr) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let (status, mask) = (Request::of_program(request).status(), (*attr).field_mask);
        let room = mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE;
        if mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING != 0 && room != 0 {
            let text = if status == Status::IN_PROGRESS { "under way" } else { "ended" };
            copy::print((*attr).debug_string.cast::<c_char>(), (*attr).debug_string_size, text);
        }
        if mask & UCP_REQUEST_ATTR_FIELD_STATUS != 0 {
            (*attr).status = status;
        }
        if mask & UCP_REQUEST_ATTR_FIELD_MEM_TYPE != 0 {
            (*attr).mem_type = UCS_MEMORY_TYPE_HOST;
        }
    }
    Status::OK
}

/// # Safety
/// A request that a call has returned, which is not used again.
unsafe fn give_back(request: *mut c_void, is_deaf: bool) {
    // SAFETY: the caller's promise; its worker lives longer.
    unsafe {
        let request = Request::of_program(request);
        let worker = handle::at(request.owner::<Worker>());
        if request.give_back(is_deaf) {
            worker.recycle(request);
        }
    }
}

/// Its function is not called any more.
///
/// # Safety
/// A request that a call has returned, which is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_free(request: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { give_back(request, true) };
}

/// Its function is called still.
///
/// # Safety
/// As [`ucp_request_free`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_release(request: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { give_back(request, false) };
}

/// A request of the pool, for the calls that take one of the program's.
///
/// # Safety
/// A handle of a worker.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_alloc(worker: *const Worker) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe { handle::at(worker) }.lend_request().to_program()
}

/// # Safety
/// A handle of a worker, and a request of it that has not been given back.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_request_cancel(worker: *const Worker, request: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { handle::at(worker).cancel(Request::of_program(request)) };
}

/// UCX's words for a status.
#[unsafe(no_mangle)]
extern "C" fn ucs_status_string(status: Status) -> *const c_char {
    status.words().unwrap_or(c"Unknown error").as_ptr()
}

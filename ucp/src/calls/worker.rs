//! Workers.

use super::param::{Parameters, StatusPtr, answer};
use crate::abi::context::{WorkerAddressAttr, WorkerAttr, WorkerParams};
use crate::abi::numbers::*;
use crate::abi::request::{EndFn, RequestParam};
use crate::abi::status::Status;
use crate::address;
use crate::context::Context;
use crate::log;
use crate::status::of_setup;
use crate::sys::request::Told;
use crate::sys::{handle, text};
use crate::worker::{HEADER_MAX, Threads, Worker};
use ayre::error::SetupError;
use ayre_guest::copy;
use libc::FILE;
use rustix::fd::BorrowedFd;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::Arc;

/// The largest alignment of active messages' data.
const ALIGNMENT_MAX: usize = 4096;
/// The longest text about a request.
const DEBUG_TEXT: usize = 256;

/// # Safety
/// A handle of `ucp_init`; the structure is as its mask says; the place for the handle may be
/// written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_create(
    context: *const Context,
    params: *const WorkerParams,
    worker: *mut *mut Worker,
) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set. The program keeps its part of
    // the context.
    let made = unsafe {
        let mask = (&raw const (*params).field_mask).read();
        let has = |bit| mask & bit != 0;
        let is_multi = has(UCP_WORKER_PARAM_FIELD_THREAD_MODE)
            && (*params).thread_mode == UCS_THREAD_MODE_MULTI;
        let threads = if is_multi { Threads::Several } else { Threads::Serial };
        let name = if has(UCP_WORKER_PARAM_FIELD_NAME) { copy::text((*params).name) } else { None };
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let alignment = match has(UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT) {
            true => (*params).am_alignment.max(1),
            false => 1,
        };
        if !alignment.is_power_of_two() || alignment > ALIGNMENT_MAX {
            return Status::INVALID_PARAM;
        }
        let events = if has(UCP_WORKER_PARAM_FIELD_EVENTS) { (*params).events } else { 0 };
        let context = ManuallyDrop::new(Arc::from_raw(context));
        let made = Worker::new(&context, threads, (name, alignment, events & UCP_WAKEUP_EDGE != 0));
        let user =
            if has(UCP_WORKER_PARAM_FIELD_USER_DATA) { (*params).user_data } else { null_mut() };
        let epoll = has(UCP_WORKER_PARAM_FIELD_EVENT_FD).then(|| (*params).event_fd);
        made.and_then(|made| gather(made, epoll.map(|epoll| (epoll, user))))
    };
    match made {
        Ok(made) => {
            // SAFETY: the caller's promise.
            unsafe { copy::put(worker, handle::give(made)) };
            Status::OK
        }
        Err(error) => {
            log::warn(&error.to_string());
            of_setup(&error)
        }
    }
}

/// A worker that puts its descriptor into an epoll of the program's, if that has one.
///
/// # Safety
/// The epoll is the program's, and stays as long as the worker.
unsafe fn gather(
    mut worker: Worker,
    epoll: Option<(c_int, *mut c_void)>,
) -> Result<Worker, SetupError> {
    if let Some((epoll, user)) = epoll {
        // SAFETY: the caller's promise.
        let epoll = unsafe { BorrowedFd::borrow_raw(epoll) };
        worker.gather(epoll, user.expose_provenance() as u64)?;
    }
    Ok(worker)
}

/// # Safety
/// A handle of [`ucp_worker_create`]; neither it nor an endpoint of it is used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_destroy(worker: *mut Worker) {
    // SAFETY: the caller's promise.
    drop(unsafe { handle::take(worker) });
}

/// # Safety
/// A handle of [`ucp_worker_create`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_progress(worker: *const Worker) -> c_uint {
    // SAFETY: the caller's promise.
    unsafe { handle::at(worker) }.progress().into()
}

/// # Safety
/// A handle of [`ucp_worker_create`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_query(worker: *const Worker, attr: *mut WorkerAttr) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let (worker, mask) = (handle::at(worker), (*attr).field_mask);
        if mask & UCP_WORKER_ATTR_FIELD_THREAD_MODE != 0 {
            (*attr).thread_mode = match worker.threads() {
                Threads::Serial => UCS_THREAD_MODE_SINGLE,
                Threads::Several => UCS_THREAD_MODE_MULTI,
            };
        }
        if mask & UCP_WORKER_ATTR_FIELD_ADDRESS != 0 {
            (*attr).address = address_of(worker).cast();
            (*attr).address_length = address::BYTES;
        }
        if mask & UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER != 0 {
            (*attr).max_am_header = HEADER_MAX;
        }
        if mask & UCP_WORKER_ATTR_FIELD_NAME != 0 {
            let place = (&raw mut (*attr).name).cast::<c_char>();
            copy::print(place, size_of_val(&(*attr).name), &worker.name);
        }
        if mask & UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING != 0 {
            (*attr).max_debug_string = DEBUG_TEXT;
        }
    }
    Status::OK
}

/// The bytes of a worker's address, for [`ucp_worker_release_address`].
fn address_of(worker: &Worker) -> *mut [u8; address::BYTES] {
    handle::give(address::to_bytes(&worker.address()))
}

/// # Safety
/// A handle of [`ucp_worker_create`]; the places may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_get_address(
    worker: *const Worker,
    address: *mut *mut [u8; address::BYTES],
    length: *mut usize,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        copy::put(address, address_of(handle::at(worker)));
        copy::put(length, address::BYTES);
    }
    Status::OK
}

/// # Safety
/// An address of [`ucp_worker_get_address`] or [`ucp_worker_query`], which is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_release_address(
    _worker: *const Worker,
    address: *mut [u8; address::BYTES],
) {
    // SAFETY: the caller's promise.
    drop(unsafe { handle::take(address) });
}

/// # Safety
/// The bytes of an address; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_address_query(
    address: *const [u8; address::BYTES],
    attr: *mut WorkerAddressAttr,
) -> Status {
    // SAFETY: the caller's promise.
    let Some((_, name)) = address::of_bytes(unsafe { &*address }) else {
        return Status::INVALID_ADDR;
    };
    // SAFETY: the caller's promise.
    unsafe {
        if (*attr).field_mask & UCP_WORKER_ADDRESS_ATTR_FIELD_UID != 0 {
            (*attr).worker_uid = name;
        }
    }
    Status::OK
}

/// # Safety
/// A handle of [`ucp_worker_create`], and an open stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_print_info(worker: *const Worker, stream: *mut FILE) {
    // SAFETY: the caller's promise.
    let worker = unsafe { handle::at(worker) };
    let lines =
        format!("#\n# UCP worker '{}'\n#\n#   address: {} bytes\n#\n", worker.name, address::BYTES);
    // SAFETY: the caller's promise.
    unsafe { text::print(stream, &lines) };
}

/// # Safety
/// A handle of [`ucp_worker_create`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_fence(worker: *const Worker) -> Status {
    // SAFETY: the caller's promise.
    unsafe { handle::at(worker) }.fence();
    Status::OK
}

/// # Safety
/// A handle of [`ucp_worker_create`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_flush_nbx(
    worker: *const Worker,
    param: *const RequestParam,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    let (worker, param) = unsafe { (handle::at(worker), Parameters::of(param, Told::OfSend)) };
    answer(worker.flush(None, None, &param.wish))
}

/// # Safety
/// A handle of [`ucp_worker_create`], and a function for the end.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_flush_nb(
    worker: *const Worker,
    _flags: c_uint,
    end: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
) -> StatusPtr {
    let param = Parameters::of_callback(0, Told::OfSend(EndFn { send: end }), false);
    // SAFETY: the caller's promise.
    answer(unsafe { handle::at(worker) }.flush(None, None, &param.wish))
}

/// # Safety
/// A handle of [`ucp_worker_create`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_flush(worker: *const Worker) -> Status {
    let param = Parameters::of_callback(0, Told::Nobody, false);
    // SAFETY: the caller's promise.
    let worker = unsafe { handle::at(worker) };
    super::request::wait(worker, worker.flush(None, None, &param.wish))
}

//! Sleeping until something comes.

use crate::abi::status::Status;
use crate::sys::handle;
use crate::worker::Worker;
use ayre_guest::copy;
use std::ffi::{c_int, c_void};

/// # Safety
/// A handle of a worker; the place may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_get_efd(worker: *const Worker, place: *mut c_int) -> Status {
    // SAFETY: the caller's promise.
    let worker = unsafe { handle::at(worker) };
    match worker.descriptor() {
        Some(descriptor) => {
            // SAFETY: the caller's promise.
            unsafe { copy::put(place, descriptor) };
            Status::OK
        }
        // The program has not asked for wake-up, or has an epoll of its own.
        None => Status::UNSUPPORTED,
    }
}

/// # Safety
/// A handle of a worker.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_arm(worker: *const Worker) -> Status {
    // SAFETY: the caller's promise.
    let worker = unsafe { handle::at(worker) };
    if !worker.has_wakeup() {
        return Status::UNSUPPORTED;
    }
    if worker.arm() { Status::OK } else { Status::BUSY }
}

/// # Safety
/// A handle of a worker.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_wait(worker: *const Worker) -> Status {
    // SAFETY: the caller's promise.
    let worker = unsafe { handle::at(worker) };
    if !worker.has_wakeup() {
        return Status::UNSUPPORTED;
    }
    worker.sleep();
    Status::OK
}

/// Any thread may call it, whatever the worker's thread mode.
///
/// # Safety
/// A handle of a worker.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_worker_signal(worker: *const Worker) -> Status {
    // SAFETY: the caller's promise.
    let worker = unsafe { handle::at(worker) };
    if !worker.has_wakeup() {
        return Status::UNSUPPORTED;
    }
    worker.signal();
    Status::OK
}

/// Returns without news, as it may.
#[unsafe(no_mangle)]
extern "C" fn ucp_worker_wait_mem(_worker: *const Worker, _address: *mut c_void) {
    std::hint::spin_loop();
}

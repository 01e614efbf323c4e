//! Tagged messages.

use super::param::{Direction, Parameters, StatusPtr, answer, pointer_of, status_of};
use crate::abi::request::{EndFn, RequestParam, TagRecvInfo};
use crate::abi::status::Status;
use crate::sys::handle;
use crate::sys::request::{Request, Told};
use crate::worker::{Ep, Found, Posted, Worker};
use ayre_guest::copy;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// A function of the program's for the end of a send.
type SendFn = Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>;
/// A function of the program's for the end of a receive.
type RecvFn = Option<unsafe extern "C" fn(*mut c_void, Status, *const TagRecvInfo, *mut c_void)>;

/// # Safety
/// A handle of an endpoint, memory for the operation, and parameters for it.
#[inline(always)]
unsafe fn send(
    ep: *const Ep,
    (buffer, count): (*const c_void, usize),
    (tag, is_synchronous): (u64, bool),
    param: &Parameters,
) -> StatusPtr {
    // SAFETY: the caller's promise; the endpoint's worker lives longer.
    unsafe {
        let ep = handle::at(ep);
        match param.memory((buffer.cast_mut(), count), Direction::Out) {
            Ok(bytes) => {
                let message = (tag, bytes, is_synchronous);
                answer(handle::at(ep.worker.0).send(ep.remote, message, &param.wish))
            }
            Err(status) => pointer_of(status),
        }
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_send_nbx(
    ep: *const Ep,
    buffer: *const c_void,
    count: usize,
    tag: u64,
    param: *const RequestParam,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        let param = Parameters::of(param, Told::OfSend);
        send(ep, (buffer, count), (tag, false), &param)
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_send_sync_nbx(
    ep: *const Ep,
    buffer: *const c_void,
    count: usize,
    tag: u64,
    param: *const RequestParam,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        let param = Parameters::of(param, Told::OfSend);
        send(ep, (buffer, count), (tag, true), &param)
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_send_nb(
    ep: *const Ep,
    buffer: *const c_void,
    count: usize,
    datatype: u64,
    tag: u64,
    end: SendFn,
) -> StatusPtr {
    let param = Parameters::of_callback(datatype, Told::OfSend(EndFn { send: end }), false);
    // SAFETY: the caller's promise.
    unsafe { send(ep, (buffer, count), (tag, false), &param) }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_send_sync_nb(
    ep: *const Ep,
    buffer: *const c_void,
    count: usize,
    datatype: u64,
    tag: u64,
    end: SendFn,
) -> StatusPtr {
    let param = Parameters::of_callback(datatype, Told::OfSend(EndFn { send: end }), false);
    // SAFETY: the caller's promise.
    unsafe { send(ep, (buffer, count), (tag, true), &param) }
}

/// Returns a status where others return a request: the program has that.
///
/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_send_nbr(
    ep: *const Ep,
    buffer: *const c_void,
    count: usize,
    datatype: u64,
    tag: u64,
    request: *mut c_void,
) -> Status {
    let mut param = Parameters::of_callback(datatype, Told::Nobody, false);
    // SAFETY: the caller's promise.
    unsafe {
        let (ep, bytes) =
            (handle::at(ep), param.memory((buffer.cast_mut(), count), Direction::Out));
        param.wish.request = Some(Request::of_program(request));
        let Ok(bytes) = bytes else { return bytes.err().unwrap_or(Status::INVALID_PARAM) };
        status_of(handle::at(ep.worker.0).send(ep.remote, (tag, bytes, false), &param.wish))
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_recv_nbx(
    worker: *const Worker,
    buffer: *mut c_void,
    count: usize,
    tag: u64,
    mask: u64,
    param: *const RequestParam,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        let param = Parameters::of(param, Told::OfReceive);
        receive(worker, (buffer, count), (tag, mask), &param)
    }
}

/// # Safety
/// A handle of a worker, memory for the operation, and parameters for it.
#[inline(always)]
unsafe fn receive(
    worker: *const Worker,
    (buffer, count): (*mut c_void, usize),
    pattern: (u64, u64),
    param: &Parameters,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        match param.memory((buffer, count), Direction::In) {
            Ok(into) => param.answer(handle::at(worker).receive(pattern, into, &param.wish)),
            Err(status) => pointer_of(status),
        }
    }
}

/// The function is called in any case, and a request returned.
///
/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_recv_nb(
    worker: *const Worker,
    buffer: *mut c_void,
    count: usize,
    datatype: u64,
    tag: u64,
    mask: u64,
    end: RecvFn,
) -> StatusPtr {
    let param = Parameters::of_callback(datatype, Told::OfReceive(EndFn { recv: end }), true);
    // SAFETY: the caller's promise.
    unsafe { receive(worker, (buffer, count), (tag, mask), &param) }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_recv_nbr(
    worker: *const Worker,
    buffer: *mut c_void,
    count: usize,
    datatype: u64,
    tag: u64,
    mask: u64,
    request: *mut c_void,
) -> Status {
    let mut param = Parameters::of_callback(datatype, Told::Nobody, false);
    // SAFETY: the caller's promise.
    unsafe {
        param.wish.request = Some(Request::of_program(request));
        let into = param.memory((buffer, count), Direction::In);
        let Ok(into) = into else { return into.err().unwrap_or(Status::INVALID_PARAM) };
        match handle::at(worker).receive((tag, mask), into, &param.wish) {
            Posted::Failed(status) => status,
            // The program asks for the rest.
            _ => Status::OK,
        }
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_probe_nb(
    worker: *const Worker,
    tag: u64,
    mask: u64,
    removes: c_int,
    info: *mut TagRecvInfo,
) -> *mut Found {
    // SAFETY: the caller's promise.
    let worker = unsafe { handle::at(worker) };
    let Some((found, told)) = worker.probe((tag, mask), removes != 0) else { return null_mut() };
    // SAFETY: the caller's promise.
    unsafe { copy::put(info, told) };
    match removes {
        // Of one that stays, nothing but the answer is used.
        0 => std::ptr::dangling_mut(),
        _ => handle::give(found),
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_msg_recv_nbx(
    worker: *const Worker,
    buffer: *mut c_void,
    count: usize,
    message: *mut Found,
    param: *const RequestParam,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        let param = Parameters::of(param, Told::OfReceive);
        receive_found(worker, (buffer, count), message, &param)
    }
}

/// # Safety
/// A handle of a worker, memory for the operation, a message of [`ucp_tag_probe_nb`], and
/// parameters.
unsafe fn receive_found(
    worker: *const Worker,
    (buffer, count): (*mut c_void, usize),
    message: *mut Found,
    param: &Parameters,
) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        match param.memory((buffer, count), Direction::In) {
            Ok(into) => {
                let found = handle::take(message);
                param.answer(handle::at(worker).receive_found(&found, into, &param.wish))
            }
            Err(status) => pointer_of(status),
        }
    }
}

/// # Safety
/// As UCP's headers say.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_tag_msg_recv_nb(
    worker: *const Worker,
    buffer: *mut c_void,
    count: usize,
    datatype: u64,
    message: *mut Found,
    end: RecvFn,
) -> StatusPtr {
    let param = Parameters::of_callback(datatype, Told::OfReceive(EndFn { recv: end }), true);
    // SAFETY: the caller's promise.
    unsafe { receive_found(worker, (buffer, count), message, &param) }
}

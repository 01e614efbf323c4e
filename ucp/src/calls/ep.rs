//! Endpoints.

use super::param::{Parameters, StatusPtr, answer};
use crate::abi::endpoint::{EpAttr, EpParams};
use crate::abi::numbers::*;
use crate::abi::request::{EndFn, RequestParam};
use crate::abi::status::Status;
use crate::address;
use crate::log;
use crate::status::of_setup;
use crate::sys::handle::Place;
use crate::sys::handler::ErrorHandler;
use crate::sys::request::Told;
use crate::sys::{handle, text};
use crate::worker::{Ep, Worker};
use ayre_guest::copy;
use libc::FILE;
use std::ffi::{c_char, c_uint, c_void};
use std::ptr::null_mut;

/// # Safety
/// A handle of a worker; the structure is as its mask says, and names an address of a worker; the
/// place for the handle may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_create(
    worker: *const Worker,
    params: *const EpParams,
    ep: *mut *mut Ep,
) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    let (bytes, name, user_data, handler) = unsafe {
        let mask = (&raw const (*params).field_mask).read();
        let has = |bit| mask & bit != 0;
        if !has(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) {
            let by_socket = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_CONN_REQUEST;
            return if has(by_socket) { Status::UNSUPPORTED } else { Status::INVALID_PARAM };
        }
        let name = if has(UCP_EP_PARAM_FIELD_NAME) { copy::text((*params).name) } else { None };
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let hears = has(UCP_EP_PARAM_FIELD_ERR_HANDLER)
            && has(UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE)
            && (*params).err_mode != UCP_ERR_HANDLING_MODE_NONE;
        let handler = hears.then(|| (*params).err_handler);
        // What the endpoint knows goes before what the function knows.
        let user_data = match handler {
            _ if has(UCP_EP_PARAM_FIELD_USER_DATA) => (*params).user_data,
            Some(handler) => handler.arg,
            None => null_mut(),
        };
        let handler = handler.map(|handler| ErrorHandler::new(handler.cb, user_data));
        (&*(*params).address.cast::<[u8; address::BYTES]>(), name, user_data, handler)
    };
    let Some((address, _)) = address::of_bytes(bytes) else { return Status::INVALID_ADDR };
    // SAFETY: the caller's promise.
    match unsafe { handle::at(worker) }.find(&address) {
        Ok(remote) => {
            let made = handle::give(Ep {
                worker: Place(worker),
                remote,
                name,
                user_data: Place(user_data),
            });
            // SAFETY: the caller's promise.
            unsafe {
                handle::at(worker).add_ep(remote, made, handler);
                copy::put(ep, made);
            }
            Status::OK
        }
        Err(error) => {
            log::warn(&error.to_string());
            of_setup(&error)
        }
    }
}

/// # Safety
/// A handle of [`ucp_ep_create`], which is not used again; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_close_nbx(ep: *mut Ep, param: *const RequestParam) -> StatusPtr {
    // SAFETY: the caller's promise.
    unsafe {
        let flags = match (*param).op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS {
            0 => 0,
            _ => (*param).flags,
        };
        let is_forced = flags & UCP_EP_CLOSE_FLAG_FORCE != 0;
        close(ep, is_forced, &Parameters::of(param, Told::OfSend))
    }
}

/// Takes an endpoint from the program.
///
/// # Safety
/// A handle of [`ucp_ep_create`], or one for replies, which is not used again.
unsafe fn take<'a>(ep: *mut Ep) -> (&'a Worker, Box<Ep>) {
    // SAFETY: the caller's promise; its worker lives longer.
    unsafe {
        let worker = handle::at((*ep).worker.0);
        (worker, worker.remove_ep(ep).unwrap_or_else(|| handle::take(ep)))
    }
}

/// # Safety
/// As [`take`].
unsafe fn close(ep: *mut Ep, is_forced: bool, param: &Parameters) -> StatusPtr {
    // SAFETY: the caller's promise.
    let (worker, ep) = unsafe { take(ep) };
    answer(worker.close((ep.remote, ep), is_forced, &param.wish))
}

/// # Safety
/// As [`ucp_ep_close_nbx`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_close_nb(ep: *mut Ep, mode: c_uint) -> StatusPtr {
    let param = Parameters::of_callback(0, Told::Nobody, false);
    // SAFETY: the caller's promise.
    unsafe { close(ep, mode == UCP_EP_CLOSE_MODE_FORCE, &param) }
}

/// # Safety
/// As [`ucp_ep_close_nbx`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_disconnect_nb(ep: *mut Ep) -> StatusPtr {
    let param = Parameters::of_callback(0, Told::Nobody, false);
    // SAFETY: the caller's promise.
    unsafe { close(ep, false, &param) }
}

/// # Safety
/// As [`ucp_ep_close_nbx`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_destroy(ep: *mut Ep) {
    let param = Parameters::of_callback(0, Told::Nobody, false);
    // SAFETY: the caller's promise.
    let (worker, ep) = unsafe { take(ep) };
    super::request::wait(worker, worker.close((ep.remote, ep), false, &param.wish));
}

/// # Safety
/// A handle of [`ucp_ep_create`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_flush_nbx(ep: *const Ep, param: *const RequestParam) -> StatusPtr {
    // SAFETY: the caller's promise; its worker lives longer.
    unsafe {
        let (ep, param) = (handle::at(ep), Parameters::of(param, Told::OfSend));
        answer(handle::at(ep.worker.0).flush(Some(ep.remote), None, &param.wish))
    }
}

/// # Safety
/// A handle of [`ucp_ep_create`], and a function for the end.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_flush_nb(
    ep: *const Ep,
    _flags: c_uint,
    end: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
) -> StatusPtr {
    let param = Parameters::of_callback(0, Told::OfSend(EndFn { send: end }), false);
    // SAFETY: the caller's promise; its worker lives longer.
    unsafe {
        let ep = handle::at(ep);
        answer(handle::at(ep.worker.0).flush(Some(ep.remote), None, &param.wish))
    }
}

/// # Safety
/// A handle of [`ucp_ep_create`].
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_flush(ep: *const Ep) -> Status {
    let param = Parameters::of_callback(0, Told::Nobody, false);
    // SAFETY: the caller's promise; its worker lives longer.
    unsafe {
        let (ep, worker) = (handle::at(ep), handle::at((*ep).worker.0));
        super::request::wait(worker, worker.flush(Some(ep.remote), None, &param.wish))
    }
}

/// # Safety
/// A handle of [`ucp_ep_create`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_query(ep: *const Ep, attr: *mut EpAttr) -> Status {
    let by_socket = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let (ep, mask) = (handle::at(ep), (*attr).field_mask);
        if mask & UCP_EP_ATTR_FIELD_NAME != 0 {
            let place = (&raw mut (*attr).name).cast::<c_char>();
            copy::print(place, size_of_val(&(*attr).name), &ep.name);
        }
        if mask & UCP_EP_ATTR_FIELD_TRANSPORTS != 0 {
            (*attr).transports.num_entries = 0;
        }
        if mask & UCP_EP_ATTR_FIELD_USER_DATA != 0 {
            (*attr).user_data = ep.user_data.0.cast_mut();
        }
        // Those by address have none.
        if mask & by_socket != 0 { Status::NOT_CONNECTED } else { Status::OK }
    }
}

/// # Safety
/// A handle of [`ucp_ep_create`], and an open stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_print_info(ep: *const Ep, stream: *mut FILE) {
    // SAFETY: the caller's promise.
    unsafe {
        let lines = format!("#\n# UCP endpoint '{}'\n#\n", handle::at(ep).name);
        text::print(stream, &lines);
    }
}

//! Contexts, and the library itself.

use crate::abi::context::{ContextAttr, LibAttr, Params};
use crate::abi::numbers::*;
use crate::abi::status::Status;
use crate::config::{Config, VERSION};
use crate::context::Context;
use crate::log;
use crate::status::of_setup;
use crate::sys::request::{HEAD_BYTES, Kind};
use crate::sys::text;
use ayre_guest::copy;
use libc::FILE;
use std::ffi::{c_char, c_uint};
use std::sync::Arc;

/// Features that a program may ask for today.
const FEATURES: u64 = UCP_FEATURE_TAG
    | UCP_FEATURE_RMA
    | UCP_FEATURE_AMO32
    | UCP_FEATURE_AMO64
    | UCP_FEATURE_AM
    | UCP_FEATURE_WAKEUP;

/// # Safety
/// The places may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_get_version(major: *mut c_uint, minor: *mut c_uint, release: *mut c_uint) {
    let (a, b, c) = VERSION;
    // SAFETY: the caller's promise.
    unsafe {
        copy::put(major, a);
        copy::put(minor, b);
        copy::put(release, c);
    }
}

#[unsafe(no_mangle)]
extern "C" fn ucp_get_version_string() -> *const c_char {
    const _: () = assert!(matches!(VERSION, (1, 22, 0)));
    c"1.22.0".as_ptr()
}

/// # Safety
/// The structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_lib_query(attr: *mut LibAttr) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        if (*attr).field_mask & UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL != 0 {
            (*attr).max_thread_level = UCS_THREAD_MODE_MULTI;
        }
    }
    Status::OK
}

/// The inline `ucp_init` of UCP's headers calls this with their version.
///
/// # Safety
/// The structure is as its mask says; the place for the handle may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_init_version(
    _major: c_uint,
    _minor: c_uint,
    params: *const Params,
    _config: *const Config,
    context: *mut *const Context,
) -> Status {
    ayre::log::set_sink(log::of_engine);
    // SAFETY: the caller's promise, for each member whose bit is set.
    let (features, made) = unsafe {
        let mask = (&raw const (*params).field_mask).read();
        let has = |bit| mask & bit != 0;
        let requests = Kind {
            size: if has(UCP_PARAM_FIELD_REQUEST_SIZE) { (*params).request_size } else { 0 },
            init: (*params).request_init.filter(|_| has(UCP_PARAM_FIELD_REQUEST_INIT)),
            cleanup: (*params).request_cleanup.filter(|_| has(UCP_PARAM_FIELD_REQUEST_CLEANUP)),
        };
        let name = if has(UCP_PARAM_FIELD_NAME) { copy::text((*params).name) } else { None };
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_shared = has(UCP_PARAM_FIELD_MT_WORKERS_SHARED) && (*params).mt_workers_shared != 0;
        let features = if has(UCP_PARAM_FIELD_FEATURES) { (*params).features } else { 0 };
        let asks = |feature| features & feature != 0;
        let ways = [is_shared, asks(UCP_FEATURE_AM), asks(UCP_FEATURE_WAKEUP)];
        (features, Context::new(requests, name, ways))
    };
    if features & !FEATURES != 0 {
        log::warn(&format!(
            "this libucp has no streams yet: the features {:#x} of ucp_init are not \
             there",
            features & !FEATURES,
        ));
        return Status::UNSUPPORTED;
    }
    match made {
        Ok(made) => {
            // SAFETY: the caller's promise.
            unsafe { copy::put(context, Arc::into_raw(Arc::new(made))) };
            Status::OK
        }
        Err(error) => {
            log::warn(&error.to_string());
            of_setup(&error)
        }
    }
}

/// # Safety
/// A handle of [`ucp_init_version`], which is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_cleanup(context: *const Context) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(context) });
}

/// # Safety
/// A handle of [`ucp_init_version`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_context_query(context: *const Context, attr: *mut ContextAttr) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let (context, mask) = (&*context, (*attr).field_mask);
        if mask & UCP_ATTR_FIELD_REQUEST_SIZE != 0 {
            (*attr).request_size = HEAD_BYTES;
        }
        if mask & UCP_ATTR_FIELD_THREAD_MODE != 0 {
            let several = context.is_shared;
            (*attr).thread_mode =
                if several { UCS_THREAD_MODE_MULTI } else { UCS_THREAD_MODE_SINGLE };
        }
        if mask & UCP_ATTR_FIELD_MEMORY_TYPES != 0 {
            (*attr).memory_types = 1 << UCS_MEMORY_TYPE_HOST;
        }
        if mask & UCP_ATTR_FIELD_NAME != 0 {
            let place = (&raw mut (*attr).name).cast::<c_char>();
            copy::print(place, size_of_val(&(*attr).name), &context.name);
        }
        if mask & UCP_ATTR_FIELD_DEVICE_COUNTER_SIZE != 0 {
            (*attr).device_counter_size = 0;
        }
    }
    Status::OK
}

/// Open MPI looks in this text for transports: one line is a must.
const CONTEXT_TEXT: &str = "#
# UCP context
#
#     component 0  :  ayre
#            md 0  :  component 0  ayre
#
#      resource 0  :  md 0  dev 0  flags -- ayre/memory
#
";

/// # Safety
/// A handle of [`ucp_init_version`], and an open stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_context_print_info(_context: *const Context, stream: *mut FILE) {
    // SAFETY: the caller's promise.
    unsafe { text::print(stream, CONTEXT_TEXT) };
}

//! Datatypes whose memory the program packs.

use crate::abi::numbers::{UCP_DATATYPE_CLASS_MASK, UCP_DATATYPE_GENERIC};
use crate::abi::request::GenericDtOps;
use crate::abi::status::Status;
use crate::sys::handle;
use crate::sys::packing::Generic;
use ayre_guest::copy;
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;

/// # Safety
/// The structure has functions for such memory; the place for the datatype may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_dt_create_generic(
    ops: *const GenericDtOps,
    context: *mut c_void,
    datatype: *mut u64,
) -> Status {
    // SAFETY: the caller's promise.
    let made = handle::give(Generic { ops: unsafe { ops.read() }, context });
    let number = made.expose_provenance() as u64;
    debug_assert_eq!(number & UCP_DATATYPE_CLASS_MASK, 0, "its address has room for the class");
    // SAFETY: the caller's promise.
    unsafe { copy::put(datatype, number | UCP_DATATYPE_GENERIC) };
    Status::OK
}

/// Nothing happens to datatypes that have nothing to take back.
///
/// # Safety
/// A datatype, which is not used again if [`ucp_dt_create_generic`] has made it.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_dt_destroy(datatype: u64) {
    if datatype & UCP_DATATYPE_CLASS_MASK == UCP_DATATYPE_GENERIC {
        let made = (datatype & !UCP_DATATYPE_CLASS_MASK) as usize;
        // SAFETY: the caller's promise.
        drop(unsafe { handle::take(with_exposed_provenance_mut::<Generic>(made)) });
    }
}

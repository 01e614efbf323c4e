//! Keys of mapped memory.

use crate::abi::memory::{MemhBufferReleaseParams, MemhPackParams, RkeyCompareParams};
use crate::abi::numbers::{UCP_MEMH_PACK_FLAG_EXPORT, UCP_MEMH_PACK_PARAM_FIELD_FLAGS};
use crate::abi::status::Status;
use crate::context::{Context, Mapped};
use crate::key::{self, Key};
use crate::log;
use crate::rkey::Rkey;
use crate::sys::handle;
use crate::worker::{Ep, Worker};
use ayre_guest::copy;
use std::cmp::Ordering;
use std::ffi::{c_int, c_void};

/// The bytes of a key.
type Bytes = [u8; key::BYTES];

/// # Safety
/// A handle of `ucp_mem_map`; the places may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_rkey_pack(
    _context: *const Context,
    memory: *const Mapped,
    bytes: *mut *mut Bytes,
    size: *mut usize,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        copy::put(bytes, handle::give(handle::at(memory).key.to_bytes()));
        copy::put(size, key::BYTES);
    }
    Status::OK
}

/// # Safety
/// Bytes of [`ucp_rkey_pack`], which are not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_rkey_buffer_release(bytes: *mut Bytes) {
    // SAFETY: the caller's promise.
    drop(unsafe { handle::take(bytes) });
}

/// # Safety
/// As [`ucp_rkey_pack`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_memh_pack(
    memory: *const Mapped,
    params: *const MemhPackParams,
    bytes: *mut *mut Bytes,
    size: *mut usize,
) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let has_flags = (*params).field_mask & UCP_MEMH_PACK_PARAM_FIELD_FLAGS != 0;
        if has_flags && (*params).flags & UCP_MEMH_PACK_FLAG_EXPORT != 0 {
            log::warn("memory cannot be exported to another process's own use");
            return Status::UNSUPPORTED;
        }
        ucp_rkey_pack(std::ptr::null(), memory, bytes, size)
    }
}

/// # Safety
/// Bytes of [`ucp_memh_pack`], which are not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_memh_buffer_release(
    bytes: *mut Bytes,
    _params: *const MemhBufferReleaseParams,
) {
    // SAFETY: the caller's promise.
    unsafe { ucp_rkey_buffer_release(bytes) };
}

/// # Safety
/// A handle of an endpoint; bytes that begin as a key does are a whole one; the place for the
/// handle may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_ep_rkey_unpack(
    ep: *const Ep,
    bytes: *const c_void,
    rkey: *mut *mut Rkey,
) -> Status {
    // SAFETY: the caller's promise: other libraries' may be shorter.
    let key = unsafe {
        match key::is_ours(copy::bytes(bytes, key::MARK.len())) {
            true => Key::of_bytes(&bytes.cast::<Bytes>().read()),
            false => None,
        }
    };
    let Some(key) = key else {
        log::warn("a key of memory is not of this library, or of another version of it");
        return Status::INVALID_PARAM;
    };
    // SAFETY: the caller's promise; the endpoint's worker lives longer.
    unsafe {
        let worker = handle::at(handle::at(ep).worker.0);
        copy::put(rkey, handle::give(Rkey::new(worker.context(), key)));
    }
    Status::OK
}

/// Memory of other hosts, and memory that the program has made itself, cannot be reached so.
///
/// # Safety
/// A handle of [`ucp_ep_rkey_unpack`]; the place for the address may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_rkey_ptr(
    rkey: *const Rkey,
    address: u64,
    place: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    let rkey = unsafe { handle::at(rkey) };
    let Some(reachable) = &rkey.reachable else { return Status::UNREACHABLE };
    let Some(offset) = rkey.key.offset_of(address, 0) else { return Status::OUT_OF_RANGE };
    // SAFETY: the caller's promise.
    unsafe { copy::put(place, reachable.at(offset, 0).cast()) };
    Status::OK
}

/// # Safety
/// Handles of [`ucp_ep_rkey_unpack`]; the place for the answer may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_rkey_compare(
    _worker: *const Worker,
    one: *const Rkey,
    other: *const Rkey,
    _params: *const RkeyCompareParams,
    result: *mut c_int,
) -> Status {
    // SAFETY: the caller's promise.
    let [one, other] = unsafe { [handle::at(one), handle::at(other)] }.map(|it| it.key.to_bytes());
    let answer = match one.cmp(&other) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    };
    // SAFETY: the caller's promise.
    unsafe { copy::put(result, answer) };
    Status::OK
}

/// # Safety
/// A handle of [`ucp_ep_rkey_unpack`], which is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_rkey_destroy(rkey: *mut Rkey) {
    // SAFETY: the caller's promise.
    drop(unsafe { handle::take(rkey) });
}

//! Mapped memory. Peers have no access to it yet: it is for the program's own messages.

use crate::abi::memory::{MemAttr, MemMapParams};
use crate::abi::numbers::*;
use crate::abi::status::Status;
use crate::context::Context;
use crate::sys::handle;
use crate::sys::memory::Mapped;
use ayre_guest::copy;
use std::ffi::c_void;
use std::ptr::null_mut;

/// # Safety
/// A handle of `ucp_init`; the structure is as its mask says, and names memory that stays until it
/// is unmapped; the place for the handle may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_mem_map(
    _context: *const Context,
    params: *const MemMapParams,
    memory: *mut *mut Mapped,
) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    let (address, length, flags, kind) = unsafe {
        let mask = (&raw const (*params).field_mask).read();
        let has = |bit| mask & bit != 0;
        if !has(UCP_MEM_MAP_PARAM_FIELD_LENGTH) || has(UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER)
        {
            return Status::INVALID_PARAM;
        }
        (
            if has(UCP_MEM_MAP_PARAM_FIELD_ADDRESS) { (*params).address } else { null_mut() },
            (*params).length,
            if has(UCP_MEM_MAP_PARAM_FIELD_FLAGS) { (*params).flags } else { 0 },
            if has(UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) { (*params).memory_type } else { 0 },
        )
    };
    if kind != UCS_MEMORY_TYPE_HOST || flags & UCP_MEM_MAP_FIXED != 0 {
        return Status::UNSUPPORTED;
    }
    let mapped = match address.is_null() || flags & UCP_MEM_MAP_ALLOCATE != 0 {
        true if length == 0 => Some(Mapped::of_program(null_mut(), 0)),
        true => Mapped::make(length),
        false => Some(Mapped::of_program(address, length)),
    };
    let Some(mapped) = mapped else { return Status::NO_MEMORY };
    // SAFETY: the caller's promise.
    unsafe { copy::put(memory, handle::give(mapped)) };
    Status::OK
}

/// # Safety
/// A handle of [`ucp_mem_map`], which is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_mem_unmap(_context: *const Context, memory: *mut Mapped) -> Status {
    // SAFETY: the caller's promise.
    drop(unsafe { handle::take(memory) });
    Status::OK
}

/// # Safety
/// A handle of [`ucp_mem_map`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_mem_query(memory: *const Mapped, attr: *mut MemAttr) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let (memory, mask) = (handle::at(memory), (*attr).field_mask);
        if mask & UCP_MEM_ATTR_FIELD_ADDRESS != 0 {
            (*attr).address = memory.address;
        }
        if mask & UCP_MEM_ATTR_FIELD_LENGTH != 0 {
            (*attr).length = memory.length;
        }
        if mask & UCP_MEM_ATTR_FIELD_MEM_TYPE != 0 {
            (*attr).mem_type = UCS_MEMORY_TYPE_HOST;
        }
    }
    Status::OK
}

/// Advice changes nothing here.
#[unsafe(no_mangle)]
extern "C" fn ucp_mem_advise(
    _context: *const Context,
    _memory: *const Mapped,
    _params: *const c_void,
) -> Status {
    Status::OK
}

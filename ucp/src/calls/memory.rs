//! Mapped memory, which peers may access.

use crate::abi::memory::{MemAttr, MemMapParams};
use crate::abi::numbers::*;
use crate::abi::status::Status;
use crate::context::{Context, Mapped, Wanted};
use crate::log;
use crate::status::of_setup;
use crate::sys::memory::Block;
use crate::sys::window::At;
use crate::sys::{handle, text};
use ayre::Rights;
use ayre_guest::copy;
use libc::FILE;
use std::ffi::{c_char, c_uint, c_void};
use std::ptr::null_mut;

/// # Safety
/// A handle of `ucp_init`; the structure is as its mask says, and names memory that stays until it
/// is unmapped; the place for the handle may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_mem_map(
    context: *const Context,
    params: *const MemMapParams,
    memory: *mut *mut Mapped,
) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    let (address, length, flags, protection, kind) = unsafe {
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
            has(UCP_MEM_MAP_PARAM_FIELD_PROT).then(|| (*params).prot),
            if has(UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) { (*params).memory_type } else { 0 },
        )
    };
    if kind != UCS_MEMORY_TYPE_HOST {
        return Status::UNSUPPORTED;
    }
    // SAFETY: the caller's promise.
    let wanted = match unsafe { wanted((address, length), flags) } {
        Ok(wanted) => wanted,
        Err(status) => return status,
    };
    // SAFETY: the caller's promise.
    match unsafe { handle::at(context) }.map(wanted, rights(protection)) {
        Ok(mapped) => {
            // SAFETY: the caller's promise.
            unsafe { copy::put(memory, handle::give(mapped)) };
            Status::OK
        }
        Err(error) => {
            log::warn(&error.to_string());
            of_setup(&error)
        }
    }
}

/// The memory that a program asks for.
///
/// # Errors
/// *invalid parameter* for an exact place that is none.
///
/// # Safety
/// Memory at the address stays until it is unmapped; what lies at an exact place is not used any
/// more.
unsafe fn wanted((address, length): (*mut c_void, usize), flags: c_uint) -> Result<Wanted, Status> {
    let is_exact = flags & UCP_MEM_MAP_FIXED != 0;
    if is_exact && (address.is_null() || !address.addr().is_multiple_of(Block::PAGE)) {
        return Err(Status::INVALID_PARAM);
    }
    let allocates = address.is_null() || flags & UCP_MEM_MAP_ALLOCATE != 0;
    Ok(match (allocates, is_exact) {
        _ if length == 0 => Wanted::Nothing,
        // SAFETY: the caller's promise.
        (false, _) => Wanted::OfProgram(unsafe { Block::of_program(address, length) }),
        // SAFETY: the caller's promise.
        (true, true) => Wanted::New(length, unsafe { At::exactly(address) }),
        (true, false) => Wanted::New(length, At::rather(address)),
    })
}

/// The rights of peers: all of them, unless the program says otherwise.
fn rights(protection: Option<c_uint>) -> Rights {
    let Some(protection) = protection else { return Rights::READ | Rights::WRITE };
    let mut rights = Rights::empty();
    rights.set(Rights::READ, protection & UCP_MEM_MAP_PROT_REMOTE_READ != 0);
    rights.set(Rights::WRITE, protection & UCP_MEM_MAP_PROT_REMOTE_WRITE != 0);
    rights
}

/// Open MPI 4.1 gives null for windows without memory of their own.
///
/// # Safety
/// Handles of `ucp_init` and [`ucp_mem_map`], or null; the latter is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_mem_unmap(context: *const Context, memory: *mut Mapped) -> Status {
    if memory.is_null() {
        return Status::INVALID_PARAM;
    }
    // SAFETY: the caller's promise.
    let (context, memory) = unsafe { (handle::at(context), handle::take(memory)) };
    context.unmap(&memory);
    Status::OK
}

/// # Safety
/// A handle of [`ucp_mem_map`]; the structure is as its mask says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_mem_query(memory: *const Mapped, attr: *mut MemAttr) -> Status {
    // SAFETY: the caller's promise, for each member whose bit is set.
    unsafe {
        let (block, mask) = (&handle::at(memory).block, (*attr).field_mask);
        if mask & UCP_MEM_ATTR_FIELD_ADDRESS != 0 {
            (*attr).address = block.address;
        }
        if mask & UCP_MEM_ATTR_FIELD_LENGTH != 0 {
            (*attr).length = block.length;
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

/// # Safety
/// A string of C that says how much memory, and an open stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn ucp_mem_print_info(
    size: *const c_char,
    _context: *const Context,
    stream: *mut FILE,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let size = copy::text(size).map(|size| size.to_string_lossy()).unwrap_or_default();
        text::print(stream, &format!("#\n# UCP memory of {size} bytes\n#\n#   a memory file\n#\n"));
    }
}

//! Mapped memory and keys.

use ayre_guest::c_structs;
use std::ffi::{c_uint, c_void};

c_structs! {
    MEMORIES:
    struct MemMapParams = "ucp_mem_map_params_t" {
        field_mask: u64,
        address: *mut c_void,
        length: usize,
        flags: c_uint,
        prot: c_uint,
        memory_type: c_uint,
        exported_memh_buffer: *const c_void = since(1, 14),
    }

    struct MemAttr = "ucp_mem_attr_t" {
        field_mask: u64,
        address: *mut c_void,
        length: usize,
        mem_type: c_uint = since(1, 11),
    }

    struct MemAdviseParams = "ucp_mem_advise_params_t" {
        field_mask: u64,
        address: *mut c_void,
        length: usize,
        advice: c_uint,
    }

    struct MemhPackParams = "ucp_memh_pack_params_t" {
        field_mask: u64 = since(1, 14),
        flags: u64 = since(1, 14),
    }

    struct MemhBufferReleaseParams = "ucp_memh_buffer_release_params_t" {
        field_mask: u64 = since(1, 14),
    }

    struct RkeyCompareParams = "ucp_rkey_compare_params_t" {
        field_mask: u64 = since(1, 16),
    }
}

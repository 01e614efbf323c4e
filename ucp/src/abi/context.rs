//! Contexts and workers.

use super::handles::Address;
use ayre_guest::c_structs;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Prepares the program's part of a request, or takes it back.
pub type RequestInitFn = Option<unsafe extern "C" fn(request: *mut c_void)>;

c_structs! {
    CONTEXTS:
    struct Params = "ucp_params_t" {
        field_mask: u64,
        features: u64,
        request_size: usize,
        request_init: RequestInitFn,
        request_cleanup: RequestInitFn,
        tag_sender_mask: u64,
        mt_workers_shared: c_int,
        estimated_num_eps: usize,
        estimated_num_ppn: usize,
        name: *const c_char = since(1, 11),
        node_local_id: usize = since(1, 20),
    }

    struct LibAttr = "ucp_lib_attr_t" {
        field_mask: u64 = since(1, 11),
        max_thread_level: c_uint = since(1, 11),
    }

    struct ContextAttr = "ucp_context_attr_t" {
        field_mask: u64,
        request_size: usize,
        thread_mode: c_uint,
        memory_types: u64,
        name: [c_char; 32] = since(1, 11),
        device_counter_size: usize = since(1, 20),
    }

    struct WorkerParams = "ucp_worker_params_t" {
        field_mask: u64,
        thread_mode: c_uint,
        cpu_mask: [u64; 16],
        events: c_uint,
        user_data: *mut c_void,
        event_fd: c_int,
        flags: u64 = since(1, 11),
        name: *const c_char = since(1, 11),
        am_alignment: usize = since(1, 12),
        client_id: u64 = since(1, 12),
    }

    struct WorkerAttr = "ucp_worker_attr_t" {
        field_mask: u64,
        thread_mode: c_uint,
        address_flags: u32,
        address: *mut Address,
        address_length: usize,
        max_am_header: usize,
        name: [c_char; 32] = since(1, 11),
        max_debug_string: usize = since(1, 11),
    }

    struct WorkerAddressAttr = "ucp_worker_address_attr_t" {
        field_mask: u64 = since(1, 12),
        worker_uid: u64 = since(1, 12),
    }
}

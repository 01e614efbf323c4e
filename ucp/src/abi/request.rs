//! Requests, messages and datatypes.

use super::handles::{Ep, Mem, Rkey};
use super::status::Status;
use ayre_guest::c_structs;
use std::ffi::{c_char, c_uint, c_void};
use std::fmt;

/// The program's function for the end of an operation, which says of what kind it is.
#[derive(Clone, Copy)]
#[repr(C)]
pub union EndFn {
    pub send: Option<unsafe extern "C" fn(*mut c_void, Status, user: *mut c_void)>,
    pub recv:
        Option<unsafe extern "C" fn(*mut c_void, Status, *const TagRecvInfo, user: *mut c_void)>,
    /// Of streams and of active messages.
    pub recv_bytes: Option<unsafe extern "C" fn(*mut c_void, Status, usize, user: *mut c_void)>,
}

/// The place for what is told of a receive that ends in its call.
#[derive(Clone, Copy)]
#[repr(C)]
pub union RecvInfo {
    pub length: *mut usize,
    pub tag_info: *mut TagRecvInfo,
}

impl fmt::Debug for EndFn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EndFn").finish_non_exhaustive()
    }
}

impl fmt::Debug for RecvInfo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RecvInfo").finish_non_exhaustive()
    }
}

/// Takes an active message without a header.
pub type AmFn = Option<
    unsafe extern "C" fn(
        arg: *mut c_void,
        data: *mut c_void,
        length: usize,
        reply_ep: *mut Ep,
        flags: c_uint,
    ) -> Status,
>;

/// Takes an active message.
pub type AmRecvFn = Option<
    unsafe extern "C" fn(
        arg: *mut c_void,
        header: *const c_void,
        header_length: usize,
        data: *mut c_void,
        length: usize,
        param: *const AmRecvParam,
    ) -> Status,
>;

c_structs! {
    REQUESTS:
    struct RequestParam = "ucp_request_param_t" {
        op_attr_mask: u32,
        flags: u32,
        request: *mut c_void,
        cb: EndFn,
        datatype: u64,
        user_data: *mut c_void,
        reply_buffer: *mut c_void,
        memory_type: c_uint,
        recv_info: RecvInfo,
        memh: *mut Mem = since(1, 13),
        remote_datatype: u64 = since(1, 22),
        remote: *const c_void = since(1, 22),
        remote_count: usize = since(1, 22),
    }

    struct RequestAttr = "ucp_request_attr_t" {
        field_mask: u64 = since(1, 11),
        debug_string: *mut c_char = since(1, 11),
        debug_string_size: usize = since(1, 11),
        status: Status = since(1, 11),
        mem_type: c_uint = since(1, 11),
    }

    struct TagRecvInfo = "ucp_tag_recv_info_t" {
        sender_tag: u64,
        length: usize,
    }

    struct AmHandlerParam = "ucp_am_handler_param_t" {
        field_mask: u64,
        id: c_uint,
        flags: u32,
        cb: AmRecvFn,
        arg: *mut c_void,
    }

    struct AmRecvParam = "ucp_am_recv_param_t" {
        recv_attr: u64,
        reply_ep: *mut Ep,
    }

    struct DtIov = "ucp_dt_iov_t" {
        buffer: *mut c_void,
        length: usize,
    }

    struct DtLocalSgl = "ucp_dt_local_sgl_t" {
        field_mask: u64 = since(1, 22),
        buffers: *const *mut c_void = since(1, 22),
        lengths: *const usize = since(1, 22),
        memhs: *const *mut Mem = since(1, 22),
        counts: *const usize = since(1, 22),
        strides: *const usize = since(1, 22),
    }

    struct DtRemoteSgl = "ucp_dt_remote_sgl_t" {
        field_mask: u64 = since(1, 22),
        remote_addrs: *const u64 = since(1, 22),
        lengths: *const usize = since(1, 22),
        rkeys: *const *mut Rkey = since(1, 22),
    }

    struct GenericDtOps = "ucp_generic_dt_ops_t" {
        start_pack: Option<
            unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void,
        >,
        start_unpack: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void>,
        packed_size: Option<unsafe extern "C" fn(*mut c_void) -> usize>,
        pack: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void, usize) -> usize>,
        unpack: Option<unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize) -> Status>,
        finish: Option<unsafe extern "C" fn(*mut c_void)>,
    }

    struct DatatypeAttr = "ucp_datatype_attr_t" {
        field_mask: u64 = since(1, 14),
        packed_size: usize = since(1, 14),
        buffer: *const c_void = since(1, 14),
        count: usize = since(1, 14),
    }
}

//! Queues of completions and events, counters, and what waits for them.

use super::fid::Fid;
use std::ffi::{c_char, c_int, c_void};

pub use structs::*;
pub use tables::*;

mod structs {
    use super::*;
    use ayre_guest::c_structs;

    c_structs! {
        EVENTS:
        struct FidEq = "fid_eq" {
            fid: Fid,
            ops: *const OpsEq,
        }

        struct FidCq = "fid_cq" {
            fid: Fid,
            ops: *const OpsCq,
        }

        struct FidCntr = "fid_cntr" {
            fid: Fid,
            ops: *const OpsCntr,
        }

        struct FidWait = "fid_wait" {
            fid: Fid,
            ops: *const OpsWait,
        }

        struct FidPoll = "fid_poll" {
            fid: Fid,
            ops: *const OpsPoll,
        }

        struct WaitAttr = "fi_wait_attr" {
            wait_obj: u32,
            flags: u64,
        }

        struct WaitPollFd = "fi_wait_pollfd" {
            change_index: u64,
            nfds: usize,
            fd: *mut libc::pollfd,
        }

        struct PollAttr = "fi_poll_attr" {
            flags: u64,
        }

        struct EqAttr = "fi_eq_attr" {
            size: usize,
            flags: u64,
            wait_obj: u32,
            signaling_vector: c_int,
            wait_set: *mut FidWait,
        }

        struct EqEntry = "fi_eq_entry" {
            fid: *mut Fid,
            context: *mut c_void,
            data: u64,
        }

        struct EqErrEntry = "fi_eq_err_entry" {
            fid: *mut Fid,
            context: *mut c_void,
            data: u64,
            err: c_int,
            prov_errno: c_int,
            err_data: *mut c_void,
            err_data_size: usize,
        }

        struct CqAttr = "fi_cq_attr" {
            size: usize,
            flags: u64,
            format: u32,
            wait_obj: u32,
            signaling_vector: c_int,
            wait_cond: u32,
            wait_set: *mut FidWait,
        }

        struct CqEntry = "fi_cq_entry" {
            op_context: *mut c_void,
        }

        struct CqMsgEntry = "fi_cq_msg_entry" {
            op_context: *mut c_void,
            flags: u64,
            len: usize,
        }

        struct CqDataEntry = "fi_cq_data_entry" {
            op_context: *mut c_void,
            flags: u64,
            len: usize,
            buf: *mut c_void,
            data: u64,
        }

        struct CqTaggedEntry = "fi_cq_tagged_entry" {
            op_context: *mut c_void,
            flags: u64,
            len: usize,
            buf: *mut c_void,
            data: u64,
            tag: u64,
        }

        struct CqErrEntry = "fi_cq_err_entry" {
            op_context: *mut c_void,
            flags: u64,
            len: usize,
            buf: *mut c_void,
            data: u64,
            tag: u64,
            olen: usize,
            err: c_int,
            prov_errno: c_int,
            err_data: *mut c_void,
            err_data_size: usize,
            src_addr: u64 = since(1, 20),
        }

        struct CntrAttr = "fi_cntr_attr" {
            events: u32,
            wait_obj: u32,
            wait_set: *mut FidWait,
            flags: u64,
        }
    }
}

mod tables {
    use super::*;
    use crate::abi::tables::ops_tables;

    ops_tables! {
        EVENT_TABLES:
        struct OpsWait = "fi_ops_wait" {
            wait(*mut FidWait, c_int) -> c_int;
        }

        struct OpsPoll = "fi_ops_poll" {
            poll(*mut FidPoll, *mut *mut c_void, c_int) -> c_int;
            poll_add(*mut FidPoll, *mut Fid, u64) -> c_int;
            poll_del(*mut FidPoll, *mut Fid, u64) -> c_int;
        }

        struct OpsEq = "fi_ops_eq" {
            read(*mut FidEq, *mut u32, *mut c_void, usize, u64) -> isize;
            readerr(*mut FidEq, *mut EqErrEntry, u64) -> isize;
            write(*mut FidEq, u32, *const c_void, usize, u64) -> isize;
            sread(*mut FidEq, *mut u32, *mut c_void, usize, c_int, u64) -> isize;
            strerror(*mut FidEq, c_int, *const c_void, *mut c_char, usize) -> *const c_char;
        }

        struct OpsCq = "fi_ops_cq" {
            read(*mut FidCq, *mut c_void, usize) -> isize;
            readfrom(*mut FidCq, *mut c_void, usize, *mut u64) -> isize;
            readerr(*mut FidCq, *mut CqErrEntry, u64) -> isize;
            sread(*mut FidCq, *mut c_void, usize, *const c_void, c_int) -> isize;
            sreadfrom(*mut FidCq, *mut c_void, usize, *mut u64, *const c_void, c_int) -> isize;
            signal(*mut FidCq) -> c_int;
            strerror(*mut FidCq, c_int, *const c_void, *mut c_char, usize) -> *const c_char;
        }

        struct OpsCntr = "fi_ops_cntr" {
            read(*mut FidCntr) -> u64;
            readerr(*mut FidCntr) -> u64;
            add(*mut FidCntr, u64) -> c_int;
            set(*mut FidCntr, u64) -> c_int;
            wait(*mut FidCntr, u64, c_int) -> c_int;
            adderr(*mut FidCntr, u64) -> c_int;
            seterr(*mut FidCntr, u64) -> c_int;
        }
    }
}

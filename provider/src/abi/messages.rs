//! Operations that are described in memory: messages, remote memory, atomics, collectives.

use ayre_guest::c_structs;
use std::ffi::c_void;

/// A piece of memory, as the system declares it.
pub type Iovec = libc::iovec;

c_structs! {
    MESSAGES:
    struct Msg = "fi_msg" {
        msg_iov: *const Iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        context: *mut c_void,
        data: u64,
    }

    struct MsgTagged = "fi_msg_tagged" {
        msg_iov: *const Iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        tag: u64,
        ignore: u64,
        context: *mut c_void,
        data: u64,
    }

    struct RmaIov = "fi_rma_iov" {
        addr: u64,
        len: usize,
        key: u64,
    }

    struct Ioc = "fi_ioc" {
        addr: *mut c_void,
        count: usize,
    }

    struct RmaIoc = "fi_rma_ioc" {
        addr: u64,
        count: usize,
        key: u64,
    }

    struct MsgRma = "fi_msg_rma" {
        msg_iov: *const Iovec,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: *const RmaIov,
        rma_iov_count: usize,
        context: *mut c_void,
        data: u64,
    }

    struct MsgAtomic = "fi_msg_atomic" {
        msg_iov: *const Ioc,
        desc: *mut *mut c_void,
        iov_count: usize,
        addr: u64,
        rma_iov: *const RmaIoc,
        rma_iov_count: usize,
        datatype: u32,
        op: u32,
        context: *mut c_void,
        data: u64,
    }

    struct MsgCollective = "fi_msg_collective" {
        msg_iov: *const Ioc,
        desc: *mut *mut c_void,
        iov_count: usize,
        coll_addr: u64,
        root_addr: u64,
        coll: u32,
        datatype: u32,
        op: u32,
        context: *mut c_void,
    }
}

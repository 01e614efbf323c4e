//! Endpoints and the tables by which data moves.

use super::attributes::{RxAttr, TxAttr};
use super::fid::Fid;
use super::messages::{Ioc, Iovec, Msg, MsgAtomic, MsgCollective, MsgRma, MsgTagged};
use std::ffi::{c_int, c_void};

pub use objects::*;
pub use tables::*;

mod objects {
    use super::*;
    use ayre_guest::c_structs;

    c_structs! {
        ENDPOINTS:
        struct FidEp = "fid_ep" {
            fid: Fid,
            ops: *const OpsEp,
            cm: *const OpsCm,
            msg: *const OpsMsg,
            rma: *const OpsRma,
            tagged: *const OpsTagged,
            atomic: *const OpsAtomic,
            collective: *const OpsCollective,
        }

        struct FidPep = "fid_pep" {
            fid: Fid,
            ops: *const OpsEp,
            cm: *const OpsCm,
        }

        struct FidStx = "fid_stx" {
            fid: Fid,
            ops: *const OpsEp,
        }

        struct FidMc = "fid_mc" {
            fid: Fid,
            fi_addr: u64,
        }

        struct FidAvSet = "fid_av_set" {
            fid: Fid,
            ops: *const OpsAvSet,
        }
    }
}

mod tables {
    use super::*;
    use crate::abi::tables::ops_tables;

    type Void = *mut c_void;
    type Bytes = *const c_void;
    type Ep = *mut FidEp;

    ops_tables! {
        ENDPOINT_TABLES:
        struct OpsEp = "fi_ops_ep" {
            cancel(*mut Fid, Void) -> isize;
            getopt(*mut Fid, c_int, c_int, Void, *mut usize) -> c_int;
            setopt(*mut Fid, c_int, c_int, Bytes, usize) -> c_int;
            tx_ctx(Ep, c_int, *mut TxAttr, *mut Ep, Void) -> c_int;
            rx_ctx(Ep, c_int, *mut RxAttr, *mut Ep, Void) -> c_int;
            rx_size_left(Ep) -> isize;
            tx_size_left(Ep) -> isize;
        }

        struct OpsCm = "fi_ops_cm" {
            setname(*mut Fid, Void, usize) -> c_int;
            getname(*mut Fid, Void, *mut usize) -> c_int;
            getpeer(Ep, Void, *mut usize) -> c_int;
            connect(Ep, Bytes, Bytes, usize) -> c_int;
            listen(*mut FidPep) -> c_int;
            accept(Ep, Bytes, usize) -> c_int;
            reject(*mut FidPep, *mut Fid, Bytes, usize) -> c_int;
            shutdown(Ep, u64) -> c_int;
            join(Ep, Bytes, u64, *mut *mut FidMc, Void) -> c_int;
        }

        struct OpsMsg = "fi_ops_msg" {
            recv(Ep, Void, usize, Void, u64, Void) -> isize;
            recvv(Ep, *const Iovec, *mut Void, usize, u64, Void) -> isize;
            recvmsg(Ep, *const Msg, u64) -> isize;
            send(Ep, Bytes, usize, Void, u64, Void) -> isize;
            sendv(Ep, *const Iovec, *mut Void, usize, u64, Void) -> isize;
            sendmsg(Ep, *const Msg, u64) -> isize;
            inject(Ep, Bytes, usize, u64) -> isize;
            senddata(Ep, Bytes, usize, Void, u64, u64, Void) -> isize;
            injectdata(Ep, Bytes, usize, u64, u64) -> isize;
        }

        struct OpsTagged = "fi_ops_tagged" {
            recv(Ep, Void, usize, Void, u64, u64, u64, Void) -> isize;
            recvv(Ep, *const Iovec, *mut Void, usize, u64, u64, u64, Void) -> isize;
            recvmsg(Ep, *const MsgTagged, u64) -> isize;
            send(Ep, Bytes, usize, Void, u64, u64, Void) -> isize;
            sendv(Ep, *const Iovec, *mut Void, usize, u64, u64, Void) -> isize;
            sendmsg(Ep, *const MsgTagged, u64) -> isize;
            inject(Ep, Bytes, usize, u64, u64) -> isize;
            senddata(Ep, Bytes, usize, Void, u64, u64, u64, Void) -> isize;
            injectdata(Ep, Bytes, usize, u64, u64, u64) -> isize;
        }

        struct OpsRma = "fi_ops_rma" {
            read(Ep, Void, usize, Void, u64, u64, u64, Void) -> isize;
            readv(Ep, *const Iovec, *mut Void, usize, u64, u64, u64, Void) -> isize;
            readmsg(Ep, *const MsgRma, u64) -> isize;
            write(Ep, Bytes, usize, Void, u64, u64, u64, Void) -> isize;
            writev(Ep, *const Iovec, *mut Void, usize, u64, u64, u64, Void) -> isize;
            writemsg(Ep, *const MsgRma, u64) -> isize;
            inject(Ep, Bytes, usize, u64, u64, u64) -> isize;
            writedata(Ep, Bytes, usize, Void, u64, u64, u64, u64, Void) -> isize;
            injectdata(Ep, Bytes, usize, u64, u64, u64, u64) -> isize;
        }

        struct OpsAtomic = "fi_ops_atomic" {
            write(Ep, Bytes, usize, Void, u64, u64, u64, u32, u32, Void) -> isize;
            writev(Ep, *const Ioc, *mut Void, usize, u64, u64, u64, u32, u32, Void) -> isize;
            writemsg(Ep, *const MsgAtomic, u64) -> isize;
            inject(Ep, Bytes, usize, u64, u64, u64, u32, u32) -> isize;
            readwrite(
                Ep, Bytes, usize, Void, Void, Void, u64, u64, u64, u32, u32, Void,
            ) -> isize;
            readwritev(
                Ep, *const Ioc, *mut Void, usize, *mut Ioc, *mut Void, usize, u64, u64, u64, u32,
                u32, Void,
            ) -> isize;
            readwritemsg(Ep, *const MsgAtomic, *mut Ioc, *mut Void, usize, u64) -> isize;
            compwrite(
                Ep, Bytes, usize, Void, Bytes, Void, Void, Void, u64, u64, u64, u32, u32, Void,
            ) -> isize;
            compwritev(
                Ep, *const Ioc, *mut Void, usize, *const Ioc, *mut Void, usize, *mut Ioc,
                *mut Void, usize, u64, u64, u64, u32, u32, Void,
            ) -> isize;
            compwritemsg(
                Ep, *const MsgAtomic, *const Ioc, *mut Void, usize, *mut Ioc, *mut Void, usize,
                u64,
            ) -> isize;
            writevalid(Ep, u32, u32, *mut usize) -> c_int;
            readwritevalid(Ep, u32, u32, *mut usize) -> c_int;
            compwritevalid(Ep, u32, u32, *mut usize) -> c_int;
        }

        struct OpsCollective = "fi_ops_collective" {
            barrier(Ep, u64, Void) -> isize;
            broadcast(Ep, Void, usize, Void, u64, u64, u32, u64, Void) -> isize;
            alltoall(Ep, Bytes, usize, Void, Void, Void, u64, u32, u64, Void) -> isize;
            allreduce(Ep, Bytes, usize, Void, Void, Void, u64, u32, u32, u64, Void) -> isize;
            allgather(Ep, Bytes, usize, Void, Void, Void, u64, u32, u64, Void) -> isize;
            reduce_scatter(
                Ep, Bytes, usize, Void, Void, Void, u64, u32, u32, u64, Void,
            ) -> isize;
            reduce(Ep, Bytes, usize, Void, Void, Void, u64, u64, u32, u32, u64, Void) -> isize;
            scatter(Ep, Bytes, usize, Void, Void, Void, u64, u64, u32, u64, Void) -> isize;
            gather(Ep, Bytes, usize, Void, Void, Void, u64, u64, u32, u64, Void) -> isize;
            msg(Ep, *const MsgCollective, *mut Ioc, *mut Void, usize, u64) -> isize;
            barrier2(Ep, u64, u64, Void) -> isize;
        }

        struct OpsAvSet = "fi_ops_av_set" {
            set_union(*mut FidAvSet, *const FidAvSet) -> c_int;
            intersect(*mut FidAvSet, *const FidAvSet) -> c_int;
            diff(*mut FidAvSet, *const FidAvSet) -> c_int;
            insert(*mut FidAvSet, u64) -> c_int;
            remove(*mut FidAvSet, u64) -> c_int;
            addr(*mut FidAvSet, *mut u64) -> c_int;
        }
    }
}

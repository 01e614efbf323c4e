//! Fabrics, domains, address vectors and memory, and the structures of `fi_getinfo`.

use super::attributes::{EpAttr, RxAttr, TxAttr};
use super::endpoint::{FidAvSet, FidEp, FidPep, FidStx};
use super::events::{
    CntrAttr, CqAttr, EqAttr, FidCntr, FidCq, FidEq, FidPoll, FidWait, PollAttr, WaitAttr,
};
use super::fid::Fid;
use super::messages::Iovec;
use std::ffi::{c_char, c_int, c_void};

pub use structs::*;
pub use tables::*;

mod structs {
    use super::*;
    use ayre_guest::c_structs;

    c_structs! {
        OBJECTS:
        struct FidFabric = "fid_fabric" {
            fid: Fid,
            ops: *const OpsFabric,
            api_version: u32,
        }

        struct FidDomain = "fid_domain" {
            fid: Fid,
            ops: *const OpsDomain,
            mr: *const OpsMr,
        }

        struct FidAv = "fid_av" {
            fid: Fid,
            ops: *const OpsAv,
        }

        struct FidMr = "fid_mr" {
            fid: Fid,
            mem_desc: *mut c_void,
            key: u64,
        }

        struct FidAlias = "fi_alias" {
            fid: *mut *mut Fid,
            flags: u64,
        }

        struct AvAttr = "fi_av_attr" {
            r#type: u32,
            rx_ctx_bits: c_int,
            count: usize,
            ep_per_node: usize,
            name: *const c_char,
            map_addr: *mut c_void,
            flags: u64,
        }

        struct AvSetAttr = "fi_av_set_attr" {
            count: usize,
            start_addr: u64,
            end_addr: u64,
            stride: u64,
            comm_key_size: usize,
            comm_key: *mut u8,
            flags: u64,
        }

        struct MrAttr = "fi_mr_attr" {
            mr_iov: *const Iovec,
            iov_count: usize,
            access: u64,
            offset: u64,
            requested_key: u64,
            context: *mut c_void,
            auth_key_size: usize,
            auth_key: *mut u8,
            iface: u32,
            device: u64,
            hmem_data: *mut c_void = since(1, 19),
            page_size: usize = since(1, 22),
            base_mr: *const FidMr = since(2, 0),
            sub_mr_cnt: usize = since(2, 0),
        }

        struct MrRawAttr = "fi_mr_raw_attr" {
            flags: u64,
            base_addr: *mut u64,
            raw_key: *mut u8,
            key_size: *mut usize,
        }

        struct MrMapRaw = "fi_mr_map_raw" {
            flags: u64,
            base_addr: u64,
            raw_key: *mut u8,
            key_size: usize,
            key: *mut u64,
        }

        struct AtomicAttr = "fi_atomic_attr" {
            count: usize,
            size: usize,
        }

        struct CollectiveAttr = "fi_collective_attr" {
            op: u32,
            datatype: u32,
            datatype_attr: AtomicAttr,
            max_members: usize,
            mode: u64,
        }

        struct DomainAttr = "fi_domain_attr" {
            domain: *mut FidDomain,
            name: *mut c_char,
            threading: u32,
            control_progress: u32,
            data_progress: u32,
            resource_mgmt: u32,
            av_type: u32,
            mr_mode: c_int,
            mr_key_size: usize,
            cq_data_size: usize,
            cq_cnt: usize,
            ep_cnt: usize,
            tx_ctx_cnt: usize,
            rx_ctx_cnt: usize,
            max_ep_tx_ctx: usize,
            max_ep_rx_ctx: usize,
            max_ep_stx_ctx: usize,
            max_ep_srx_ctx: usize,
            cntr_cnt: usize,
            mr_iov_limit: usize,
            caps: u64,
            mode: u64,
            auth_key: *mut u8,
            auth_key_size: usize,
            max_err_data: usize,
            mr_cnt: usize,
            tclass: u32,
            max_ep_auth_key: usize = since(1, 20),
            max_group_id: u32 = since(2, 0),
            max_cntr_value: u64 = since(2, 5),
            max_err_cntr_value: u64 = since(2, 5),
        }

        struct FabricAttr = "fi_fabric_attr" {
            fabric: *mut FidFabric,
            name: *mut c_char,
            prov_name: *mut c_char,
            prov_version: u32,
            api_version: u32,
        }

        struct Info = "fi_info" {
            next: *mut Info,
            caps: u64,
            mode: u64,
            addr_format: u32,
            src_addrlen: usize,
            dest_addrlen: usize,
            src_addr: *mut c_void,
            dest_addr: *mut c_void,
            handle: *mut Fid,
            tx_attr: *mut TxAttr,
            rx_attr: *mut RxAttr,
            ep_attr: *mut EpAttr,
            domain_attr: *mut DomainAttr,
            fabric_attr: *mut FabricAttr,
            nic: *mut c_void,
        }

        struct EqCmEntry = "fi_eq_cm_entry" {
            fid: *mut Fid,
            info: *mut Info,
        }
    }
}

mod tables {
    use super::*;
    use crate::abi::tables::ops_tables;

    ops_tables! {
        OBJECT_TABLES:
        struct OpsFabric = "fi_ops_fabric" {
            domain(*mut FidFabric, *mut Info, *mut *mut FidDomain, *mut c_void) -> c_int;
            passive_ep(*mut FidFabric, *mut Info, *mut *mut FidPep, *mut c_void) -> c_int;
            eq_open(*mut FidFabric, *mut EqAttr, *mut *mut FidEq, *mut c_void) -> c_int;
            wait_open(*mut FidFabric, *mut WaitAttr, *mut *mut FidWait) -> c_int;
            trywait(*mut FidFabric, *mut *mut Fid, c_int) -> c_int;
            domain2(*mut FidFabric, *mut Info, *mut *mut FidDomain, u64, *mut c_void) -> c_int;
        }

        struct OpsDomain = "fi_ops_domain" {
            av_open(*mut FidDomain, *mut AvAttr, *mut *mut FidAv, *mut c_void) -> c_int;
            cq_open(*mut FidDomain, *mut CqAttr, *mut *mut FidCq, *mut c_void) -> c_int;
            endpoint(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int;
            scalable_ep(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int;
            cntr_open(*mut FidDomain, *mut CntrAttr, *mut *mut FidCntr, *mut c_void) -> c_int;
            poll_open(*mut FidDomain, *mut PollAttr, *mut *mut FidPoll) -> c_int;
            stx_ctx(*mut FidDomain, *mut TxAttr, *mut *mut FidStx, *mut c_void) -> c_int;
            srx_ctx(*mut FidDomain, *mut RxAttr, *mut *mut FidEp, *mut c_void) -> c_int;
            query_atomic(*mut FidDomain, u32, u32, *mut AtomicAttr, u64) -> c_int;
            query_collective(*mut FidDomain, u32, *mut CollectiveAttr, u64) -> c_int;
            endpoint2(*mut FidDomain, *mut Info, *mut *mut FidEp, u64, *mut c_void) -> c_int;
        }

        struct OpsMr = "fi_ops_mr" {
            reg(*mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut FidMr, *mut c_void)
                -> c_int;
            regv(*mut Fid, *const Iovec, usize, u64, u64, u64, u64, *mut *mut FidMr, *mut c_void)
                -> c_int;
            regattr(*mut Fid, *const MrAttr, u64, *mut *mut FidMr) -> c_int;
        }

        struct OpsAv = "fi_ops_av" {
            insert(*mut FidAv, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int;
            insertsvc(*mut FidAv, *const c_char, *const c_char, *mut u64, u64, *mut c_void)
                -> c_int;
            insertsym(
                *mut FidAv, *const c_char, usize, *const c_char, usize, *mut u64, u64, *mut c_void,
            ) -> c_int;
            remove(*mut FidAv, *mut u64, usize, u64) -> c_int;
            lookup(*mut FidAv, u64, *mut c_void, *mut usize) -> c_int;
            straddr(*mut FidAv, *const c_void, *mut c_char, *mut usize) -> *const c_char;
            av_set(*mut FidAv, *mut AvSetAttr, *mut *mut FidAvSet, *mut c_void) -> c_int;
            insert_auth_key(*mut FidAv, *const c_void, usize, *mut u64, u64) -> c_int
                = since(1, 20);
            lookup_auth_key(*mut FidAv, u64, *mut c_void, *mut usize) -> c_int = since(1, 20);
            set_user_id(*mut FidAv, u64, u64, u64) -> c_int = since(1, 20);
        }
    }
}

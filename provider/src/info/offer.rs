//! The offers of the provider, all in one table, from which the answers to programs are derived.

use crate::abi::*;
use crate::info::address::Address;
use ayre_guest::layout::version;
use std::ffi::{CStr, c_int};

/// The direction that has a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Transmit,
    Receive,
    Both,
    /// The domain.
    Reach,
}

/// One capability.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capability {
    pub(crate) bit: u64,
    pub(crate) side: Side,
    /// Given to those only that ask for it; others come with what is asked.
    pub(crate) is_primary: bool,
}

/// Whether data move while the program does not call.
const AUTO_PROGRESS: bool = true;

const fn asked(bit: u64, side: Side) -> Capability {
    Capability { bit, side, is_primary: true }
}

const fn added(bit: u64, side: Side) -> Capability {
    Capability { bit, side, is_primary: false }
}

/// All that there are.
pub(crate) const CAPABILITIES: &[Capability] = &[
    asked(MSG, Side::Both),
    asked(TAGGED, Side::Both),
    asked(RMA, Side::Both),
    asked(ATOMIC, Side::Both),
    asked(DIRECTED_RECV, Side::Receive),
    asked(SEND, Side::Transmit),
    asked(RECV, Side::Receive),
    asked(READ, Side::Transmit),
    asked(WRITE, Side::Transmit),
    asked(FENCE, Side::Transmit),
    asked(REMOTE_READ, Side::Receive),
    asked(REMOTE_WRITE, Side::Receive),
    asked(MULTI_RECV, Side::Receive),
    asked(SOURCE, Side::Receive),
    asked(RMA_EVENT, Side::Receive),
    added(LOCAL_COMM, Side::Reach),
    // Programs ask for it that run on one host, too: they are told when they send whom they cannot
    // reach.
    added(REMOTE_COMM, Side::Reach),
];

/// A fabric, and the domain on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) fabric: &'static CStr,
    pub(crate) domain: &'static CStr,
}

/// The fabrics there are, best first.
pub(crate) const KINDS: &[Kind] = &[Kind { fabric: c"ayre-shm", domain: c"shm" }];

/// The answer to a program that asks for one fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) caps: u64,
    pub(crate) tx: TxAttr,
    pub(crate) rx: RxAttr,
    pub(crate) ep: EpAttr,
    /// Without its name.
    pub(crate) domain: DomainAttr,
    pub(crate) domain_name: &'static CStr,
    /// By which the program named a domain that it has open; 0 for none.
    pub(crate) domain_fid: usize,
    /// Without its name.
    pub(crate) fabric: FabricAttr,
    /// By which the program knows the fabric, if it has it open; 0 otherwise.
    pub(crate) fabric_fid: usize,
    pub(crate) fabric_name: &'static CStr,
    pub(crate) source: Option<Address>,
    pub(crate) destination: Option<Address>,
}

/// Completions of a CQ whose program does not say how many.
pub(crate) const CQ_SIZE: usize = 1024;

/// Objects of a kind in a domain.
const OBJECTS_MAX: usize = 1 << 16;

/// Pieces of memory in one registration.
pub(crate) const MR_IOV_MAX: usize = 16;

/// Operations under way in each direction of an endpoint.
pub(crate) const OPERATIONS_MAX: usize = 1 << 16;

/// Bytes of the longest message.
pub(crate) const MESSAGE_MAX: usize = 1 << 40;

/// Bytes of an injected message.
pub(crate) const INJECT_MAX: usize = 4096;

/// Pieces of memory in one operation.
const IOV_MAX: usize = ayre::endpoint::raw::SPANS_MAX;

/// Places at a peer that one operation works on.
const RMA_IOV_MAX: usize = 1;

/// Orders that operations keep: all go through one lane. Only what a long read finds may have been
/// written later.
const ORDER: u64 = ORDER_STRICT | ORDER_RMA | ORDER_ATOMIC;

const ORDER_RMA: u64 = ORDER_RMA_RAR | ORDER_RMA_RAW | ORDER_RMA_WAR | ORDER_RMA_WAW;

const ORDER_ATOMIC: u64 = ORDER_ATOMIC_RAR | ORDER_ATOMIC_RAW | ORDER_ATOMIC_WAR | ORDER_ATOMIC_WAW;

/// Bytes of the longest read that finds nothing of what is written later.
const WRITE_AFTER_READ_MAX: usize = ayre::endpoint::raw::RawEndpoint::prompt_read_max();

/// Bits of `mr_mode` that a program may have its way with.
pub(crate) const MR_MODES: c_int = MR_VIRT_ADDR | MR_ALLOCATED | MR_PROV_KEY;

/// Flags of operations that an endpoint can have by default.
const OP_FLAGS: u64 = COMPLETION
    | INJECT
    | INJECT_COMPLETE
    | TRANSMIT_COMPLETE
    | DELIVERY_COMPLETE
    | MULTI_RECV
    | MATCH_COMPLETE;

/// The most that there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) caps: u64,
    pub(crate) tx_caps: u64,
    pub(crate) rx_caps: u64,
    pub(crate) domain_caps: u64,
    /// Given without being asked for.
    pub(crate) added: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) inject_size: usize,
    pub(crate) operations: usize,
    pub(crate) iov_limit: usize,
    pub(crate) rma_iov_limit: usize,
    pub(crate) max_msg_size: usize,
    pub(crate) max_war_size: usize,
    pub(crate) cq_data_size: usize,
    pub(crate) endpoints: usize,
    pub(crate) has_auto_progress: bool,
}

impl Offer {
    /// The present offer.
    pub(crate) fn now() -> Self {
        Self::of(CAPABILITIES, AUTO_PROGRESS)
    }

    /// The offer of a table.
    pub(crate) fn of(table: &[Capability], has_auto_progress: bool) -> Self {
        let sum = |wanted: &dyn Fn(&Capability) -> bool| {
            table.iter().filter(|it| wanted(it)).fold(0, |sum, it| sum | it.bit)
        };
        let caps = sum(&|_| true);
        let moves_data = caps & (MSG | TAGGED | RMA | ATOMIC) != 0;
        let when = |value: usize| if moves_data { value } else { 0 };
        Self {
            caps,
            tx_caps: sum(&|it| matches!(it.side, Side::Transmit | Side::Both)),
            rx_caps: sum(&|it| matches!(it.side, Side::Receive | Side::Both)),
            domain_caps: sum(&|it| it.side == Side::Reach),
            added: sum(&|it| !it.is_primary),
            op_flags: if moves_data { OP_FLAGS } else { 0 },
            msg_order: if moves_data { ORDER } else { 0 },
            inject_size: when(INJECT_MAX),
            operations: when(OPERATIONS_MAX),
            iov_limit: when(IOV_MAX),
            rma_iov_limit: when(RMA_IOV_MAX),
            max_msg_size: when(MESSAGE_MAX),
            max_war_size: when(WRITE_AFTER_READ_MAX),
            cq_data_size: when(8),
            endpoints: when(OBJECTS_MAX),
            has_auto_progress,
        }
    }

    /// The answer to a program that has no wishes.
    pub(crate) fn answer(&self, kind: &Kind, api: u32) -> Answer {
        Answer {
            caps: self.caps,
            tx: self.tx(),
            rx: self.rx(),
            ep: self.ep(),
            domain: self.domain(api),
            domain_name: kind.domain,
            domain_fid: 0,
            fabric: FabricAttr {
                fabric: std::ptr::null_mut(),
                name: std::ptr::null_mut(),
                prov_name: std::ptr::null_mut(),
                prov_version: PROVIDER_VERSION,
                api_version: api,
            },
            fabric_fid: 0,
            fabric_name: kind.fabric,
            source: None,
            destination: None,
        }
    }

    /// Capabilities of senders alone. A receiver may ask for them in vain: some programs ask both
    /// directions for everything.
    pub(crate) fn of_senders(&self) -> u64 {
        self.tx_caps & !self.rx_caps
    }

    /// Capabilities of receivers alone; as for [`Self::of_senders`].
    pub(crate) fn of_receivers(&self) -> u64 {
        self.rx_caps & !self.tx_caps
    }

    fn tx(&self) -> TxAttr {
        TxAttr {
            caps: self.tx_caps,
            mode: 0,
            op_flags: 0,
            msg_order: self.msg_order,
            comp_order: 0,
            inject_size: self.inject_size,
            size: self.operations,
            iov_limit: self.iov_limit,
            rma_iov_limit: self.rma_iov_limit,
            tclass: 0,
        }
    }

    fn rx(&self) -> RxAttr {
        RxAttr {
            caps: self.rx_caps,
            mode: 0,
            op_flags: 0,
            msg_order: self.msg_order,
            comp_order: 0,
            total_buffered_recv: 0,
            size: self.operations,
            iov_limit: self.iov_limit,
        }
    }

    fn ep(&self) -> EpAttr {
        let contexts = usize::from(self.endpoints > 0);
        EpAttr {
            r#type: EP_RDM,
            protocol: PROTOCOL,
            protocol_version: 1,
            max_msg_size: self.max_msg_size,
            msg_prefix_size: 0,
            max_order_raw_size: self.max_msg_size,
            max_order_war_size: self.max_war_size,
            max_order_waw_size: self.max_msg_size,
            mem_tag_format: u64::MAX,
            tx_ctx_cnt: contexts,
            rx_ctx_cnt: contexts,
            auth_key_size: 0,
            auth_key: std::ptr::null_mut(),
        }
    }

    fn domain(&self, api: u32) -> DomainAttr {
        let contexts = usize::from(self.endpoints > 0);
        DomainAttr {
            domain: std::ptr::null_mut(),
            name: std::ptr::null_mut(),
            threading: THREAD_SAFE,
            control_progress: PROGRESS_AUTO,
            data_progress: PROGRESS_MANUAL,
            resource_mgmt: RM_ENABLED,
            // Either: who has not asked for a table does not take its numbers for granted.
            av_type: AV_UNSPEC,
            mr_mode: if api < version(1, 5) { MR_SCALABLE } else { 0 },
            mr_key_size: 8,
            cq_data_size: self.cq_data_size,
            cq_cnt: OBJECTS_MAX,
            ep_cnt: self.endpoints,
            tx_ctx_cnt: self.endpoints,
            rx_ctx_cnt: self.endpoints,
            max_ep_tx_ctx: contexts,
            max_ep_rx_ctx: contexts,
            max_ep_stx_ctx: 0,
            max_ep_srx_ctx: 0,
            cntr_cnt: OBJECTS_MAX,
            mr_iov_limit: MR_IOV_MAX,
            caps: self.domain_caps,
            mode: 0,
            auth_key: std::ptr::null_mut(),
            auth_key_size: 0,
            max_err_data: Address::SIZE,
            mr_cnt: OBJECTS_MAX,
            tclass: 0,
            max_ep_auth_key: 0,
            max_group_id: 0,
            max_cntr_value: u64::MAX,
            max_err_cntr_value: u64::MAX,
        }
    }
}

/// The version that is said to be ours: 0.1 as `FI_VERSION` packs it.
pub(crate) const PROVIDER_VERSION: u32 = version(0, 1);

/// The protocol of our endpoints, by a number that no other provider uses.
pub(crate) const PROTOCOL: u32 = PROV_SPECIFIC | 0x41_5952;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_its_capabilities() {
        let offer = Offer::of(CAPABILITIES, true);
        assert_eq!(offer.tx_caps | offer.rx_caps | offer.domain_caps, offer.caps);
        assert_eq!((offer.tx_caps | offer.rx_caps) & offer.domain_caps, 0);
        assert_eq!(offer.tx_caps & (RECV | REMOTE_READ | SOURCE), 0);
        assert_eq!(offer.rx_caps & (SEND | READ | WRITE), 0);
        assert_eq!(offer.domain_caps, LOCAL_COMM | REMOTE_COMM);
        assert_eq!(offer.msg_order & ORDER_SAS, ORDER_SAS);
    }
}

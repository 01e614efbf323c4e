//! Bits and enumerations.

use std::ffi::c_int;

pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const TAGGED: u64 = 1 << 3;
pub const ATOMIC: u64 = 1 << 4;
pub const MULTICAST: u64 = 1 << 5;
pub const COLLECTIVE: u64 = 1 << 6;
pub const READ: u64 = 1 << 8;
pub const WRITE: u64 = 1 << 9;
pub const RECV: u64 = 1 << 10;
pub const SEND: u64 = 1 << 11;
pub const REMOTE_READ: u64 = 1 << 12;
pub const REMOTE_WRITE: u64 = 1 << 13;
pub const MULTI_RECV: u64 = 1 << 16;
pub const REMOTE_CQ_DATA: u64 = 1 << 17;
pub const MORE: u64 = 1 << 18;
pub const PEEK: u64 = 1 << 19;
pub const TRIGGER: u64 = 1 << 20;
pub const FENCE: u64 = 1 << 21;
pub const COMPLETION: u64 = 1 << 24;
pub const INJECT: u64 = 1 << 25;
pub const INJECT_COMPLETE: u64 = 1 << 26;
pub const TRANSMIT_COMPLETE: u64 = 1 << 27;
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
pub const AFFINITY: u64 = 1 << 29;
pub const COMMIT_COMPLETE: u64 = 1 << 30;
pub const MATCH_COMPLETE: u64 = 1 << 31;
pub const AV_USER_ID: u64 = 1 << 41;
pub const PEER: u64 = 1 << 43;
pub const HMEM: u64 = 1 << 47;
pub const RMA_PMEM: u64 = 1 << 49;
pub const SOURCE_ERR: u64 = 1 << 50;
pub const LOCAL_COMM: u64 = 1 << 51;
pub const REMOTE_COMM: u64 = 1 << 52;
pub const SHARED_AV: u64 = 1 << 53;
pub const PROV_ATTR_ONLY: u64 = 1 << 54;
pub const NUMERICHOST: u64 = 1 << 55;
pub const RMA_EVENT: u64 = 1 << 56;
pub const SOURCE: u64 = 1 << 57;
pub const NAMED_RX_CTX: u64 = 1 << 58;
pub const DIRECTED_RECV: u64 = 1 << 59;
pub const CLAIM: u64 = 1 << 59;
pub const DISCARD: u64 = 1 << 58;
pub const SELECTIVE_COMPLETION: u64 = 1 << 59;
pub const SYMMETRIC: u64 = 1 << 59;
pub const SYNC_ERR: u64 = 1 << 58;
pub const REG_MR: u64 = 1 << 59;
/// Of version 2.0; absent from older headers.
pub const RESCAN: u64 = 1 << 35;
pub const CONTEXT: u64 = 1 << 59;
pub const CONTEXT2: u64 = 1 << 52;
pub const RX_CQ_DATA: u64 = 1 << 56;
pub const ASYNC_IOV: u64 = 1 << 57;
pub const ORDER_RAR: u64 = 1 << 0;
pub const ORDER_RAW: u64 = 1 << 1;
pub const ORDER_RAS: u64 = 1 << 2;
pub const ORDER_WAR: u64 = 1 << 3;
pub const ORDER_WAW: u64 = 1 << 4;
pub const ORDER_WAS: u64 = 1 << 5;
pub const ORDER_SAR: u64 = 1 << 6;
pub const ORDER_SAW: u64 = 1 << 7;
pub const ORDER_SAS: u64 = 1 << 8;
pub const ORDER_STRICT: u64 = 0x1ff;
pub const ORDER_RMA_RAR: u64 = 1 << 32;
pub const ORDER_RMA_RAW: u64 = 1 << 33;
pub const ORDER_RMA_WAR: u64 = 1 << 34;
pub const ORDER_RMA_WAW: u64 = 1 << 35;
pub const ORDER_ATOMIC_RAR: u64 = 1 << 36;
pub const ORDER_ATOMIC_RAW: u64 = 1 << 37;
pub const ORDER_ATOMIC_WAR: u64 = 1 << 38;
pub const ORDER_ATOMIC_WAW: u64 = 1 << 39;
pub const ORDER_DATA: u64 = 1 << 16;
pub const ADDR_UNSPEC: u64 = u64::MAX;
pub const ADDR_NOTAVAIL: u64 = u64::MAX;
pub const KEY_NOTAVAIL: u64 = u64::MAX;

pub const MR_UNSPEC: c_int = 0;
pub const MR_BASIC: c_int = 1;
pub const MR_SCALABLE: c_int = 2;
pub const MR_LOCAL: c_int = 1 << 2;
pub const MR_RAW: c_int = 1 << 3;
pub const MR_VIRT_ADDR: c_int = 1 << 4;
pub const MR_ALLOCATED: c_int = 1 << 5;
pub const MR_PROV_KEY: c_int = 1 << 6;
pub const MR_MMU_NOTIFY: c_int = 1 << 7;
pub const MR_RMA_EVENT: c_int = 1 << 8;
pub const MR_ENDPOINT: c_int = 1 << 9;
pub const MR_HMEM: c_int = 1 << 10;
pub const MR_COLLECTIVE: c_int = 1 << 11;

pub const FORMAT_UNSPEC: u32 = 0;
pub const SOCKADDR: u32 = 1;
pub const SOCKADDR_IN: u32 = 2;
pub const SOCKADDR_IN6: u32 = 3;

pub const ADDR_STR: u32 = 9;

pub const AV_UNSPEC: u32 = 0;
pub const AV_MAP: u32 = 1;
pub const AV_TABLE: u32 = 2;

pub const PROGRESS_UNSPEC: u32 = 0;
pub const PROGRESS_AUTO: u32 = 1;
pub const PROGRESS_MANUAL: u32 = 2;
/// Of version 2.0; absent from older headers.
pub const PROGRESS_CONTROL_UNIFIED: u32 = 3;

pub const THREAD_UNSPEC: u32 = 0;
pub const THREAD_SAFE: u32 = 1;
pub const THREAD_FID: u32 = 2;
pub const THREAD_DOMAIN: u32 = 3;
pub const THREAD_COMPLETION: u32 = 4;
pub const THREAD_ENDPOINT: u32 = 5;

pub const RM_UNSPEC: u32 = 0;
pub const RM_DISABLED: u32 = 1;
pub const RM_ENABLED: u32 = 2;

pub const EP_UNSPEC: u32 = 0;
pub const EP_MSG: u32 = 1;
pub const EP_DGRAM: u32 = 2;
pub const EP_RDM: u32 = 3;

pub const CLASS_UNSPEC: usize = 0;
pub const CLASS_FABRIC: usize = 1;
pub const CLASS_DOMAIN: usize = 2;
pub const CLASS_EP: usize = 3;

pub const CLASS_AV: usize = 11;
pub const CLASS_MR: usize = 12;
pub const CLASS_EQ: usize = 13;
pub const CLASS_CQ: usize = 14;
pub const CLASS_CNTR: usize = 15;
pub const CLASS_WAIT: usize = 16;
pub const CLASS_POLL: usize = 17;

pub const GETFIDFLAG: c_int = 0;
pub const SETFIDFLAG: c_int = 1;
pub const GETOPSFLAG: c_int = 2;
pub const SETOPSFLAG: c_int = 3;
pub const ALIAS: c_int = 4;
pub const GETWAIT: c_int = 5;
pub const ENABLE: c_int = 6;
pub const BACKLOG: c_int = 7;
pub const GET_RAW_MR: c_int = 8;
pub const MAP_RAW_MR: c_int = 9;
pub const UNMAP_KEY: c_int = 10;
pub const QUEUE_WORK: c_int = 11;
pub const CANCEL_WORK: c_int = 12;
pub const FLUSH_WORK: c_int = 13;
pub const REFRESH: c_int = 14;
pub const DUP: c_int = 15;
pub const GETWAITOBJ: c_int = 16;

pub const WAIT_NONE: u32 = 0;
pub const WAIT_UNSPEC: u32 = 1;
pub const WAIT_SET: u32 = 2;
pub const WAIT_FD: u32 = 3;
pub const WAIT_MUTEX_COND: u32 = 4;
pub const WAIT_YIELD: u32 = 5;
pub const WAIT_POLLFD: u32 = 6;

pub const NOTIFY: u32 = 0;
pub const CONNREQ: u32 = 1;
pub const CONNECTED: u32 = 2;
pub const SHUTDOWN: u32 = 3;
pub const MR_COMPLETE: u32 = 4;
pub const AV_COMPLETE: u32 = 5;

pub const CQ_FORMAT_UNSPEC: u32 = 0;
pub const CQ_FORMAT_CONTEXT: u32 = 1;
pub const CQ_FORMAT_MSG: u32 = 2;
pub const CQ_FORMAT_DATA: u32 = 3;
pub const CQ_FORMAT_TAGGED: u32 = 4;

pub const CQ_COND_NONE: u32 = 0;
pub const CQ_COND_THRESHOLD: u32 = 1;

pub const INT8: u32 = 0;
pub const UINT8: u32 = 1;
pub const INT16: u32 = 2;
pub const UINT16: u32 = 3;
pub const INT32: u32 = 4;
pub const UINT32: u32 = 5;
pub const INT64: u32 = 6;
pub const UINT64: u32 = 7;
pub const FLOAT: u32 = 8;
pub const DOUBLE: u32 = 9;
pub const FLOAT_COMPLEX: u32 = 10;
pub const DOUBLE_COMPLEX: u32 = 11;
pub const LONG_DOUBLE: u32 = 12;
pub const LONG_DOUBLE_COMPLEX: u32 = 13;

pub const MIN: u32 = 0;
pub const MAX: u32 = 1;
pub const SUM: u32 = 2;
pub const PROD: u32 = 3;
pub const LOR: u32 = 4;
pub const LAND: u32 = 5;
pub const BOR: u32 = 6;
pub const BAND: u32 = 7;
pub const LXOR: u32 = 8;
pub const BXOR: u32 = 9;
pub const ATOMIC_READ: u32 = 10;
pub const ATOMIC_WRITE: u32 = 11;
pub const CSWAP: u32 = 12;
pub const CSWAP_NE: u32 = 13;
pub const CSWAP_LE: u32 = 14;
pub const CSWAP_LT: u32 = 15;
pub const CSWAP_GE: u32 = 16;
pub const CSWAP_GT: u32 = 17;
pub const MSWAP: u32 = 18;

pub const FETCH_ATOMIC: u64 = 1 << 58;
pub const COMPARE_ATOMIC: u64 = 1 << 59;

pub const OPT_ENDPOINT: c_int = 0;

pub const OPT_MIN_MULTI_RECV: c_int = 0;
pub const OPT_CM_DATA_SIZE: c_int = 1;

pub const PARAM_STRING: u32 = 0;
pub const PARAM_INT: u32 = 1;
pub const PARAM_BOOL: u32 = 2;
pub const PARAM_SIZE_T: u32 = 3;

pub const LOG_CORE: c_int = 0;
pub const LOG_FABRIC: c_int = 1;
pub const LOG_DOMAIN: c_int = 2;
pub const LOG_EP_CTRL: c_int = 3;
pub const LOG_EP_DATA: c_int = 4;
pub const LOG_AV: c_int = 5;
pub const LOG_CQ: c_int = 6;
pub const LOG_EQ: c_int = 7;
pub const LOG_MR: c_int = 8;
pub const LOG_CNTR: c_int = 9;

pub const LOG_WARN: c_int = 0;
pub const LOG_TRACE: c_int = 1;
pub const LOG_INFO: c_int = 2;
pub const LOG_DEBUG: c_int = 3;

/// The bit of values that a provider has made up, in 32-bit fields.
pub const PROV_SPECIFIC: u32 = 1 << 31;

/// A count of contexts that says: share one.
pub const SHARED_CONTEXT: usize = usize::MAX;

/// Every name with its value, for the tests.
pub const ALL: &[(&str, u64)] = &[
    ("FI_MSG", MSG),
    ("FI_RMA", RMA),
    ("FI_TAGGED", TAGGED),
    ("FI_ATOMIC", ATOMIC),
    ("FI_MULTICAST", MULTICAST),
    ("FI_COLLECTIVE", COLLECTIVE),
    ("FI_READ", READ),
    ("FI_WRITE", WRITE),
    ("FI_RECV", RECV),
    ("FI_SEND", SEND),
    ("FI_REMOTE_READ", REMOTE_READ),
    ("FI_REMOTE_WRITE", REMOTE_WRITE),
    ("FI_MULTI_RECV", MULTI_RECV),
    ("FI_REMOTE_CQ_DATA", REMOTE_CQ_DATA),
    ("FI_MORE", MORE),
    ("FI_PEEK", PEEK),
    ("FI_TRIGGER", TRIGGER),
    ("FI_FENCE", FENCE),
    ("FI_COMPLETION", COMPLETION),
    ("FI_INJECT", INJECT),
    ("FI_INJECT_COMPLETE", INJECT_COMPLETE),
    ("FI_TRANSMIT_COMPLETE", TRANSMIT_COMPLETE),
    ("FI_DELIVERY_COMPLETE", DELIVERY_COMPLETE),
    ("FI_AFFINITY", AFFINITY),
    ("FI_COMMIT_COMPLETE", COMMIT_COMPLETE),
    ("FI_MATCH_COMPLETE", MATCH_COMPLETE),
    ("FI_AV_USER_ID", AV_USER_ID),
    ("FI_PEER", PEER),
    ("FI_HMEM", HMEM),
    ("FI_RMA_PMEM", RMA_PMEM),
    ("FI_SOURCE_ERR", SOURCE_ERR),
    ("FI_LOCAL_COMM", LOCAL_COMM),
    ("FI_REMOTE_COMM", REMOTE_COMM),
    ("FI_SHARED_AV", SHARED_AV),
    ("FI_PROV_ATTR_ONLY", PROV_ATTR_ONLY),
    ("FI_NUMERICHOST", NUMERICHOST),
    ("FI_RMA_EVENT", RMA_EVENT),
    ("FI_SOURCE", SOURCE),
    ("FI_NAMED_RX_CTX", NAMED_RX_CTX),
    ("FI_DIRECTED_RECV", DIRECTED_RECV),
    ("FI_CLAIM", CLAIM),
    ("FI_DISCARD", DISCARD),
    ("FI_SELECTIVE_COMPLETION", SELECTIVE_COMPLETION),
    ("FI_SYMMETRIC", SYMMETRIC),
    ("FI_SYNC_ERR", SYNC_ERR),
    ("FI_REG_MR", REG_MR),
    ("FI_CONTEXT", CONTEXT),
    ("FI_CONTEXT2", CONTEXT2),
    ("FI_RX_CQ_DATA", RX_CQ_DATA),
    ("FI_ASYNC_IOV", ASYNC_IOV),
    ("FI_ORDER_RAR", ORDER_RAR),
    ("FI_ORDER_RAW", ORDER_RAW),
    ("FI_ORDER_RAS", ORDER_RAS),
    ("FI_ORDER_WAR", ORDER_WAR),
    ("FI_ORDER_WAW", ORDER_WAW),
    ("FI_ORDER_WAS", ORDER_WAS),
    ("FI_ORDER_SAR", ORDER_SAR),
    ("FI_ORDER_SAW", ORDER_SAW),
    ("FI_ORDER_SAS", ORDER_SAS),
    ("FI_ORDER_STRICT", ORDER_STRICT),
    ("FI_ORDER_RMA_RAR", ORDER_RMA_RAR),
    ("FI_ORDER_RMA_RAW", ORDER_RMA_RAW),
    ("FI_ORDER_RMA_WAR", ORDER_RMA_WAR),
    ("FI_ORDER_RMA_WAW", ORDER_RMA_WAW),
    ("FI_ORDER_ATOMIC_RAR", ORDER_ATOMIC_RAR),
    ("FI_ORDER_ATOMIC_RAW", ORDER_ATOMIC_RAW),
    ("FI_ORDER_ATOMIC_WAR", ORDER_ATOMIC_WAR),
    ("FI_ORDER_ATOMIC_WAW", ORDER_ATOMIC_WAW),
    ("FI_ORDER_DATA", ORDER_DATA),
    ("FI_ADDR_UNSPEC", ADDR_UNSPEC),
    ("FI_ADDR_NOTAVAIL", ADDR_NOTAVAIL),
    ("FI_KEY_NOTAVAIL", KEY_NOTAVAIL),
    ("FI_MR_UNSPEC", MR_UNSPEC as u64),
    ("FI_MR_BASIC", MR_BASIC as u64),
    ("FI_MR_SCALABLE", MR_SCALABLE as u64),
    ("FI_MR_LOCAL", MR_LOCAL as u64),
    ("FI_MR_RAW", MR_RAW as u64),
    ("FI_MR_VIRT_ADDR", MR_VIRT_ADDR as u64),
    ("FI_MR_ALLOCATED", MR_ALLOCATED as u64),
    ("FI_MR_PROV_KEY", MR_PROV_KEY as u64),
    ("FI_MR_MMU_NOTIFY", MR_MMU_NOTIFY as u64),
    ("FI_MR_RMA_EVENT", MR_RMA_EVENT as u64),
    ("FI_MR_ENDPOINT", MR_ENDPOINT as u64),
    ("FI_MR_HMEM", MR_HMEM as u64),
    ("FI_MR_COLLECTIVE", MR_COLLECTIVE as u64),
    ("FI_FORMAT_UNSPEC", FORMAT_UNSPEC as u64),
    ("FI_SOCKADDR", SOCKADDR as u64),
    ("FI_SOCKADDR_IN", SOCKADDR_IN as u64),
    ("FI_SOCKADDR_IN6", SOCKADDR_IN6 as u64),
    ("FI_ADDR_STR", ADDR_STR as u64),
    ("FI_AV_UNSPEC", AV_UNSPEC as u64),
    ("FI_AV_MAP", AV_MAP as u64),
    ("FI_AV_TABLE", AV_TABLE as u64),
    ("FI_PROGRESS_UNSPEC", PROGRESS_UNSPEC as u64),
    ("FI_PROGRESS_AUTO", PROGRESS_AUTO as u64),
    ("FI_PROGRESS_MANUAL", PROGRESS_MANUAL as u64),
    ("FI_THREAD_UNSPEC", THREAD_UNSPEC as u64),
    ("FI_THREAD_SAFE", THREAD_SAFE as u64),
    ("FI_THREAD_FID", THREAD_FID as u64),
    ("FI_THREAD_DOMAIN", THREAD_DOMAIN as u64),
    ("FI_THREAD_COMPLETION", THREAD_COMPLETION as u64),
    ("FI_THREAD_ENDPOINT", THREAD_ENDPOINT as u64),
    ("FI_RM_UNSPEC", RM_UNSPEC as u64),
    ("FI_RM_DISABLED", RM_DISABLED as u64),
    ("FI_RM_ENABLED", RM_ENABLED as u64),
    ("FI_EP_UNSPEC", EP_UNSPEC as u64),
    ("FI_EP_MSG", EP_MSG as u64),
    ("FI_EP_DGRAM", EP_DGRAM as u64),
    ("FI_EP_RDM", EP_RDM as u64),
    ("FI_CLASS_UNSPEC", CLASS_UNSPEC as u64),
    ("FI_CLASS_FABRIC", CLASS_FABRIC as u64),
    ("FI_CLASS_DOMAIN", CLASS_DOMAIN as u64),
    ("FI_CLASS_EP", CLASS_EP as u64),
    ("FI_CLASS_AV", CLASS_AV as u64),
    ("FI_CLASS_MR", CLASS_MR as u64),
    ("FI_CLASS_EQ", CLASS_EQ as u64),
    ("FI_CLASS_CQ", CLASS_CQ as u64),
    ("FI_CLASS_CNTR", CLASS_CNTR as u64),
    ("FI_CLASS_WAIT", CLASS_WAIT as u64),
    ("FI_CLASS_POLL", CLASS_POLL as u64),
    ("FI_GETFIDFLAG", GETFIDFLAG as u64),
    ("FI_SETFIDFLAG", SETFIDFLAG as u64),
    ("FI_GETOPSFLAG", GETOPSFLAG as u64),
    ("FI_SETOPSFLAG", SETOPSFLAG as u64),
    ("FI_ALIAS", ALIAS as u64),
    ("FI_GETWAIT", GETWAIT as u64),
    ("FI_ENABLE", ENABLE as u64),
    ("FI_BACKLOG", BACKLOG as u64),
    ("FI_GET_RAW_MR", GET_RAW_MR as u64),
    ("FI_MAP_RAW_MR", MAP_RAW_MR as u64),
    ("FI_UNMAP_KEY", UNMAP_KEY as u64),
    ("FI_QUEUE_WORK", QUEUE_WORK as u64),
    ("FI_CANCEL_WORK", CANCEL_WORK as u64),
    ("FI_FLUSH_WORK", FLUSH_WORK as u64),
    ("FI_REFRESH", REFRESH as u64),
    ("FI_DUP", DUP as u64),
    ("FI_GETWAITOBJ", GETWAITOBJ as u64),
    ("FI_WAIT_NONE", WAIT_NONE as u64),
    ("FI_WAIT_UNSPEC", WAIT_UNSPEC as u64),
    ("FI_WAIT_SET", WAIT_SET as u64),
    ("FI_WAIT_FD", WAIT_FD as u64),
    ("FI_WAIT_MUTEX_COND", WAIT_MUTEX_COND as u64),
    ("FI_WAIT_YIELD", WAIT_YIELD as u64),
    ("FI_WAIT_POLLFD", WAIT_POLLFD as u64),
    ("FI_NOTIFY", NOTIFY as u64),
    ("FI_CONNREQ", CONNREQ as u64),
    ("FI_CONNECTED", CONNECTED as u64),
    ("FI_SHUTDOWN", SHUTDOWN as u64),
    ("FI_MR_COMPLETE", MR_COMPLETE as u64),
    ("FI_AV_COMPLETE", AV_COMPLETE as u64),
    ("FI_CQ_FORMAT_UNSPEC", CQ_FORMAT_UNSPEC as u64),
    ("FI_CQ_FORMAT_CONTEXT", CQ_FORMAT_CONTEXT as u64),
    ("FI_CQ_FORMAT_MSG", CQ_FORMAT_MSG as u64),
    ("FI_CQ_FORMAT_DATA", CQ_FORMAT_DATA as u64),
    ("FI_CQ_FORMAT_TAGGED", CQ_FORMAT_TAGGED as u64),
    ("FI_CQ_COND_NONE", CQ_COND_NONE as u64),
    ("FI_CQ_COND_THRESHOLD", CQ_COND_THRESHOLD as u64),
    ("FI_INT8", INT8 as u64),
    ("FI_UINT8", UINT8 as u64),
    ("FI_INT16", INT16 as u64),
    ("FI_UINT16", UINT16 as u64),
    ("FI_INT32", INT32 as u64),
    ("FI_UINT32", UINT32 as u64),
    ("FI_INT64", INT64 as u64),
    ("FI_UINT64", UINT64 as u64),
    ("FI_FLOAT", FLOAT as u64),
    ("FI_DOUBLE", DOUBLE as u64),
    ("FI_FLOAT_COMPLEX", FLOAT_COMPLEX as u64),
    ("FI_DOUBLE_COMPLEX", DOUBLE_COMPLEX as u64),
    ("FI_LONG_DOUBLE", LONG_DOUBLE as u64),
    ("FI_LONG_DOUBLE_COMPLEX", LONG_DOUBLE_COMPLEX as u64),
    ("FI_MIN", MIN as u64),
    ("FI_MAX", MAX as u64),
    ("FI_SUM", SUM as u64),
    ("FI_PROD", PROD as u64),
    ("FI_LOR", LOR as u64),
    ("FI_LAND", LAND as u64),
    ("FI_BOR", BOR as u64),
    ("FI_BAND", BAND as u64),
    ("FI_LXOR", LXOR as u64),
    ("FI_BXOR", BXOR as u64),
    ("FI_ATOMIC_READ", ATOMIC_READ as u64),
    ("FI_ATOMIC_WRITE", ATOMIC_WRITE as u64),
    ("FI_CSWAP", CSWAP as u64),
    ("FI_CSWAP_NE", CSWAP_NE as u64),
    ("FI_CSWAP_LE", CSWAP_LE as u64),
    ("FI_CSWAP_LT", CSWAP_LT as u64),
    ("FI_CSWAP_GE", CSWAP_GE as u64),
    ("FI_CSWAP_GT", CSWAP_GT as u64),
    ("FI_MSWAP", MSWAP as u64),
    ("FI_FETCH_ATOMIC", FETCH_ATOMIC),
    ("FI_COMPARE_ATOMIC", COMPARE_ATOMIC),
    ("FI_OPT_ENDPOINT", OPT_ENDPOINT as u64),
    ("FI_OPT_MIN_MULTI_RECV", OPT_MIN_MULTI_RECV as u64),
    ("FI_OPT_CM_DATA_SIZE", OPT_CM_DATA_SIZE as u64),
    ("FI_PARAM_STRING", PARAM_STRING as u64),
    ("FI_PARAM_INT", PARAM_INT as u64),
    ("FI_PARAM_BOOL", PARAM_BOOL as u64),
    ("FI_PARAM_SIZE_T", PARAM_SIZE_T as u64),
    ("FI_LOG_CORE", LOG_CORE as u64),
    ("FI_LOG_FABRIC", LOG_FABRIC as u64),
    ("FI_LOG_DOMAIN", LOG_DOMAIN as u64),
    ("FI_LOG_EP_CTRL", LOG_EP_CTRL as u64),
    ("FI_LOG_EP_DATA", LOG_EP_DATA as u64),
    ("FI_LOG_AV", LOG_AV as u64),
    ("FI_LOG_CQ", LOG_CQ as u64),
    ("FI_LOG_EQ", LOG_EQ as u64),
    ("FI_LOG_MR", LOG_MR as u64),
    ("FI_LOG_CNTR", LOG_CNTR as u64),
    ("FI_LOG_WARN", LOG_WARN as u64),
    ("FI_LOG_TRACE", LOG_TRACE as u64),
    ("FI_LOG_INFO", LOG_INFO as u64),
    ("FI_LOG_DEBUG", LOG_DEBUG as u64),
];

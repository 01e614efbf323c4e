//! Masks, flags and numbers, by the names that C has for them.

use ayre_guest::layout::version;
use std::ffi::c_uint;

/// A number as a C compiler should give it: its name, its value, and the version that has it first,
/// or 0 for those of the first day.
pub type Number = (&'static str, u64, u32);

macro_rules! numbers {
    ($(#[$meta:meta])* $all:ident: $type:ty; $(
        $name:ident = $value:expr $(, since($major:literal, $minor:literal))?;
    )*) => {
        $(pub const $name: $type = $value;)*

        $(#[$meta])*
        const $all: &[Number] = &[
            $((stringify!($name), $name as u64, 0 $(+ version($major, $minor))?),)*
        ];
    };
}

numbers! {
    /// Fields of parameters and attributes of contexts and workers; features.
    CONTEXT: u64;
    UCP_ATTR_FIELD_REQUEST_SIZE = 1 << 0;
    UCP_ATTR_FIELD_THREAD_MODE = 1 << 1;
    UCP_ATTR_FIELD_MEMORY_TYPES = 1 << 2;
    UCP_ATTR_FIELD_NAME = 1 << 3, since(1, 11);
    UCP_ATTR_FIELD_DEVICE_COUNTER_SIZE = 1 << 4, since(1, 20);
    UCP_FEATURE_TAG = 1 << 0;
    UCP_FEATURE_RMA = 1 << 1;
    UCP_FEATURE_AMO32 = 1 << 2;
    UCP_FEATURE_AMO64 = 1 << 3;
    UCP_FEATURE_WAKEUP = 1 << 4;
    UCP_FEATURE_STREAM = 1 << 5;
    UCP_FEATURE_AM = 1 << 6;
    UCP_FEATURE_EXPORTED_MEMH = 1 << 7, since(1, 14);
    UCP_FEATURE_DEVICE = 1 << 8, since(1, 20);
    UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL = 1 << 0, since(1, 11);
    UCP_PARAM_FIELD_FEATURES = 1 << 0;
    UCP_PARAM_FIELD_REQUEST_SIZE = 1 << 1;
    UCP_PARAM_FIELD_REQUEST_INIT = 1 << 2;
    UCP_PARAM_FIELD_REQUEST_CLEANUP = 1 << 3;
    UCP_PARAM_FIELD_TAG_SENDER_MASK = 1 << 4;
    UCP_PARAM_FIELD_MT_WORKERS_SHARED = 1 << 5;
    UCP_PARAM_FIELD_ESTIMATED_NUM_EPS = 1 << 6;
    UCP_PARAM_FIELD_ESTIMATED_NUM_PPN = 1 << 7;
    UCP_PARAM_FIELD_NAME = 1 << 8, since(1, 11);
    UCP_PARAM_FIELD_NODE_LOCAL_ID = 1 << 9, since(1, 20);
    UCP_WORKER_ADDRESS_ATTR_FIELD_UID = 1 << 0, since(1, 12);
    UCP_WORKER_ATTR_FIELD_THREAD_MODE = 1 << 0;
    UCP_WORKER_ATTR_FIELD_ADDRESS = 1 << 1;
    UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS = 1 << 2;
    UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER = 1 << 3;
    UCP_WORKER_ATTR_FIELD_NAME = 1 << 4, since(1, 11);
    UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING = 1 << 5, since(1, 11);
    UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK = 1 << 0, since(1, 11);
    UCP_WORKER_PARAM_FIELD_THREAD_MODE = 1 << 0;
    UCP_WORKER_PARAM_FIELD_CPU_MASK = 1 << 1;
    UCP_WORKER_PARAM_FIELD_EVENTS = 1 << 2;
    UCP_WORKER_PARAM_FIELD_USER_DATA = 1 << 3;
    UCP_WORKER_PARAM_FIELD_EVENT_FD = 1 << 4;
    UCP_WORKER_PARAM_FIELD_FLAGS = 1 << 5, since(1, 11);
    UCP_WORKER_PARAM_FIELD_NAME = 1 << 6, since(1, 11);
    UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT = 1 << 7, since(1, 12);
    UCP_WORKER_PARAM_FIELD_CLIENT_ID = 1 << 8, since(1, 12);
}

numbers! {
    /// Flags of addresses and events of workers, and modes.
    WORKER: c_uint;
    UCP_EP_CLOSE_MODE_FORCE = 0;
    UCP_EP_CLOSE_FLAG_FORCE = 1 << 0;
    UCP_EP_CLOSE_MODE_FLUSH = 1;
    UCP_EP_PARAMS_FLAGS_CLIENT_SERVER = 1 << 0;
    UCP_EP_PARAMS_FLAGS_NO_LOOPBACK = 1 << 1;
    UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID = 1 << 2, since(1, 12);
    UCP_ERR_HANDLING_MODE_NONE = 0;
    UCP_ERR_HANDLING_MODE_PEER = 1;
    UCP_ERR_HANDLING_MODE_FAILOVER = 2, since(1, 21);
    UCP_MADV_NORMAL = 0;
    UCP_MADV_WILLNEED = 1;
    UCP_STREAM_RECV_FLAG_WAITALL = 1 << 0;
    UCP_WAKEUP_RMA = 1 << 0;
    UCP_WAKEUP_AMO = 1 << 1;
    UCP_WAKEUP_TAG_SEND = 1 << 2;
    UCP_WAKEUP_TAG_RECV = 1 << 3;
    UCP_WAKEUP_TX = 1 << 10;
    UCP_WAKEUP_RX = 1 << 11;
    UCP_WAKEUP_EDGE = 1 << 16;
    UCP_WORKER_ADDRESS_FLAG_NET_ONLY = 1 << 0;
}

numbers! {
    /// Endpoints, listeners and connection requests.
    ENDPOINT: u64;
    UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR = 1 << 0;
    UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID = 1 << 1, since(1, 12);
    UCP_EP_ATTR_FIELD_NAME = 1 << 0, since(1, 11);
    UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR = 1 << 1, since(1, 12);
    UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR = 1 << 2, since(1, 12);
    UCP_EP_ATTR_FIELD_TRANSPORTS = 1 << 3, since(1, 14);
    UCP_EP_ATTR_FIELD_USER_DATA = 1 << 4, since(1, 18);
    UCP_EP_PARAM_FIELD_REMOTE_ADDRESS = 1 << 0;
    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE = 1 << 1;
    UCP_EP_PARAM_FIELD_ERR_HANDLER = 1 << 2;
    UCP_EP_PARAM_FIELD_USER_DATA = 1 << 3;
    UCP_EP_PARAM_FIELD_SOCK_ADDR = 1 << 4;
    UCP_EP_PARAM_FIELD_FLAGS = 1 << 5;
    UCP_EP_PARAM_FIELD_CONN_REQUEST = 1 << 6;
    UCP_EP_PARAM_FIELD_NAME = 1 << 7, since(1, 11);
    UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR = 1 << 8, since(1, 13);
    UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME = 1 << 0, since(1, 11);
    UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE = 1 << 0, since(1, 11);
    UCP_LISTENER_ATTR_FIELD_SOCKADDR = 1 << 0;
    UCP_LISTENER_PARAM_FIELD_SOCK_ADDR = 1 << 0;
    UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER = 1 << 1;
    UCP_LISTENER_PARAM_FIELD_CONN_HANDLER = 1 << 2;
}

numbers! {
    /// Memory and keys.
    MEMORY: u64;
    UCP_MEMH_PACK_FLAG_EXPORT = 1 << 0, since(1, 14);
    UCP_MEMH_PACK_PARAM_FIELD_FLAGS = 1 << 0, since(1, 14);
    UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS = 1 << 0;
    UCP_MEM_ADVISE_PARAM_FIELD_LENGTH = 1 << 1;
    UCP_MEM_ADVISE_PARAM_FIELD_ADVICE = 1 << 2;
    UCP_MEM_ATTR_FIELD_ADDRESS = 1 << 0;
    UCP_MEM_ATTR_FIELD_LENGTH = 1 << 1;
    UCP_MEM_ATTR_FIELD_MEM_TYPE = 1 << 2, since(1, 11);
    UCP_MEM_MAP_PARAM_FIELD_ADDRESS = 1 << 0;
    UCP_MEM_MAP_PARAM_FIELD_LENGTH = 1 << 1;
    UCP_MEM_MAP_PARAM_FIELD_FLAGS = 1 << 2;
    UCP_MEM_MAP_PARAM_FIELD_PROT = 1 << 3;
    UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE = 1 << 4;
    UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER = 1 << 5, since(1, 14);
}

numbers! {
    /// Flags of mapped memory.
    MAP: c_uint;
    UCP_MEM_MAP_NONBLOCK = 1 << 0;
    UCP_MEM_MAP_PROT_LOCAL_READ = 1 << 0;
    UCP_MEM_MAP_ALLOCATE = 1 << 1;
    UCP_MEM_MAP_PROT_LOCAL_WRITE = 1 << 1;
    UCP_MEM_MAP_FIXED = 1 << 2;
    UCP_MEM_MAP_SYMMETRIC_RKEY = 1 << 3, since(1, 16);
    UCP_MEM_MAP_LOCK = 1 << 4, since(1, 18);
    UCP_MEM_MAP_PROT_REMOTE_READ = 1 << 8;
    UCP_MEM_MAP_PROT_REMOTE_WRITE = 1 << 9;
}

numbers! {
    /// Operations: fields and flags of their parameters.
    OPERATION: u32;
    UCP_OP_ATTR_FIELD_REQUEST = 1 << 0;
    UCP_OP_ATTR_FIELD_CALLBACK = 1 << 1;
    UCP_OP_ATTR_FIELD_USER_DATA = 1 << 2;
    UCP_OP_ATTR_FIELD_DATATYPE = 1 << 3;
    UCP_OP_ATTR_FIELD_FLAGS = 1 << 4;
    UCP_OP_ATTR_FIELD_REPLY_BUFFER = 1 << 5;
    UCP_OP_ATTR_FIELD_MEMORY_TYPE = 1 << 6;
    UCP_OP_ATTR_FIELD_RECV_INFO = 1 << 7;
    UCP_OP_ATTR_FIELD_MEMH = 1 << 8, since(1, 13);
    UCP_OP_ATTR_FIELD_REMOTE_DATATYPE = 1 << 9, since(1, 22);
    UCP_OP_ATTR_FIELD_REMOTE = 1 << 10, since(1, 22);
    UCP_OP_ATTR_FIELD_REMOTE_COUNT = 1 << 11, since(1, 22);
    UCP_OP_ATTR_FLAG_NO_IMM_CMPL = 1 << 16;
    UCP_OP_ATTR_FLAG_FAST_CMPL = 1 << 17;
    UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL = 1 << 18;
    UCP_OP_ATTR_FLAG_MULTI_SEND = 1 << 19, since(1, 12);
}

numbers! {
    /// Requests, active messages and datatypes.
    REQUEST: u64;
    UCP_AM_HANDLER_PARAM_FIELD_ID = 1 << 0;
    UCP_AM_HANDLER_PARAM_FIELD_FLAGS = 1 << 1;
    UCP_AM_HANDLER_PARAM_FIELD_CB = 1 << 2;
    UCP_AM_HANDLER_PARAM_FIELD_ARG = 1 << 3;
    UCP_AM_RECV_ATTR_FIELD_REPLY_EP = 1 << 0;
    UCP_AM_RECV_ATTR_FLAG_DATA = 1 << 16;
    UCP_AM_RECV_ATTR_FLAG_RNDV = 1 << 17;
    UCP_DATATYPE_CONTIG = 0;
    UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE = 1 << 0, since(1, 14);
    UCP_DATATYPE_STRIDED = 1;
    UCP_DATATYPE_ATTR_FIELD_BUFFER = 1 << 1, since(1, 14);
    UCP_DATATYPE_IOV = 2;
    UCP_DATATYPE_SHIFT = 3;
    UCP_DATATYPE_ATTR_FIELD_COUNT = 1 << 2, since(1, 14);
    UCP_DATATYPE_SGL = 4, since(1, 22);
    UCP_DATATYPE_CLASS_MASK = 7;
    UCP_DATATYPE_GENERIC = 7;
    UCP_DT_LOCAL_SGL_FIELD_BUFFERS = 1 << 0, since(1, 22);
    UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS = 1 << 0, since(1, 22);
    UCP_DT_LOCAL_SGL_FIELD_LENGTHS = 1 << 1, since(1, 22);
    UCP_DT_REMOTE_SGL_FIELD_LENGTHS = 1 << 1, since(1, 22);
    UCP_DT_LOCAL_SGL_FIELD_MEMHS = 1 << 2, since(1, 22);
    UCP_DT_REMOTE_SGL_FIELD_RKEYS = 1 << 2, since(1, 22);
    UCP_DT_LOCAL_SGL_FIELD_COUNTS = 1 << 3, since(1, 22);
    UCP_DT_LOCAL_SGL_FIELD_STRIDES = 1 << 4, since(1, 22);
    UCP_REQUEST_ATTR_FIELD_INFO_STRING = 1 << 0, since(1, 11);
    UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE = 1 << 1, since(1, 11);
    UCP_REQUEST_ATTR_FIELD_STATUS = 1 << 2, since(1, 11);
    UCP_REQUEST_ATTR_FIELD_MEM_TYPE = 1 << 3, since(1, 11);
}

numbers! {
    /// Flags of active messages and their handlers; atomics.
    ACTIVE: u32;
    UCP_AM_FLAG_WHOLE_MSG = 1 << 0;
    UCP_AM_SEND_FLAG_REPLY = 1 << 0;
    UCP_AM_SEND_REPLY = 1 << 0;
    UCP_AM_FLAG_PERSISTENT_DATA = 1 << 1, since(1, 11);
    UCP_AM_SEND_FLAG_EAGER = 1 << 1;
    UCP_AM_SEND_FLAG_RNDV = 1 << 2;
    UCP_AM_SEND_FLAG_COPY_HEADER = 1 << 3, since(1, 14);
    UCP_ATOMIC_FETCH_OP_FADD = 0;
    UCP_ATOMIC_FETCH_OP_SWAP = 1;
    UCP_ATOMIC_FETCH_OP_CSWAP = 2;
    UCP_ATOMIC_FETCH_OP_FAND = 3;
    UCP_ATOMIC_FETCH_OP_FOR = 4;
    UCP_ATOMIC_FETCH_OP_FXOR = 5;
    UCP_ATOMIC_FETCH_OP_LAST = 6;
    UCP_ATOMIC_OP_ADD = 0;
    UCP_ATOMIC_OP_SWAP = 1;
    UCP_ATOMIC_OP_CSWAP = 2;
    UCP_ATOMIC_OP_AND = 3;
    UCP_ATOMIC_OP_OR = 4;
    UCP_ATOMIC_OP_XOR = 5;
    UCP_ATOMIC_OP_LAST = 6;
    UCP_ATOMIC_POST_OP_ADD = 0;
    UCP_ATOMIC_POST_OP_AND = 1;
    UCP_ATOMIC_POST_OP_OR = 2;
    UCP_ATOMIC_POST_OP_XOR = 3;
    UCP_ATOMIC_POST_OP_LAST = 4;
    UCP_CB_PARAM_FLAG_DATA = 1 << 0;
}

numbers! {
    /// Kinds of memory. Only the first one is there.
    MEMORY_TYPES: c_uint;
    UCS_MEMORY_TYPE_HOST = 0;
    UCS_MEMORY_TYPE_CUDA = 1;
    UCS_MEMORY_TYPE_CUDA_MANAGED = 2;
    UCS_MEMORY_TYPE_ROCM = 3;
    UCS_MEMORY_TYPE_ROCM_MANAGED = 4;
    UCS_MEMORY_TYPE_RDMA = 5, since(1, 16);
}

numbers! {
    /// How a program uses threads.
    THREAD_MODES: c_uint;
    UCS_THREAD_MODE_SINGLE = 0;
    UCS_THREAD_MODE_SERIALIZED = 1;
    UCS_THREAD_MODE_MULTI = 2;
}

/// `UCS_MEMORY_TYPE_UNKNOWN` is the number after the last type, and so the one that has changed.
const UNKNOWN: [Number; 4] = [
    ("UCS_MEMORY_TYPE_UNKNOWN", 5, 0),
    ("UCS_MEMORY_TYPE_UNKNOWN", 6, version(1, 16)),
    ("UCS_MEMORY_TYPE_UNKNOWN", 9, version(1, 17)),
    ("UCS_MEMORY_TYPE_UNKNOWN", 10, version(1, 21)),
];

/// That number in a program of this version of the headers.
pub fn unknown_memory_type(program: u32) -> c_uint {
    let known = UNKNOWN.iter().rfind(|(.., since)| *since <= program);
    known.map_or(0, |(_, value, _)| *value as c_uint)
}

/// All numbers, for the tests.
pub fn all() -> impl Iterator<Item = Number> {
    let all = [
        CONTEXT,
        WORKER,
        ENDPOINT,
        MEMORY,
        MAP,
        OPERATION,
        REQUEST,
        ACTIVE,
        MEMORY_TYPES,
        THREAD_MODES,
        &UNKNOWN,
    ];
    all.into_iter().flatten().copied()
}

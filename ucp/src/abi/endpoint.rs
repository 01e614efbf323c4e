//! Endpoints, listeners and connection requests.

use super::handles::{Address, ConnRequest, Ep};
use super::status::Status;
use ayre_guest::c_structs;
use libc::{sockaddr, sockaddr_storage, socklen_t};
use std::ffi::{c_char, c_uint, c_void};

pub type ErrFn = Option<unsafe extern "C" fn(arg: *mut c_void, ep: *mut Ep, status: Status)>;
pub type AcceptFn = Option<unsafe extern "C" fn(ep: *mut Ep, arg: *mut c_void)>;
pub type ConnFn = Option<unsafe extern "C" fn(request: *mut ConnRequest, arg: *mut c_void)>;

c_structs! {
    ENDPOINTS:
    struct SockAddr = "ucs_sock_addr_t" {
        addr: *const sockaddr,
        addrlen: socklen_t,
    }

    struct ErrHandler = "ucp_err_handler_t" {
        cb: ErrFn,
        arg: *mut c_void,
    }

    struct EpParams = "ucp_ep_params_t" {
        field_mask: u64,
        address: *const Address,
        err_mode: c_uint,
        err_handler: ErrHandler,
        user_data: *mut c_void,
        flags: c_uint,
        sockaddr: SockAddr,
        conn_request: *mut ConnRequest,
        name: *const c_char = since(1, 11),
        local_sockaddr: SockAddr = since(1, 13),
    }

    struct TransportEntry = "ucp_transport_entry_t" {
        transport_name: *const c_char = since(1, 14),
        device_name: *const c_char = since(1, 14),
    }

    struct Transports = "ucp_transports_t" {
        entries: *mut TransportEntry = since(1, 14),
        num_entries: c_uint = since(1, 14),
        entry_size: usize = since(1, 14),
    }

    struct EpAttr = "ucp_ep_attr_t" {
        field_mask: u64 = since(1, 11),
        name: [c_char; 32] = since(1, 11),
        local_sockaddr: sockaddr_storage = since(1, 12),
        remote_sockaddr: sockaddr_storage = since(1, 12),
        transports: Transports = since(1, 14),
        user_data: *mut c_void = since(1, 18),
    }

    struct EvaluatePerfParam = "ucp_ep_evaluate_perf_param_t" {
        field_mask: u64 = since(1, 11),
        message_size: usize = since(1, 11),
    }

    struct EvaluatePerfAttr = "ucp_ep_evaluate_perf_attr_t" {
        field_mask: u64 = since(1, 11),
        estimated_time: f64 = since(1, 11),
    }

    struct AcceptHandler = "ucp_listener_accept_handler_t" {
        cb: AcceptFn,
        arg: *mut c_void,
    }

    struct ConnHandler = "ucp_listener_conn_handler_t" {
        cb: ConnFn,
        arg: *mut c_void,
    }

    struct ListenerParams = "ucp_listener_params_t" {
        field_mask: u64,
        sockaddr: SockAddr,
        accept_handler: AcceptHandler,
        conn_handler: ConnHandler,
    }

    struct ListenerAttr = "ucp_listener_attr_t" {
        field_mask: u64,
        sockaddr: sockaddr_storage,
    }

    struct ConnRequestAttr = "ucp_conn_request_attr_t" {
        field_mask: u64,
        client_address: sockaddr_storage,
        client_id: u64 = since(1, 12),
    }

    struct StreamPollEp = "ucp_stream_poll_ep_t" {
        ep: *mut Ep,
        user_data: *mut c_void,
        flags: c_uint,
        reserved: [u8; 16],
    }
}

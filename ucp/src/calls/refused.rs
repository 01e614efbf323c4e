//! Functions that are not there yet. A program that binds them gets an answer, and not an error in
//! the middle of its run. No program gets as far as most of them: `ucp_init` refuses the features.
//!
//! By the rules of C for this processor a function may be called with more parameters than it has.

use super::param::{StatusPtr, pointer_of};
use crate::abi::status::Status;
use crate::log;

macro_rules! refused {
    ($($result:ty = $answer:expr; $($name:ident)*;)*) => { $($(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> $result {
            log::warn(concat!(stringify!($name), " is not there yet"));
            $answer
        }
    )*)* };
}

refused! {
    Status = Status::UNSUPPORTED;
        ucp_conn_request_query ucp_device_counter_init ucp_device_local_mem_list_create
        ucp_device_remote_mem_list_create ucp_dt_query ucp_ep_evaluate_perf ucp_listener_create
        ucp_listener_query ucp_listener_reject ucp_stream_recv_request_test;
    StatusPtr = pointer_of(Status::UNSUPPORTED);
        ucp_ep_modify_nb ucp_stream_recv_data_nb ucp_stream_recv_nb ucp_stream_recv_nbx
        ucp_stream_send_nb ucp_stream_send_nbx;
    isize = Status::UNSUPPORTED.0 as isize;
        ucp_stream_worker_poll;
    () = ();
        ucp_device_mem_list_release ucp_listener_destroy ucp_stream_data_release;
}

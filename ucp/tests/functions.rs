//! Every function that a program can bind is there. A missing one would end a program that binds
//! lazily in the middle of its run: here it keeps the test from being linked.

// Its functions are what is linked.
use ayre_ucp as _;

macro_rules! functions {
    ($($name:ident)*) => {
        #[allow(clippy::unnecessary_safety_comment, reason = "every foreign block has one")]
        // SAFETY: they may have any type, as they are not called.
        unsafe extern "C" { $(fn $name();)* }

        const FUNCTIONS: &[(&str, unsafe extern "C" fn())] = &[$((stringify!($name), $name),)*];
    };
}

functions! {
    ucp_am_data_release ucp_am_recv_data_nbx ucp_am_send_nb ucp_am_send_nbx ucp_atomic_add32
    ucp_atomic_add64 ucp_atomic_cswap32 ucp_atomic_cswap64 ucp_atomic_fadd32 ucp_atomic_fadd64
    ucp_atomic_fetch_nb ucp_atomic_op_nbx ucp_atomic_post ucp_atomic_swap32 ucp_atomic_swap64
    ucp_cleanup ucp_config_modify ucp_config_print ucp_config_read ucp_config_release
    ucp_conn_request_query ucp_context_print_info ucp_context_query ucp_device_counter_init
    ucp_device_local_mem_list_create ucp_device_mem_list_release
    ucp_device_remote_mem_list_create ucp_disconnect_nb ucp_dt_create_generic ucp_dt_destroy
    ucp_dt_query ucp_ep_close_nb ucp_ep_close_nbx ucp_ep_create ucp_ep_destroy
    ucp_ep_evaluate_perf ucp_ep_flush ucp_ep_flush_nb ucp_ep_flush_nbx ucp_ep_modify_nb
    ucp_ep_print_info ucp_ep_query ucp_ep_rkey_unpack ucp_get ucp_get_nb ucp_get_nbi ucp_get_nbx
    ucp_get_version ucp_get_version_string ucp_init_version ucp_lib_query ucp_listener_create
    ucp_listener_destroy ucp_listener_query ucp_listener_reject ucp_mem_advise ucp_mem_map
    ucp_mem_print_info ucp_mem_query ucp_mem_unmap ucp_memh_buffer_release ucp_memh_pack ucp_put
    ucp_put_nb ucp_put_nbi ucp_put_nbx ucp_request_alloc ucp_request_cancel
    ucp_request_check_status ucp_request_free ucp_request_is_completed ucp_request_query
    ucp_request_release ucp_request_test ucp_rkey_buffer_release ucp_rkey_compare
    ucp_rkey_destroy ucp_rkey_pack ucp_rkey_ptr ucp_stream_data_release ucp_stream_recv_data_nb
    ucp_stream_recv_nb ucp_stream_recv_nbx ucp_stream_recv_request_test ucp_stream_send_nb
    ucp_stream_send_nbx ucp_stream_worker_poll ucp_tag_msg_recv_nb ucp_tag_msg_recv_nbx
    ucp_tag_probe_nb ucp_tag_recv_nb ucp_tag_recv_nbr ucp_tag_recv_nbx ucp_tag_recv_request_test
    ucp_tag_send_nb ucp_tag_send_nbr ucp_tag_send_nbx ucp_tag_send_sync_nb ucp_tag_send_sync_nbx
    ucp_worker_address_query ucp_worker_arm ucp_worker_create ucp_worker_destroy ucp_worker_fence
    ucp_worker_flush ucp_worker_flush_nb ucp_worker_flush_nbx ucp_worker_get_address
    ucp_worker_get_efd ucp_worker_print_info ucp_worker_progress ucp_worker_query
    ucp_worker_release_address ucp_worker_set_am_handler ucp_worker_set_am_recv_handler
    ucp_worker_signal ucp_worker_wait ucp_worker_wait_mem ucs_status_string
}

#[test]
fn all_of_ucps_functions_are_there() {
    // Those of UCP's headers from 1.10 to 1.22 but the inline `ucp_init`, and one of UCS.
    assert_eq!(FUNCTIONS.len(), 119);
    let mut names: Vec<_> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
    names.dedup();
    assert_eq!(names.len(), FUNCTIONS.len(), "each stands there once");
    assert!(FUNCTIONS.iter().all(|(_, function)| *function as usize != 0));
}

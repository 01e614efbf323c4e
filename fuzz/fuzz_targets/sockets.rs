//! Any words of a peer about a stream of sockets.
#![no_main]
#[path = "../../proto/tests/common/any_socket.rs"]
mod any_socket;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| any_socket::stream(bytes));

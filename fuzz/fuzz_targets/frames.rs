//! Any datagrams on a link.
#![no_main]
#[path = "../../proto/tests/common/any_frame.rs"]
mod any_frame;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| any_frame::datagram(bytes));

//! Any messages and items to a port of streams, among what its program does; nothing stays.
#![no_main]
#![allow(dead_code, reason = "the tests do more with a port")]
#[path = "../../proto/tests/stream/hostile.rs"]
mod hostile;
#[path = "../../proto/tests/stream/node.rs"]
mod node;
#[path = "../../proto/tests/common/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    hostile::play(bytes);
});

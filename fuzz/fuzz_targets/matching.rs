//! Any messages for a matcher, among any receives; the oracle says where they go.
#![no_main]
#[path = "../../proto/tests/matching/oracle.rs"]
mod oracle;
#[path = "../../proto/tests/matching/pair.rs"]
mod pair;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pair::play(bytes));

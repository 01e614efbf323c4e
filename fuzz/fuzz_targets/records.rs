//! Any records of endpoints.
#![no_main]
#[path = "../../proto/tests/common/any_record.rs"]
mod any_record;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| any_record::record(bytes));

//! Any memory behind the reader of a lane, and any cursor before its writer.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ayre::fuzzing::lane(bytes));

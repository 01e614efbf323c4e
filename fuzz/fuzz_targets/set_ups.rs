//! Opens, accepts and refusals before a port, with any set-ups and handshakes.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ayre::fuzzing::set_ups(bytes));

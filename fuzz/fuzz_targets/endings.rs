//! Resyncs, resets, closes and probes on links of a port.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ayre::fuzzing::endings(bytes));

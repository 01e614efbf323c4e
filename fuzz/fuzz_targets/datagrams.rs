//! Any datagrams before a port that has links to others.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ayre::fuzzing::datagrams(bytes));

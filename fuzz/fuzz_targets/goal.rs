//! Any text as a GOAL schedule; one that can be read is run.
#![no_main]
use ayre_sim::goal::{LogGops, Schedule, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(schedule) = Schedule::read(bytes) {
        let _ = run(&schedule, &LogGops::LOGGOPSIM, true);
    }
});

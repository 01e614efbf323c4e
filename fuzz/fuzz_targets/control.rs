//! Any packets on the control channel, with any files.
#![no_main]
#[path = "../../engine/tests/hostile/attacker.rs"]
mod attacker;
#[path = "../../engine/tests/hostile/scripts.rs"]
mod scripts;
#[path = "../../engine/tests/hostile/world.rs"]
mod world;

use ayre::Mode;
use libfuzzer_sys::fuzz_target;
use scripts::Stage;
use std::sync::Mutex;

static STAGE: Mutex<Stage> = Mutex::new(Stage::new(Mode::Direct, "fuzz-control"));

fuzz_target!(|bytes: &[u8]| {
    scripts::control(&mut STAGE.lock().expect("one script at a time"), bytes);
});

//! Any deposit messages to a mediated port.
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

static STAGE: Mutex<Stage> = Mutex::new(Stage::new(Mode::Mediated, "fuzz-deposits"));

fuzz_target!(|bytes: &[u8]| {
    scripts::deposits(&mut STAGE.lock().expect("one script at a time"), bytes);
});

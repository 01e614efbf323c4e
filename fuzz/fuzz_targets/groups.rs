//! Any messages to members of a group, with numbers near those that are due; what is refused
//! changes nothing.
#![no_main]
#![allow(dead_code, reason = "the tests do more with a group")]
#[path = "../../proto/tests/common/dice.rs"]
mod dice;
#[path = "../../proto/tests/group/hostile.rs"]
mod hostile;
#[path = "../../proto/tests/group/net.rs"]
mod net;
#[path = "../../proto/tests/group/oracle.rs"]
mod oracle;
#[path = "../../proto/tests/common/script.rs"]
mod script;
#[path = "../../proto/tests/group/world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    hostile::play(bytes);
});

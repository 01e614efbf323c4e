//! Processes that a test starts from its own binary, as the engine's tests do.

#[path = "../../../engine/tests/common/container.rs"]
pub mod container;
#[path = "../../../engine/tests/common/directory.rs"]
pub mod directory;
#[path = "../../../engine/tests/common/family.rs"]
pub mod family;
#[path = "../../../engine/tests/common/line.rs"]
pub mod line;
#[path = "../../../engine/tests/common/random.rs"]
pub mod random;
#[path = "../../../engine/tests/common/system.rs"]
pub mod system;
#[path = "../../../engine/tests/common/watchdog.rs"]
pub mod watchdog;

pub(crate) use family::{Process, with_processes};
pub(crate) use line::Line;

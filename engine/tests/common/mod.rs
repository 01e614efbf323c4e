//! The common parts of tests over several processes.
//!
//! A test is one function with two bodies. It starts its own binary again, for this test alone and
//! with a number in the environment, and there the other body runs. So a process of a test runs
//! nothing else, and all descriptors, mappings and memory that it counts are its own.
//!
//! Nothing here looks at a clock, but for the watchdog, which fails a test that does not end.
#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

pub mod container;
pub mod directory;
pub mod family;
pub mod line;
#[cfg(feature = "net")]
pub mod net;
pub mod net_hosts;
pub mod ports;
pub mod random;
#[cfg(feature = "net")]
pub mod simulated;
pub mod system;
pub mod watchdog;

pub use container::Container;
pub use directory::Directory;
pub use family::{Family, Process, with_processes};
pub use line::Line;
pub use ports::Executor;
pub use random::{Random, iterations};

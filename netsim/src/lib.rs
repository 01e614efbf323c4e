//! A network that errs, in virtual time and by a seed: what the tests of `proto`, the engine's
//! simulated networks and its faults have in common.
//!
//! ```text
//!   send -> cut? lost? -> rate, queue -> delay, jitter -> held back, damaged, twice -> take
//! ```
//!
//! [`Flights`] has what is on its way, by when it arrives. A [`Way`] is one direction between two
//! places, and does to what is sent what its [`Plan`] says. A [`Network`] is several of them, as
//! one thing to wait for. [`Channels`] lose nothing and know no time: what is sent comes in order,
//! whenever dice say so. There is no clock: time is an argument, and what a way does follows from
//! its plan and what it was sent when.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod channels;
mod dice;
mod flights;
mod way;

pub use channels::Channels;
pub use dice::Dice;
pub use flights::Flights;
pub use way::{Counters, Item, Network, PASSED_MAX, PASSED_NANOS, Plan, Way};

//! One suite that holds every executor to the contract in `spec/`.
//!
//! A case is a function of an [`Executor`]: it opens the ports it needs, drives them, and panics
//! where the contract is broken. [`suite!`](crate::suite!), [`suite_of_ports!`] and
//! [`suite_of_mediated!`] list the cases and turn them into tests for one executor; a new executor
//! is a new variant, a way to open it in [`world`], and three lines in `tests/executors.rs`.
//!
//! No case looks at a clock or sleeps. What is waited for is an event of the interface; where the
//! target has to be served meanwhile, see [`world::World::drive`]. Random cases say the seed that
//! brings them back, see [`seed`].

pub mod crowd;
pub mod data;
mod model;
pub mod multicast;
pub mod seed;
mod suite;
pub mod world;

pub mod active;
pub mod adaptive;
pub mod atomics;
pub mod batches;
pub mod bounds;
pub mod channels;
pub mod collectives;
pub mod concurrency;
pub mod death;
pub mod deposits;
pub mod epochs;
pub mod handles;
pub mod inside;
pub mod liars;
pub mod locks;
pub mod messages;
pub mod notifications;
pub mod oracle;
pub mod processes;
pub mod queues;
pub mod regions;
pub mod replies;
pub mod revocation;
pub mod rights;
pub mod room;
pub mod storm;
pub mod stream_liars;
pub mod streams;
pub mod strided;
pub mod transfers;
pub mod visibility;

pub use world::Executor;

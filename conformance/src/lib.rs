//! One suite that holds every executor to the contract in `spec/`.
//!
//! A case is a function of a [`Fabric`](fabric::Fabric). It opens ports, drives them through the
//! suite's own [`Port`](port::Port), [`Deposits`](depot::Deposits) and
//! [`Messenger`](messenger::Messenger), and panics where the contract is broken. The table of cases
//! is in the module [`suite`](mod@suite); [`suite!`](crate::suite!) makes tests of it for one
//! fabric.
//!
//! There are four fabrics. Two have the engine: its [executors](Executor), and the engine on a
//! simulated network in [one thread](engine::one_thread). The others are nodes of the protocol in
//! [simulated time](timed), and ports of other processes behind a [driver].
//! CONTRIBUTING.md says how to add a case and a fabric.
//!
//! No case looks at a clock or sleeps. Cases wait for events of the interface; where the target
//! must be served meanwhile, see [`world::World::drive`]. Random cases print the seed by which they
//! can be repeated, see [`seed`].

pub mod data;
pub mod depot;
pub mod driver;
pub mod engine;
pub mod fabric;
pub mod many_to_one;
pub mod messenger;
mod model;
pub mod multicast;
pub mod port;
pub mod seed;
pub mod suite;
pub mod timed;
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
pub mod mappings;
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

pub use engine::Executor;

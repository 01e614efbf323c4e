//! Ayre as a provider of libfabric: the library `libayre-fi.so`, which any libfabric from 1.17 on
//! loads and offers to its programs under the name `ayre`.
//!
//! A skin without protocol. The engine moves the data; here are the objects and calls of libfabric
//! around it. The crate `ayre-guest` has what other skins need as well. The folders here are
//! layers, from the bottom to the top; each imports only from those before it:
//!
//! | folder | what is in it |
//! |---|---|
//! | [`abi`] | the binary interface of libfabric, declared |
//! | `sys/` | what takes unsafe code below the calls: objects that C points to, the log |
//! | `error/` | what has gone wrong, as a number and in words |
//! | `info/` | what there is and what is wanted of it: the offer, hints, addresses, parameters |
//! | `object/` | what all objects have in common: the registry of open ones, and waiting |
//! | `record.rs` | a recording of what a program posts, for the simulator |
//! | `queue/` | where programs hear of what has happened: queues, counters, sets of them |
//! | `domain/` | fabrics and domains; address vectors and registered memory |
//! | `ep/` | endpoints, and aliases of them |
//! | `calls/` | the functions behind libfabric's tables, where pointers become values |
//!
//! All but `calls`, `sys` and `abi` is safe code about values.

pub mod abi;
mod calls;
mod domain;
mod ep;
mod error;
mod info;
mod object;
mod queue;
mod record;
mod sys;

pub use calls::provider::fi_prov_ini;

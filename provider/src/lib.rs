//! Ayre as a provider of libfabric: the library `libayre-fi.so`, which any libfabric from 1.17 on
//! loads and offers to its programs under the name `ayre`.
//!
//! A skin without protocol. What moves data is the engine's; here are the objects that libfabric
//! has programs open around that, and the calls on them. [`abi`] declares the interface; `calls`
//! has the functions behind its tables, which is where pointers become values; the rest is safe
//! code about values. `offer` says what there is, and `hints` compares that with what a program
//! wants.

pub mod abi;
mod address;
mod atomic;
mod av;
mod calls;
mod cntr;
mod code;
mod cq;
mod domain;
mod ep;
mod eq;
mod hints;
mod memory;
mod mover;
mod mr;
mod offer;
mod parameters;
mod poll;
mod registry;
mod source;
mod sys;
mod trouble;
mod wait;
mod wait_set;

pub use calls::provider::fi_prov_ini;

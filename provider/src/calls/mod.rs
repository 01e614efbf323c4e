//! The calls: functions that libfabric and programs make through tables.
//!
//! Each takes pointers as the manual pages describe them, makes of them what the rest of the crate
//! takes, and returns a code. Handles of calls that set up or tear down are looked up among the
//! open objects; those on the way of data are trusted, as the manual pages have programs vouch for
//! them.
mod atomic;
pub(crate) mod av;
pub(crate) mod cntr;
pub(crate) mod cq;
pub(crate) mod domain;
pub(crate) mod ep;
pub(crate) mod eq;
pub(crate) mod fabric;
pub(crate) mod fid;
mod memory;
mod message;
pub(crate) mod mr;
pub(crate) mod provider;
mod rma;
pub(crate) mod sets;
mod table;
mod tree;

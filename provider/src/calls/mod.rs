//! The calls: functions that libfabric and programs make through tables.
//!
//! Each takes pointers as the manual pages describe them, converts them for the rest of the crate,
//! and returns a code. Calls that set up or tear down look their handles up among the open objects.
//! Calls on the data path trust theirs, as the manual pages make programs responsible for them.
//!
//! | file, upwards | subject |
//! |---|---|
//! | `fid.rs`, `memory.rs`, `tree.rs` | what all objects have; memory and infos in C |
//! | `table.rs` | how a table of calls that move data is declared |
//! | `message.rs`, `rma.rs`, `atomic.rs` | those tables |
//! | `cq.rs`, `eq.rs`, `cntr.rs`, `sets.rs`, `av.rs`, `mr.rs`, `ep.rs` | the calls on each object |
//! | `domain.rs`, `fabric.rs`, `provider.rs` | what these are opened by |

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

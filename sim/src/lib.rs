//! Networks in simulated time.
//!
#![doc = include_str!("../README.md")]
//!
//! A [`Network`](network::Network) is made of a [topology](topology::Topology), its
//! [parameters](network::Parameters) and a [load](work::Load). It puts its events into a
//! [calendar](calendar::Calendar), and its results into a [tally](stats::Tally).
#![forbid(unsafe_code)]

pub mod calendar;
pub mod cluster;
pub mod dart;
pub mod evidence;
pub mod extoll;
pub mod forth;
pub mod goal;
pub mod grim;
pub mod host;
pub mod interface;
pub mod link;
pub mod machine;
pub mod network;
pub mod nic;
pub mod packet;
pub mod random;
pub mod report;
pub mod routing;
pub mod scenario;
pub mod stats;
pub mod time;
pub mod topology;
pub mod whtra;
pub mod work;

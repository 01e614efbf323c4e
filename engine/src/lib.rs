//! Ayre: a network interface in software.
//!
//! Processes put and get each other's memory, perform atomics on it, and send each other messages.
//! They do it on one host through shared memory, without the kernel in the data path, and between
//! hosts over Ethernet.
//!
//! ```no_run
//! use ayre::{Port, PostOptions, RegionOptions, Rights};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut port = Port::join()?; // started by `ayre run -n 2 -- program`
//! let region = port.alloc(4096, RegionOptions::new())?;
//! let peer = port.peer(port.rank() ^ 1).ok_or("start two ranks")?;
//! port.share(peer, &region, 0..4096, Rights::all(), 0)?;
//! let remote = port.accept_region(peer, 0)?;
//!
//! port.put(&remote, 0, b"hello, neighbour", PostOptions::new().completer())?;
//! port.wait_notification(None)?; // the data of the other rank is in our region now
//! let mut text = [0; 16];
//! region.read(0, &mut text);
//! println!("{}", String::from_utf8_lossy(&text));
//! # Ok(())
//! # }
//! ```
//!
//! # Which module to take
//!
//! | I want to | use |
//! |---|---|
//! | write or read memory of another process | [`Port::put`], [`Port::get`]: [`memory`] |
//! | count or swap words there | [`Port::fetch_add`], [`Port::atomic`]: [`memory`] |
//! | be notified that data has landed | [`Port::wait_notification`]: [`memory`] |
//! | exclude other processes from shared data | [`memory::Lock`] |
//! | share memory, locks and queues with child processes, without ports | [`shared`] |
//! | send up to 1 KiB to a process | [`Port::send`], [`Port::recv`]: [`message`] |
//! | have many producers fill one queue | [`Queue`], [`RemoteQueue`]: [`message`] |
//! | let the receiver's program place the data | [`deposit::Depot`] |
//! | send messages of any length by address and tag | [`Endpoint`]: [`endpoint`] |
//! | run a function in another process | [`Messenger::call`]: [`active`] |
//! | give calls an order and a priority of their own | [`Messenger::channels`]: [`channel`] |
//! | send items through a pipeline over several processes | [`Messenger::streams`]: [`stream`] |
//! | send to a changing group, in one order for all | [`Messenger::multicast`]: [`multicast`] |
//! | sum, broadcast, gather, or wait for all | [`Messenger::collectives`]: [`collective`] |
//! | reach other hosts, or simulate a network | [`NetOptions`], [`Simulation`]: [`network`] |
//!
//! A [`Port`] is the interface of a process: it joins a job that a launcher has started, or opens
//! by itself and connects with others by path or address. A [`Messenger`] is built on a port; an
//! [`Endpoint`] stands alone. The contract, with numbered requirements, is in the repository's
//! `spec/`.
//!
//! # Cargo features
//!
//! All are on by default. `cargo add ayre --no-default-features` gives shared memory only, with
//! eleven direct dependencies and without a C compiler.
//!
//! | feature | adds | without it |
//! |---|---|---|
//! | `net` | other hosts: [`network`] | [`Port::connect`], [`Endpoint`]s of one host |
//! | `job` | [`Port::join`], [`Port::barrier`]; it needs `net` | ports that connect by themselves |
//! | `tuning` | [`tuning::active`], files of `ayre tune` | built-in cut-offs, [`Config::tuning`] |
//!
//! A call that needs an absent feature does not exist. An address of another host, and a variable
//! that an absent feature would read, are errors that name the feature.

// Code that only a feature uses is there without the feature, too, and the linker leaves it out.
#![cfg_attr(
    not(all(feature = "job", feature = "tuning")),
    allow(dead_code, unused_imports, unreachable_pub)
)]

pub mod active;
pub mod channel;
mod clock;
pub mod collective;
pub mod deposit;
mod depot;
pub mod endpoint;
pub mod error;
mod folder;
#[cfg(all(any(test, fuzzing), feature = "net", not(loom)))]
pub mod fuzzing;
#[doc(hidden)]
pub mod guest;
pub mod host;
#[cfg(feature = "job")]
mod job;
#[cfg_attr(not(feature = "net"), path = "link/absent.rs")]
mod link;
pub mod log;
mod machine;
mod mem;
pub mod memory;
pub mod message;
mod messenger;
pub mod multicast;
#[cfg_attr(not(feature = "net"), path = "net/absent.rs")]
mod net;
#[cfg(feature = "net")]
pub mod network;
mod peer;
mod port;
pub(crate) mod port_range;
mod process;
mod random;
pub mod settings;
// Models know no system that wakes threads.
#[cfg(not(loom))]
pub mod shared;
#[doc(hidden)]
#[cfg(not(loom))]
pub mod socket;
pub mod stream;
mod sync;
mod sys;
mod target;
mod text_file;
pub mod tuning;

pub use active::Messenger;
pub use ayre_proto::limits::PEERS_MAX;
pub use ayre_proto::notify::Notification;
pub use ayre_proto::units::{PeerId, Rights};
pub use endpoint::{Endpoint, EndpointOptions};
pub use error::{Busy, Fault, PostError, ReceiveError, SetupError};
#[cfg(feature = "net")]
pub use link::NetOptions;
pub use mem::region::{Region, RegionOptions, RemoteRegion};
#[cfg(feature = "net")]
pub use net::simulation::Simulation;
pub use port::Port;
pub use port::config::{Config, Spin};
pub use port::counters::Counters;
pub use port::message::Message;
pub use port::options::PostOptions;
pub use port::queue::{Queue, RemoteQueue};
pub use settings::choice::Mode;

//! Ayre: a network interface in software.
//!
//! Processes of one machine put and get each other's memory, perform atomics on it, send short
//! messages, enqueue records and raise notifications, without the kernel in the data path.
//!
//! ```no_run
//! use ayre::{Options, Port, RegionOptions, Rights};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut port = Port::join()?; // started by `ayre run -n 2 -- program`
//! let region = port.alloc(4096, RegionOptions::new())?;
//! let peer = port.peer(port.rank() ^ 1).ok_or("start two ranks")?;
//! port.share(peer, &region, 0..4096, Rights::all(), 0)?;
//! let remote = port.accept_region(peer, 0)?;
//!
//! port.put(&remote, 0, b"hello, neighbour", Options::new().completer())?;
//! port.wait_notification(None)?; // theirs: their data is in our region now
//! let mut text = [0; 16];
//! region.read(0, &mut text);
//! println!("{}", String::from_utf8_lossy(&text));
//! # Ok(())
//! # }
//! ```
//!
//! Where to look: [`Port`] has all operations; [`Region`] and [`RemoteRegion`] are memory at its
//! owner and at a peer; [`Notification`] says what happened; [`Queue`] and [`Lock`] are built on
//! top. The contract, with numbered requirements, is in the repository's `spec/`.

pub mod active;
mod batch;
mod bell;
mod capability;
pub mod collective;
mod config;
mod connection;
mod control;
mod counters;
pub mod deposit;
mod direct;
mod endpoint;
mod error;
mod folder;
#[cfg(all(any(test, fuzzing), not(loom)))]
pub mod fuzzing;
pub mod guest;
mod job;
mod local;
mod lock;
pub mod log;
pub mod logical;
mod mediated;
mod mem;
mod message;
pub mod multicast;
mod notification;
mod ops;
mod options;
mod port;
mod progress;
mod queue;
mod random;
mod responder;
pub mod settings;
mod setup;
pub mod stream;
mod sync;
mod sys;
mod text_file;
pub mod tuning;
mod wait;
mod wire;

pub use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
pub use ayre_proto::combine::{Combine, Number, Relation};
pub use ayre_proto::limits::{EAGER_MAX, PEERS_MAX};
pub use ayre_proto::lock::EpochStep;
pub use ayre_proto::notify::{Classes, Notification, Operation};
pub use ayre_proto::touch::Access;
pub use ayre_proto::units::{Key, PeerId, Rights, Ticket};
pub use batch::Batch;
pub use capability::{Fenced, Grant};
pub use config::{Config, Spin};
pub use connection::Mode;
pub use counters::Counters;
pub use endpoint::{
    Address, Context, End, EndReason, Endpoint, EndpointOptions, ExposeError, Found, LatestEnd,
    Lease, Outgoing, REMOTES_MAX, Receive, Received, RemoteId, RemoteNames, Sent, Spot, TouchKind,
    Touched, Update, WINDOW_SPANS_MAX, WINDOWS_MAX, What, Window, Windows, Write,
};
pub use error::{Busy, Fault, NoLink, PostError, ReceiveError, Refusal, SetupError, Status};
pub use job::{host_addresses, usable_addresses, usable_memory};
pub use lock::{Hold, Lock, try_epoch_step};
pub use mem::map::Pages;
pub use mem::region::{Region, RegionOptions, RemoteRegion};
pub use mem::span::{SPANS_MAX, Span, Spans};
pub use message::Message;
pub use ops::Strided;
pub use options::{Destination, LocalSlice, Options, Source};
pub use port::Port;
pub use queue::{Queue, Record, RemoteQueue};
pub use wire::{
    AgainReport, BuffersReport, CreditReport, LinkChannel, LinkLoad, LinkReport, LinkState,
    NetReport, PathReport, PathState, WireReport, WireReports, wire_reports,
};
pub use wire::{
    Ethernet, NetOptions, Partition, Plan, PlanError, PortRange, PortRangeError, Simulation, Tried,
    TriedOutcome,
};

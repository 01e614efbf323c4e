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
mod clock;
pub mod collective;
pub mod deposit;
mod depot;
mod endpoint;
mod error;
mod folder;
#[cfg(all(any(test, fuzzing), not(loom)))]
pub mod fuzzing;
pub mod guest;
mod job;
mod link;
pub mod log;
pub mod logical;
mod machine;
mod mem;
mod messenger;
pub mod multicast;
mod net;
mod peer;
mod port;
pub(crate) mod port_range;
mod process;
mod random;
pub mod settings;
pub mod stream;
mod sync;
mod sys;
mod target;
mod text_file;
pub mod tuning;

pub use ayre_proto::alu::{Atomic, AtomicOp, Fetched, Width};
pub use ayre_proto::combine::{Combine, Number, Relation};
pub use ayre_proto::limits::{EAGER_MAX, PEERS_MAX};
pub use ayre_proto::lock::EpochStep;
pub use ayre_proto::notify::{Classes, Notification, Operation};
pub use ayre_proto::units::{Key, PeerId, Rights, Ticket};
pub use endpoint::{
    Address, Context, End, Endpoint, EndpointOptions, ExposeError, Found, LatestEnd, Lease,
    Outgoing, REMOTES_MAX, Receive, Received, RemoteId, RemoteNames, Sent, Spot, TouchKind,
    Touched, Update, WINDOW_SPANS_MAX, WINDOWS_MAX, What, Window, Windows, Write,
};
pub use error::{
    Busy, EndReason, Fault, NoLink, PostError, ReceiveError, Refusal, SetupError, Status, Tried,
    TriedOutcome,
};
pub use link::{
    AgainReport, BuffersReport, CreditReport, LinkChannel, LinkLoad, LinkReport, LinkState,
    NetOptions, NetReport, PathReport, PathState, WireReport, WireReports, wire_reports,
};
pub use machine::memory::limit as usable_memory;
pub use machine::memory_file::{Place, stand_in_place};
pub use mem::file::Pages;
pub use mem::region::{Region, RegionOptions, RemoteRegion};
pub use mem::span::{SPANS_MAX, Span, Spans};
pub use net::chosen::{host_addresses, usable_addresses};
pub use net::faults::Partition;
pub use net::simulation::Simulation;
pub use port::Port;
pub use port::batch::Batch;
pub use port::capability::{Fenced, Grant};
pub use port::config::{Config, Spin};
pub use port::counters::Counters;
#[doc(hidden)]
pub use port::device::{Given, Trace, Traced};
pub use port::lock::{Hold, Lock, try_epoch_step};
pub use port::message::Message;
pub use port::ops::Strided;
pub use port::options::{Destination, LocalSlice, Options, Source};
pub use port::queue::{Queue, Record, RemoteQueue};
pub use port_range::{PortRange, PortRangeError};
pub use settings::choice::{Ethernet, Mode};
pub use settings::plan::{Plan, PlanError};

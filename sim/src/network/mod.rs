//! A network of routers with input queues, virtual channels and credits, in simulated time.
//!
//! ```text
//!              slot: queue of one virtual channel          lane: that channel of the output
//!            +----------------------------------+         +---------+
//!  arrive -->| packet <- packet <- packet       |--grant->| credits |--wire--> slot of the next
//!            +----------------------------------+    ^    +---------+          router, or a node
//!            the head asks for one output            |
//!                                            output: free from a time on, round robin
//! ```
//!
//! A packet is moved by one event for each router: the arrival of its head at the router's
//! allocator. Its tail follows by arithmetic, since the buffer that it travels to has room for all
//! of it (virtual cut-through). A second event returns its credits to the router before.
//!
//! Input ports take turns at each output, and queues take turns at their input port. So a port has
//! the same share of an output with one virtual channel as with many.
//!
//! All events of one time are noted before any output is granted. So the result does not depend on
//! the order in which they are taken.
//!
//! A network may be [divided](Network::divide) into parts that run on threads of their own.
mod allocate;
mod build;
mod deadlock;
mod divide;
mod inject;
mod lane;
mod meeting;
mod queue;
mod record;
mod recover;
mod rounds;
mod run;
mod source;

use crate::calendar::{Calendar, Event};
use crate::link::LinkTiming;
use crate::packet::{Handle, Packets};
use crate::routing::{Policy, Routes};
use crate::stats::Tally;
use crate::time::Time;
use crate::work::Load;
use divide::Share;
use lane::Lane;
use rounds::Outbox;
use source::Source;
use std::sync::Arc;

pub use build::BuildError;
pub use deadlock::Waiting;
pub use inject::{Delivery, InjectError};
pub use queue::Queue;
pub use record::{Record, Slice};
pub use recover::Recovery;
pub use run::Outcome;

/// How many packets leave an input port at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readout {
    /// One: all virtual channels share one line into the crossbar.
    Port,
    /// One of each virtual channel. With a channel for each target, this is a buffered crossbar:
    /// each pair of input and output has a buffer of its own at their crosspoint.
    Channel,
}

/// How a node queues the packets that have not entered the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeQueue {
    /// In one queue: the first packet holds up all others.
    One,
    /// In a queue for each target (virtual output queues).
    PerTarget,
}

/// When a packet may leave a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// As soon as its head has been routed.
    CutThrough,
    /// When all of it has arrived.
    StoreAndForward,
}

/// A network's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Links between routers.
    pub link: LinkTiming,
    /// Time of flight to a node.
    pub wire_to_node: Time,
    /// From the arrival of a head at a router to its first chance to leave.
    pub pipeline: Time,
    /// From the making of a packet to its first chance to leave its node.
    pub injection: Time,
    /// From the departure of a packet's tail until the router before knows of the room.
    pub credit: Time,
    /// Virtual channels of each link.
    pub channels: u16,
    /// Bytes of buffer for each virtual channel.
    pub buffer: u32,
    /// How many packets leave an input port at once.
    pub readout: Readout,
    /// How nodes queue packets.
    pub node_queue: NodeQueue,
    /// When a packet may leave a router.
    pub switching: Switching,
    /// Which way packets go.
    pub policy: Policy,
}

/// The queue of a virtual channel at an input port.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: Handle,
    tail: Handle,
    /// The first of the lanes that the head asks for, and how many it may choose from.
    lane: u32,
    lanes: u16,
    /// The output that the head asks for.
    output: u16,
    /// The lane that feeds this queue, or [`NO_LANE`] at a node's port.
    feeder: u32,
    /// The first queue of its input port, as a place in the router. That slot stands for the port.
    input: u16,
    /// The queue of the port that this slot stands for from where the next one is looked for, as a
    /// place in the router.
    turn: u16,
    /// The line into the crossbar is taken until then: that of the port that this slot stands for,
    /// or that of this queue where each has its own.
    free: Time,
}

/// The second output that the head of a queue asks for, where packets may choose.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    /// The first of its lanes, and how many the head may choose from: 0 if it asks for one output.
    lane: u32,
    lanes: u16,
    output: u16,
}

/// Stands for no lane.
const NO_LANE: u32 = u32::MAX;

/// An output port.
#[derive(Clone, Copy, Debug)]
struct Output {
    /// It is taken until then.
    free: Time,
    /// The time of the next wake-up that has been set for it.
    wake: Time,
    /// The slot of virtual channel 0 at the other end, or [`TO_NODE`].
    slot: u32,
    /// Its virtual channels are the lanes from this one on.
    lane: u32,
    /// The router at the other end, or the node.
    to: u32,
    /// The first queue of the input port after the one that was served last, from where the next is
    /// looked for.
    turn: u16,
}

/// Stands for the slot of an output that leads to a node.
const TO_NODE: u32 = u32::MAX;

/// Where the parts of a router are.
#[derive(Clone, Copy, Debug)]
struct Router {
    slot: u32,
    slots: u16,
    output: u32,
    /// Words of 64 bits that hold one bit for each slot.
    words: u16,
    /// The requests for output `o` are the words from `request + o * words` on.
    request: u32,
    /// A bit for each output to be looked at when all events of this time are known.
    due: u64,
    /// The output after the one that was granted last.
    turn: u8,
}

/// Kinds of events.
const ARRIVE: u64 = 0;
const GENERATE: u64 = 1;
const WAKE: u64 = 2;
const CREDIT: u64 = 3;

/// A network with its state.
#[derive(Debug)]
pub struct Network {
    parameters: Parameters,
    routes: Arc<Routes>,
    calendar: Calendar,
    packets: Packets,
    /// The routers with outputs to be looked at.
    due: Vec<u32>,
    /// A bit for each router, with which many of them are sorted.
    marks: Vec<u64>,
    routers: Vec<Router>,
    slots: Vec<Slot>,
    /// One for each slot, or none where packets do not choose.
    seconds: Vec<Second>,
    outputs: Vec<Output>,
    requests: Vec<u64>,
    lanes: Vec<Lane>,
    sources: Vec<Source>,
    /// The number of packets on their way from which on a deadlock is looked for.
    crowd: usize,
    /// Nodes make no more packets.
    sources_stopped: bool,
    /// Packets and bytes that nodes have made.
    made: (u64, u128),
    load: Load,
    tally: Tally,
    /// When the tally was begun.
    started: Time,
    /// The time of the events that were taken last.
    now: Time,
    /// The end of the last run.
    time: Time,
    /// The least time in which a router can affect another one, or a node: the length of windows.
    ahead: Time,
    /// Injected packets that have been delivered since the program asked.
    deliveries: Vec<Delivery>,
    record: Option<Box<Record>>,
    /// The routers whose packets and events it has: all, or those of the first part.
    share: Share,
    /// The number of parts in which runs go on.
    parts: usize,
    /// The other parts, while there are any.
    others: Vec<Self>,
    /// For each part the packets and events that this one sends there.
    outboxes: Vec<Outbox>,
}

/// An event of the network: its kind, its router, and what it is about.
fn event(at: Time, router: u32, kind: u64, about: u32) -> Event {
    Event { at, what: u64::from(router) << 34 | kind << 32 | u64::from(about) }
}

/// The event that credits come back to a lane.
fn credit(at: Time, lane: u32, bytes: u32) -> Event {
    event(at, bytes, CREDIT, lane)
}

fn router_of(event: u64) -> u32 {
    (event >> 34) as u32
}

fn kind_of(event: u64) -> u64 {
    event >> 32 & 3
}

fn about(event: u64) -> u32 {
    event as u32
}

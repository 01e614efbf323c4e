//! Scripts: the operations of each node, one after the other or several at once.
//!
//! ```text
//!   region data 4KiB 1          # memory of node 1, which starts as zeros
//!   node 0
//!     put data 0 64 fill=7      # at offset 0, 64 bytes of the value 7
//!     together
//!       fetch add data 64 1
//!       get data 0 64 expect=7
//!     end
//! ```
//!
//! [`read`] reads the text, [`Script::check`] looks whether the nodes are there, and [`run()`]
//! carries it out on a [`Cluster`](crate::cluster::Cluster): the protocol's own nodes in simulated
//! time.
mod collective;
mod depot;
mod error;
mod exchange;
mod handling;
mod needs;
mod node;
mod post;
mod read;
mod run;
mod runner;
mod way;
mod words;
mod world;

pub use error::{ScriptError, ScriptFault};
pub(super) use run::{Ran, run};
pub(super) use runner::Kind;

use self::collective::Joint;
use super::units::Span;
use crate::cluster::InterfaceTimes;
use ayre_proto::active::ARGUMENTS_MAX;
use ayre_proto::alu::Atomic;
use ayre_proto::deposit::Stored;
use ayre_proto::limits::EAGER_MAX;
use ayre_proto::lock::LockMode;
use ayre_proto::notify::Classes;
use std::sync::Arc;

/// A script, with the times of the interfaces that carry it out.
#[derive(Clone, Debug)]
pub struct ScriptWork {
    /// The script.
    pub script: Arc<Script>,
    /// The times.
    pub times: InterfaceTimes,
}

/// The statements of all nodes, and their memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    file: String,
    regions: Vec<Region>,
    queues: Vec<Queue>,
    depots: Vec<Depot>,
    handlers: Vec<Handler>,
    blocks: Vec<Block>,
}

/// Memory under a name.
#[derive(Clone, Debug, PartialEq)]
struct Region {
    name: String,
    len: u64,
    homes: Nodes,
    line: usize,
}

/// A queue under a name, at its consumer.
#[derive(Clone, Debug, PartialEq)]
struct Queue {
    name: String,
    /// Lines of each producer's lane.
    lines: u32,
    home: u32,
    line: usize,
}

/// A depot under a name: of each node that has the region, to which its inlets lead.
#[derive(Clone, Debug, PartialEq)]
struct Depot {
    name: String,
    region: usize,
    stored: Vec<Stored>,
    /// Registers that are not zero in the beginning.
    registers: Vec<(u8, u64)>,
    line: usize,
}

/// A deposit message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deposit {
    depot: usize,
    node: Option<Who>,
    entry: u16,
    len: u64,
    fill: u8,
    operand: u64,
    /// The registers that it names.
    registers: [u8; 3],
    /// The value that it is to give back.
    expect: Option<u64>,
    /// It is to be declined.
    is_declined: bool,
    note: Note,
}

/// Statements under a name, for nodes that are called.
#[derive(Clone, Debug, PartialEq)]
struct Handler {
    name: String,
    body: Vec<Line>,
}

/// An active message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    to: Who,
    handler: usize,
    len: u64,
    fill: u8,
    arguments: Arguments,
}

/// The arguments of an active message, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Arguments {
    words: [u64; ARGUMENTS_MAX],
    count: usize,
}

impl Arguments {
    fn bytes(&self) -> Vec<u8> {
        self.words[..self.count].iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

impl Call {
    /// Whether it goes by a landing.
    fn is_long(&self) -> bool {
        8 * self.arguments.count as u64 + self.len > EAGER_MAX as u64
    }
}

/// Some nodes, and their statements.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    nodes: Nodes,
    body: Vec<Line>,
    line: usize,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    number: usize,
    statement: Statement,
    /// It is to end in a fault.
    is_fault: bool,
}

/// Nodes of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nodes {
    All,
    /// From the first to the last one.
    Range(u32, u32),
}

impl Nodes {
    fn has(self, node: u32) -> bool {
        match self {
            Self::All => true,
            Self::Range(first, last) => (first..=last).contains(&node),
        }
    }
}

/// A node, as another one names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Number(u32),
    Own,
    Next,
    Previous,
    /// The node whose message runs the handler.
    Source,
}

impl Who {
    fn resolve(self, own: u32, nodes: u32) -> u32 {
        match self {
            Self::Number(number) => number,
            // A reader lets nobody else than handlers name a source.
            Self::Own | Self::Source => own,
            Self::Next => (own + 1) % nodes,
            Self::Previous => (own + nodes - 1) % nodes,
        }
    }
}

/// A place in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    region: usize,
    /// None: the node itself if it has the region, or else the only node that has it.
    node: Option<Who>,
    offset: u64,
}

/// The notifications that an operation asks for, and their contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    classes: Classes,
    tag: u32,
    value: u64,
}

/// Statements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statement {
    Put {
        to: Place,
        len: u64,
        fill: u8,
        note: Note,
    },
    Get {
        from: Place,
        len: u64,
        expect: Option<u8>,
        note: Note,
    },
    Immediate {
        to: Place,
        value: u64,
        note: Note,
    },
    Atomic {
        on: Place,
        atomic: Atomic,
        note: Note,
    },
    Fetch {
        on: Place,
        atomic: Atomic,
        expect: Option<u64>,
        note: Note,
    },
    Notify {
        to: Who,
        note: Note,
    },
    Await {
        from: Option<Who>,
        tag: Option<u32>,
        value: Option<u64>,
    },
    Send {
        to: Who,
        len: u64,
        fill: u8,
        tag: u32,
    },
    Receive {
        from: Who,
        tag: Option<u32>,
        expect: Option<u8>,
    },
    Append {
        queue: usize,
        len: u64,
        fill: u8,
    },
    Take {
        queue: usize,
        from: Option<Who>,
        expect: Option<u8>,
    },
    Lock {
        on: Place,
        mode: LockMode,
    },
    Unlock {
        on: Place,
        mode: LockMode,
    },
    Flush {
        to: Option<Who>,
    },
    Compute(Span),
    Collective(Joint),
    Call(Call),
    /// The contents that a message to a handler is to have.
    Called {
        len: u64,
        expect: Option<u8>,
        arguments: Arguments,
    },
    Deposit(Deposit),
    /// Sets a register of the node's own depot, or waits until it has the value.
    Register {
        depot: usize,
        number: u8,
        value: u64,
        waits: bool,
    },
    /// Waits until this number of calls has been handled.
    Serve(u32),
    Wait {
        at: Place,
        value: u64,
    },
    Check {
        at: Place,
        value: u64,
    },
    Kill(Who),
    Restart(Who),
    Repeat(u32),
    Together,
    Batch(Who),
    /// The end of the block that begins at this index.
    End(usize),
}

impl Statement {
    /// Its first word.
    fn word(&self) -> &'static str {
        match self {
            Self::Put { .. } => "put",
            Self::Get { .. } => "get",
            Self::Immediate { .. } => "immediate",
            Self::Atomic { .. } => "atomic",
            Self::Fetch { .. } => "fetch",
            Self::Notify { .. } => "notify",
            Self::Await { .. } => "await",
            Self::Send { .. } => "send",
            Self::Receive { .. } => "receive",
            Self::Append { .. } => "append",
            Self::Take { .. } => "take",
            Self::Lock { .. } => "lock",
            Self::Unlock { .. } => "unlock",
            Self::Flush { .. } => "flush",
            Self::Compute(_) => "compute",
            Self::Collective(joint) => joint.word(),
            Self::Call(_) => "call",
            Self::Called { .. } => "called",
            Self::Serve(_) => "serve",
            Self::Deposit(_) => "deposit",
            Self::Register { waits: false, .. } => "register",
            Self::Register { waits: true, .. } => "until",
            Self::Wait { .. } => "wait",
            Self::Check { .. } => "check",
            Self::Kill(_) => "kill",
            Self::Restart(_) => "restart",
            Self::Repeat(_) => "repeat",
            Self::Together => "together",
            Self::Batch(_) => "batch",
            Self::End(_) => "end",
        }
    }

    /// Whether it is posted, and ends later.
    fn is_posted(&self) -> bool {
        use Statement::{Append, Atomic, Call, Deposit, Fetch, Get, Immediate, Notify, Put, Send};
        matches!(
            self,
            Put { .. }
                | Get { .. }
                | Immediate { .. }
                | Atomic { .. }
                | Fetch { .. }
                | Notify { .. }
                | Send { .. }
                | Append { .. }
                | Call(_)
                | Deposit(_)
        )
    }

    /// Whether a batch may have it.
    fn is_batched(&self) -> bool {
        use Statement::{Atomic, Immediate, Notify, Put};
        matches!(self, Put { .. } | Immediate { .. } | Atomic { .. } | Notify { .. })
    }

    /// The place that it names.
    fn place(&self) -> Option<Place> {
        match *self {
            Self::Put { to: place, .. }
            | Self::Get { from: place, .. }
            | Self::Immediate { to: place, .. }
            | Self::Atomic { on: place, .. }
            | Self::Fetch { on: place, .. }
            | Self::Lock { on: place, .. }
            | Self::Unlock { on: place, .. }
            | Self::Wait { at: place, .. }
            | Self::Check { at: place, .. } => Some(place),
            _ => None,
        }
    }

    /// The node that it names.
    fn who(&self) -> Option<Who> {
        match *self {
            Self::Notify { to: who, .. }
            | Self::Send { to: who, .. }
            | Self::Receive { from: who, .. }
            | Self::Kill(who)
            | Self::Restart(who)
            | Self::Batch(who) => Some(who),
            Self::Await { from, .. } | Self::Take { from, .. } => from,
            Self::Flush { to } => to,
            Self::Call(Call { to, .. }) => Some(to),
            _ => None,
        }
    }
}

impl Script {
    /// Reads the text of a file with this name.
    ///
    /// # Errors
    /// See [`ScriptError`].
    pub fn read(file: &str, text: &str) -> Result<Self, ScriptError> {
        read::read(file, text)
    }

    /// Checks that a network has all nodes that are named.
    ///
    /// # Errors
    /// See [`ScriptError`].
    pub fn check(&self, nodes: u32) -> Result<(), ScriptError> {
        self.needs(nodes).map(|_| ())
    }

    fn fail(&self, line: usize, fault: ScriptFault) -> ScriptError {
        ScriptError { file: self.file.clone(), line, fault }
    }

    /// The beginning of the memory to which the inlets of a depot lead.
    fn depot_place(&self, depot: usize, node: Option<Who>) -> Place {
        Place { region: self.depots[depot].region, node, offset: 0 }
    }

    /// The node whose region a place is in.
    fn home(&self, place: &Place, own: u32, nodes: u32) -> Result<u32, ScriptFault> {
        let region = &self.regions[place.region];
        let only = match region.homes {
            _ if region.homes.has(own) => Some(own),
            Nodes::Range(first, last) if first == last => Some(first),
            _ => None,
        };
        let home = match place.node {
            Some(who) => who.resolve(own, nodes),
            None => only.ok_or_else(|| ScriptFault::SeveralHomes(region.name.clone()))?,
        };
        if home >= nodes || !region.homes.has(home) {
            return Err(ScriptFault::NotThere { region: region.name.clone(), node: home });
        }
        Ok(home)
    }
}
